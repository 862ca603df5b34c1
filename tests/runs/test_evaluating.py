"""Evaluation where people are: the figures of one machine, up to rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.evaluation import baseline_errors, evaluate
from dpmf.evaluation.accuracy import popularity_figures
from dpmf.evaluation.leak import frequent
from dpmf.evaluation.metrics import rmse
from dpmf.methods import EASE, SGD, Joint
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make
from dpmf.runs.evaluating import evaluate_on
from dpmf.runs.parts import Split

RATINGS = make(90, 40, mean_ratings=15, seed=2)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> StoredRatings:
    return StoredRatings.build(MemorySource(RATINGS), tmp_path_factory.mktemp("evaluating") / "store")


def expected(release: Release, split: Split, k: int, least: int) -> dict[str, float]:
    known, test = RATINGS.split(split.holdout, seed=split.seed, how=split.how)
    test = frequent(known, test, least)
    figures = evaluate(release, test, known=known, k=k)
    if release.predicts_ratings:
        figures["baseline_rmse"] = rmse(baseline_errors(known, test))
    popular = popularity_figures(release, known, test, k=k)
    return {**figures, **{f"popularity_{name}": value for name, value in popular.items()}}


@pytest.mark.parametrize("n", [3, 200])
@pytest.mark.parametrize(
    ("method", "names"),
    [
        (SGD(n_factors=3, n_epochs=3), 6),
        (EASE(budget=Budget(50.0)), 5),
        (EASE(budget=Budget(50.0), feedback="implicit"), 5),
        (Joint(n_factors=2, budget=Budget(50.0)), 8),
    ],
    ids=["sgd", "ease", "ease-implicit", "joint"],
)
def test_figures_are_those_of_one_machine(
    store: StoredRatings, cluster: Callable[..., Any], method: Any, names: int, n: int
) -> None:
    release = method.fit(RATINGS, n_threads=1).release
    for split, least in ((Split(0.2, "random", 3), 0), (Split(0.3, "per-user", 3), 6)):
        found = evaluate_on(cluster(n), store, release, split, k=5, least_ratings=least)
        assert len(found) == names
        known = expected(release, split, 5, least)
        assert found == {name: pytest.approx(known[name], rel=1e-6) for name in found}


def test_another_catalogue_and_nothing_to_test_on_are_refused(
    store: StoredRatings, cluster: Callable[..., Any]
) -> None:
    release = SGD(n_factors=2, n_epochs=1).fit(RATINGS, n_threads=1).release
    other = SGD(n_factors=2, n_epochs=1).fit(make(30, 20, seed=1), n_threads=1).release
    with pytest.raises(InvalidArgument, match="the store has another catalogue than the release"):
        evaluate_on(cluster(2), store, other, Split(0.2))
    with pytest.raises(InvalidArgument, match="or ask for fewer known ratings"):
        evaluate_on(cluster(2), store, release, Split(0.2), least_ratings=10_000)
    with pytest.raises(InvalidArgument, match="there are no test ratings"):
        evaluate_on(cluster(2), store, release, Split(1e-9))
