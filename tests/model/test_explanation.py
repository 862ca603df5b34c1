"""Explanations add up to scores, and each share is what the score would change by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf.errors import InvalidArgument, UnknownId
from dpmf.methods import SGD
from dpmf.model import Ranking, Release, Ridge
from dpmf.ratings import Scale
from dpmf.ratings.synthetic import make

MINE = {10: 5, 20: 4, 30: 1}


def score_of(release: Release, ratings: Any, item: int) -> float:
    """Return a score before it is kept within the scale."""
    person = release.fold_in(ratings)
    place = release.items.find(item)
    assert place is not None
    product = float(release.item_factors[place].astype(float) @ person.factors.astype(float))
    return release.mean + person.bias + float(release.item_biases[place]) + product


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_what_ratings_add_is_what_the_score_moves_by(release: Release, exponent: float) -> None:
    release = replace(release, ridge=Ridge(0.5, 0.25, exponent))
    found = release.fold_in(MINE).explain(60)
    assert found.start is not None
    assert found.start == pytest.approx(3.2 + 0.4, rel=1e-6)
    assert found.start + sum(one.adds for one in found.shares) == pytest.approx(score_of(release, MINE, 60), abs=1e-5)
    assert [one.adds for one in found.shares] == sorted((one.adds for one in found.shares), reverse=True)
    adds = {one.item: one.adds for one in found.shares}
    for item, rating in MINE.items():
        # A rating that says nothing beside mean and bias of its item adds nothing; a score is linear in between.
        neutral = release.mean + float(release.item_biases[release.items.find(item) or 0])
        moved = score_of(release, MINE, 60) - score_of(release, {**MINE, item: neutral}, 60)
        assert adds[item] == pytest.approx(moved, abs=1e-5), rating


def test_titles_are_names_too_and_the_greatest_share_is_the_reason(release: Release) -> None:
    found = release.fold_in({"Heat (1995)": 5, 30: 1}).explain("七人の侍")
    assert (found.item, found.title) == (60, "七人の侍")
    assert found.because is None  # both take something away
    loved = release.fold_in({"Heat (1995)": 5, 30: 1}).explain(20)
    assert loved.because == loved.shares[0]
    assert loved.because.item == 10
    assert list(found.to_columns()) == ["item", "title", "adds"]
    with pytest.raises(UnknownId):
        release.fold_in(MINE).explain("Nothing")


def test_implicit_feedback_is_explained_too(release: Release) -> None:
    release = replace(release, mean=0.0, scale=Scale(0, 1), feedback="implicit", alpha=3.0)
    found = release.fold_in([10, 30]).explain(60)
    assert found.start is not None
    assert found.start + sum(one.adds for one in found.shares) == pytest.approx(
        score_of(release, [10, 30], 60), abs=1e-5
    )
    assert release.fold_in([]).explain(60).start == pytest.approx(0.4)


def test_a_ranking_is_explained_by_its_terms(release: Release, ranking_of: Callable[..., Ranking]) -> None:
    release = replace(release, ranking=ranking_of(6))
    assert release.ranking is not None
    person = release.fold_in({10: 5, 20: 4, 30: 3, 40: 1})
    head = release.ranking.items
    scores = release.ranking.scores(person.rated, person.owned.values)
    for place in range(6):
        found = person.explain(release.items.ids[place])
        assert found.start is None
        assert found.score == pytest.approx(float(scores[place]))
        if place in head:
            assert sum(one.adds for one in found.shares) == pytest.approx(found.score, abs=1e-5)
        else:
            assert not found.shares
            assert found.because is None
        assert 40 not in {one.item for one in found.shares}  # below the threshold, it counts for nothing


def test_a_user_of_a_model_is_explained_where_no_rating_is_needed() -> None:
    ratings = make(40, 20)
    model = SGD(n_factors=2, n_epochs=2).fit(ratings, n_threads=1)
    with pytest.raises(InvalidArgument, match="keeps no ratings"):
        model.person(ratings.user_ids[0]).explain(ratings.catalogue.ids[0])
    mine = {ratings.catalogue.ids[int(item)]: 4.0 for item in np.arange(3)}
    assert model.release.explain(mine, ratings.catalogue.ids[5]) == model.release.fold_in(mine).explain(
        ratings.catalogue.ids[5]
    )
