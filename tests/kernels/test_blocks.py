"""Dealing ratings into blocks against a sort."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.engine.grid import BlockGrid, distinct_values
from dpmf.kernels.blocks import (
    collect_values,
    collect_values_reference,
    count_tiers,
    count_tiers_reference,
    fill_reference,
    sum_on_grid,
    sum_on_grid_reference,
)
from dpmf.ratings import Ratings


def skewed_ratings() -> Ratings:
    """Return ratings of 60 users and 40 items, a few of them very popular."""
    rng = np.random.default_rng(11)
    users, items = rng.integers(0, 60, 900), (40 * rng.random(900) ** 3).astype(int)
    return Ratings.of(users, items, rng.uniform(1, 5, 900), scale=(1, 5))


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_the_grid_is_filled_like_the_reference(size: int) -> None:
    ratings = skewed_ratings()
    grid = BlockGrid.build(ratings, size=size)
    layout = grid.layout
    user_places = np.argsort(layout.user_order)
    strips = np.repeat(np.arange(size, dtype=np.int32), np.diff(layout.strip_starts))[user_places]
    order = fill_reference(ratings.users, ratings.items, user_places, strips, layout.item_tiers)
    within_strip = user_places - layout.strip_starts[strips]
    np.testing.assert_array_equal(grid.ratings.users, within_strip[ratings.users][order])
    np.testing.assert_array_equal(grid.ratings.items, layout.places_in_tier[ratings.items][order])
    np.testing.assert_array_equal(grid.table[grid.ratings.codes], ratings.values[order])


def test_tiers_are_counted_like_the_reference() -> None:
    ratings = skewed_ratings()
    rng = np.random.default_rng(1)
    user_order = rng.permutation(ratings.n_users)
    tiers = rng.integers(0, 4, ratings.n_items).astype(np.int32)
    chosen = np.isin(ratings.users, user_order[10:30])
    expected = np.bincount(tiers[ratings.items[chosen]], minlength=4)
    counted = count_tiers(ratings.indptr, ratings.items, user_order[10:30], tiers, 4)
    np.testing.assert_array_equal(counted, expected)


@pytest.mark.parametrize("n_values", [1, 5, 256, 257, 70_000])
def test_values_survive_whatever_their_number(n_values: int) -> None:
    rng = np.random.default_rng(n_values)
    values = rng.permutation(np.repeat(np.linspace(-10, 10, n_values, dtype=np.float32), 2))
    np.testing.assert_array_equal(distinct_values(values), np.unique(values))
    ratings = Ratings.of(np.arange(len(values)), np.zeros(len(values), int), values, scale=(-10, 10))
    grid = BlockGrid.build(ratings, size=3)
    np.testing.assert_array_equal(np.sort(grid.table[grid.ratings.codes]), np.sort(values))


@pytest.fixture(params=range(20))
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def test_values_are_collected_and_summed_like_the_references(rng: np.random.Generator) -> None:
    values = (rng.integers(-300, 300, 500) / 64).astype(np.float32)
    table = np.empty(600, np.float32)
    filled = collect_values(values, table, 0)
    np.testing.assert_array_equal(table[:filled], collect_values_reference(values))
    assert sum_on_grid(values, -5.0, 5.0) == sum_on_grid_reference(values, -5.0, 5.0)
    assert collect_values(values, np.empty(3, np.float32), 0) == -1


def test_tiers_of_a_strip_are_counted_like_the_reference(rng: np.random.Generator) -> None:
    counts = rng.integers(0, 6, 12)
    indptr, users = np.concatenate([[0], np.cumsum(counts)]), np.repeat(np.arange(12, dtype=np.int32), counts)
    items, tiers = rng.integers(0, 7, len(users)).astype(np.int32), rng.integers(0, 3, 7).astype(np.int32)
    order = rng.permutation(12)
    counted = count_tiers(indptr, items, order[3:9], tiers, 3)
    np.testing.assert_array_equal(counted, count_tiers_reference(users, items, order[3:9], tiers, 3))
