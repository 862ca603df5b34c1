"""The ratings that are used, the measures of errors, and the results of runs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from experiments.figure import Run
from experiments.hua2015.data import drawn_items, draws_of, name_of
from experiments.hua2015.errors import BOUNDS, column, distribution, figures_of, shortfall, with_increases
from experiments.hua2015.runs import DIVIDED, WHOLE, Part, Trial, composed

from dpmf import Ratings
from dpmf.errors import InvalidArgument
from dpmf.federated.published import Claim, Terms
from dpmf.methods.objective.items import PerturbedItems
from dpmf.ratings.subset import select_items
from dpmf.ratings.synthetic import make as make_ratings
from experiments.hua2015 import data


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make_ratings(80, 40, mean_ratings=8)


def test_all_ratings_of_some_items_are_kept_and_users_without_any_left_out(ratings: Ratings) -> None:
    part = select_items(ratings, np.array([3, 8, 30]))
    kept = np.isin(ratings.items, [3, 8, 30])
    assert part.catalogue.ids.array.tolist() == ratings.catalogue.ids.array[[3, 8, 30]].tolist()
    assert part.user_ids.array.tolist() == ratings.user_ids.array[np.unique(ratings.users[kept])].tolist()
    assert part.values.tolist() == ratings.values[kept].tolist()
    assert part.catalogue.ids.array[part.items].tolist() == ratings.catalogue.ids.array[ratings.items[kept]].tolist()
    assert part.user_ids.array[part.users].tolist() == ratings.user_ids.array[ratings.users[kept]].tolist()
    assert part.n_users < ratings.n_users


def test_draws_differ_and_come_back_with_their_seed() -> None:
    first, second = drawn_items(1000, 0, 0), drawn_items(1000, 0, 1)
    assert len(np.unique(first)) == 100
    assert (np.diff(first) > 0).all()
    assert first.tolist() == drawn_items(1000, 0, 0).tolist()
    assert first.tolist() != second.tolist()
    assert first.tolist() != drawn_items(1000, 1, 0).tolist()


@pytest.mark.parametrize(("full", "draws"), [(False, 1), (True, 3)])
def test_items_are_drawn_only_from_large_sets(
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool, draws: int
) -> None:
    run = Run("made", tmp_path / "f", full=full)
    assert [one.n_items for one in draws_of(ratings, run)] == [40]
    assert name_of(ratings) == "MovieLens"
    monkeypatch.setattr(data, "_MANY_USERS", 50)
    monkeypatch.setattr(data, "MOVIES", 10)
    assert [one.n_items for one in draws_of(ratings, run)] == [10] * draws
    assert name_of(ratings) == "Netflix"


def test_distributions_count_what_is_within() -> None:
    found = figures_of(np.array([1.0, 3.0, 9.0, np.nan]), np.array([1.1, 2.0, 4.0, 3.0]), (1.0, 5.0))
    assert found["mean_error"] == math.inf
    assert found["clamped_mean_error"] == pytest.approx((0.1 + 1 + 1 + 2) / 4)
    assert (found["within_0.2"], found["within_0.8"], found["within_1.0"], found["within_4.0"]) == (
        0.25,
        0.25,
        0.5,
        0.5,
    )
    assert len(distribution(found)) == len(BOUNDS)


def test_shortfall_is_one_sided() -> None:
    low, high = ({column(bound): level for bound in BOUNDS} for level in (0.3, 0.8))
    assert shortfall(low, high) == pytest.approx(0.5)
    assert shortfall(high, low) == 0.0


def test_increases_are_over_the_same_draw() -> None:
    rows = [
        {"draw": draw, "scenario": scenario, "mean_error": error, "clamped_mean_error": error / 2}
        for draw, scenario, error in ((0, "plain", 1.0), (1, "plain", 2.0), (0, "S1", 1.5), (1, "S1", 2.2))
    ]
    assert [row["increase"] for row in with_increases(rows)] == pytest.approx([0.0, 0.0, 0.5, 0.2])
    assert with_increases(rows)[2]["clamped_increase"] == pytest.approx(0.25)


@pytest.mark.parametrize("rounds", [1, 100, 10_000])
def test_rounds_compose_as_the_claim_says(rounds: int) -> None:
    claim = Claim(Terms(100, (1.0, 5.0), 0.8, 1000), rounds, True, False)
    assert composed("S3", 0.8, rounds) == composed("S2", 0.8, rounds) == pytest.approx(claim.composed)
    assert composed("S1", 0.8, rounds) == 0.8


def test_runs_without_noise_come_near_plain_factorization_and_noise_keeps_them_away(ratings: Ratings) -> None:
    part = Part(ratings, per_round=40, seed=0, n_threads=1)
    plain = part.curve(Trial("plain"), ())[0]
    assert plain["iterations"] == 100
    for scenario in ("S1", "S2", "S3"):
        early, late = part.curve(Trial(scenario), (2, 100))
        assert early["mean_error"] > late["mean_error"]
        assert late["mean_error"] == pytest.approx(plain["mean_error"], abs=0.3)
        noisy = part.curve(Trial(scenario, 0.1, WHOLE), (100,))[0]
        divided = part.curve(Trial(scenario, 0.1, DIVIDED), (100,))[0]
        assert noisy["mean_error"] > divided["mean_error"] > plain["mean_error"] - 0.3
        assert noisy["clamped_mean_error"] <= 4


def test_held_out_ratings_are_measured_too(ratings: Ratings) -> None:
    train, test = ratings.split(0.2, seed=0)
    part = Part.of(train, ratings, 0, 1, test)
    assert part.per_round == 100
    row = part.curve(Trial("plain"), ())[0]
    assert row["rmse"] >= row["clamped_rmse"] > 0


def test_a_run_that_diverges_has_infinite_errors(ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = ratings.split(0.2, seed=0)
    part = Part.of(train, ratings, 0, 1, test)

    def diverge(items: PerturbedItems, U: object, n_threads: int) -> float:
        raise InvalidArgument("the perturbed steps diverged")

    monkeypatch.setattr(PerturbedItems, "advance", diverge)
    row = part.curve(Trial("S1", 1.0, WHOLE), (3,))[0]
    assert (row["mean_error"], row["rmse"], row["within_4.0"]) == (math.inf, math.inf, 0.0)
