"""Counts: how often people had an item weighs in the ranking, and nobody's counts weigh more than they may."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.evaluation.new_users import NewUsers, measure_ranker, release_ranker, split_users
from dpmf.methods import ALS, EASE, Joint
from dpmf.model import Model, Release
from dpmf.privacy import Budget
from dpmf.ratings import Items, Ratings
from dpmf.ratings.store.pieces import MemorySource

from ..watch import Watch

N_ITEMS, N_TASTES = 120, 6
Events = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
CATALOGUE = Items.of(np.arange(N_ITEMS))
NOTHING = Budget(math.inf)


def had(n_users: int, preference: float, seed: int = 5) -> Events:
    """Return who had what how often: what people are fond of more often, by as much as `preference` says."""
    rng = np.random.default_rng(seed)
    popularity, users, items, counts = rng.normal(0, 0.6, N_ITEMS), [], [], []
    for user in range(n_users):
        fond = rng.normal(size=N_TASTES)[np.arange(N_ITEMS) % N_TASTES]
        size = rng.integers(8, 25)
        chosen = np.argsort(popularity + 0.7 * fond + rng.gumbel(size=N_ITEMS))[-size:]
        often = np.exp(1 + preference * fond[chosen] + rng.normal(size=size))
        users += [user] * size
        items += chosen.tolist()
        counts += np.maximum(np.floor(often), 1).tolist()
    return np.array(users), np.array(items), np.array(counts)


def quality(ratings: Ratings, budget: Budget) -> float:
    """Return ndcg@10 for new people, the mean over a few draws of noise."""
    train, people = split_users(ratings, NewUsers(0.25, positive=-math.inf, seed=1))
    seeds = range(2) if budget.is_finite else (None,)
    found = []
    for seed in seeds:
        about = train.n_users if budget.is_finite else None
        method = EASE(feedback="implicit", budget=budget, n_users=about, noise_seed=seed)
        release = method.fit(train, n_threads=1).release
        found.append(measure_ranker(release_ranker(release, 1), people, np.bincount(train.items, minlength=N_ITEMS)))
    return float(np.mean([one["ndcg@10"] for one in found]))


@pytest.mark.parametrize("epsilon", [15.0, math.inf])
def test_counts_that_say_something_rank_better_and_others_hardly_worse(epsilon: float) -> None:
    users, items, counts = had(900, preference=1.0)
    noise = had(900, preference=0.0)
    assert (noise[1] == items).all()
    once, often, any_number = (
        quality(Ratings.of(users, items, values, items=CATALOGUE, counts=True), Budget(epsilon))
        for values in (np.ones(len(users)), counts, noise[2])
    )
    assert often > 1.05 * once
    assert any_number > 0.97 * once


def test_counts_of_one_change_no_bit() -> None:
    users, items, _ = had(80, preference=1.0)
    counted = Ratings.of(users, items, items=CATALOGUE, counts=True)
    rated = Ratings.of(users, items, np.full(len(users), 3), items=CATALOGUE, scale=(1, 5))
    for budget, seed in ((NOTHING, None), (Budget(50.0), 3)):
        one, other = (
            EASE(feedback="implicit", budget=budget, noise_seed=seed).fit(data, n_threads=1)
            for data in (counted, rated)
        )
        for name in ("left", "right", "pairs", "values", "popularity"):
            np.testing.assert_array_equal(getattr(one.release.ranking, name), getattr(other.release.ranking, name))
        assert one.recommend(3) == other.recommend(3)


@pytest.mark.parametrize("epsilon", [40.0, math.inf])
def test_counts_weigh_the_same_in_memory_from_disk_and_when_folded_in(tmp_path: Path, epsilon: float) -> None:
    users, items, counts = had(150, preference=1.0)
    ratings = Ratings.of(users, items, counts, items=CATALOGUE, counts=True)
    stored = StoredRatings.build(MemorySource(ratings), tmp_path / "store")
    assert stored.scale == ratings.scale
    method = EASE(feedback="implicit", head=30, budget=Budget(epsilon), noise_seed=None if epsilon == math.inf else 2)
    model = method.fit(ratings, n_threads=1)
    if method.streams:
        streamed = method.fit(stored, n_threads=2)
        assert streamed.release.ranking is not None
        assert model.release.ranking is not None
        np.testing.assert_array_equal(streamed.release.ranking.left, model.release.ranking.left)
        np.testing.assert_array_equal(streamed.seen_weights, model.seen_weights)
    model.save(tmp_path / "model")
    own = {int(item): float(count) for item, count in zip(*ratings.of_user(7), strict=True)}
    mine = model.release.fold_in(own).recommend(5)
    assert mine == model.recommend(7, 5) == Model.load(tmp_path / "model").recommend(7, 5)
    release = Release.load(tmp_path / "model" / "release")
    assert release.weighs_counts
    assert mine == release.fold_in(own).recommend(5) != release.fold_in(list(own)).recommend(5)


def test_people_who_are_folded_in_have_counts_above_nothing() -> None:
    users, items, counts = had(80, preference=1.0)
    ratings = Ratings.of(users, items, counts, items=CATALOGUE, counts=True)
    release = EASE(feedback="implicit", budget=NOTHING).fit(ratings).release

    def weights(own: Any) -> list[float]:
        found = release.fold_in(own).weights
        assert found is not None
        return list(map(float, found))

    assert weights(dict(enumerate([0.2, 1, 2, 16, 17, 1e300]))) == [1, 1, 1.25, 2, 2, 2]
    assert weights([3, 3, 5]) == [1.25, 1]  # an event each
    for count in (0, -1, math.nan, math.inf, 10**400, "often", None):
        with pytest.raises(InvalidArgument, match="is not a number above 0"):
            release.fold_in({3: count})


@pytest.mark.parametrize("method", [ALS(budget=NOTHING), Joint(budget=Budget(1)), EASE(budget=NOTHING)])
def test_counts_are_no_ratings(method: ALS | Joint | EASE) -> None:
    with pytest.raises(InvalidArgument, match="these are counts, not ratings"):
        method.fit(Ratings.of([1, 1], [2, 3], [4, 5], counts=True))


WORST = {
    "huge": [f"zz,{item},1e{item % 38}" for item in range(N_ITEMS)],
    "one item": ["zz,0,3e38"],
    "many events": [f"zz,{item},{count}" for item in range(N_ITEMS) for count in (1, 0.001, 3e38, 16, 1e-44)],
}


@pytest.mark.parametrize("worst", WORST)
@pytest.mark.parametrize("first", [True, False])
def test_whoever_is_added_to_a_file_of_counts_moves_no_sum_by_more_than_its_bound(
    worst: str, first: bool, tmp_path: Path, watch: Watch
) -> None:
    """Through everything: reading, sums of repeated rows, and the run itself."""
    rows = [f"{user},{item},{count:g}" for user, item, count in zip(*had(60, preference=1.0), strict=True)]
    found = []
    for people in (rows, [*WORST[worst], *rows] if first else [*rows, *WORST[worst]]):
        (tmp_path / "plays.csv").write_text("\n".join(["user,item,plays", *people]) + "\n")
        ratings = Ratings.read(tmp_path / "plays.csv", items=CATALOGUE)
        EASE(feedback="implicit", head=N_ITEMS, budget=Budget(5.0), noise_seed=6).fit(ratings, n_threads=1)
        found.append(watch.records)
        watch.script = watch.records
    for one, other in zip(*found, strict=True):
        gap = sum(int(step) ** 2 for step in (one.sums - other.sums).ravel())
        assert 0 < gap <= (Fraction(one.sensitivity) * Fraction(one.steps)) ** 2, one.what
