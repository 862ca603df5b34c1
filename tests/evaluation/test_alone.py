"""Figures of little data, people one by one, are those of many at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dpmf.evaluation import accuracy, evaluate
from dpmf.evaluation.alone import is_small
from dpmf.methods import SGD
from dpmf.model import Ranking
from dpmf.ratings import Ratings


@pytest.mark.parametrize("ranks", [False, True])
def test_figures_are_those_of_many_at_once(
    small_ratings: Ratings, ranking_of: Callable[..., Ranking], monkeypatch: pytest.MonkeyPatch, ranks: bool
) -> None:
    known, test = small_ratings.split(0.2, seed=1)
    release = SGD(n_factors=4, n_epochs=5).fit(known, n_threads=1).release
    if ranks:
        release = replace(release, ranking=ranking_of(small_ratings.n_items))
    assert is_small(known)
    alone = evaluate(release, test, known=known, n_threads=1)
    monkeypatch.setattr(accuracy, "is_small", lambda _: False)
    assert alone == pytest.approx(evaluate(release, test, known=known, n_threads=1), rel=1e-5)


def test_few_ratings_of_many_items_are_not_little_data() -> None:
    assert not is_small(Ratings.of([1], [1], [5], scale=(1, 5), items=range(6000)))
