"""The block grid: every rating in exactly one block, equal masses, and nothing but the data decides."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.engine.grid import BlockGrid
from dpmf.engine.layout import equal_masses, grid_size
from dpmf.ratings import Ratings


def random_ratings(n_users: int, n_items: int, n_ratings: int, seed: int) -> Ratings:
    """Return ratings with a few popular items; some users and items may have none."""
    rng = np.random.default_rng(seed)
    users, items = rng.integers(0, n_users, n_ratings), (n_items * rng.random(n_ratings) ** 2).astype(int)
    return Ratings.of(users, items, rng.uniform(1, 5, n_ratings), scale=(1, 5), items=range(n_items))


def triples(users: NDArray[Any], items: NDArray[Any], values: NDArray[Any]) -> list[tuple[Any, ...]]:
    return sorted(zip(users.tolist(), items.tolist(), values.tolist(), strict=True))


def unpacked(grid: BlockGrid) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return user and item places in the whole grid, and values, of all ratings in the order of the blocks."""
    layout, blocks = grid.layout, np.repeat(np.arange(grid.layout.size**2), np.diff(grid.pointers))
    users = grid.ratings.users + layout.strip_starts[blocks // layout.size]
    items = grid.ratings.items + layout.tier_starts[blocks % layout.size]
    return users, items, grid.table[grid.ratings.codes]


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 200), st.integers(1, 8), st.integers(0, 99))
def test_every_rating_is_in_exactly_one_block(users: int, items: int, ratings: int, size: int, seed: int) -> None:
    given = random_ratings(users, items, ratings, seed)
    grid = BlockGrid.build(given, size=size)
    assert grid.pointers[0] == 0
    assert grid.pointers[-1] == len(grid) == len(given)
    assert (np.diff(grid.pointers) >= 0).all()
    in_users, in_items, values = unpacked(grid)
    found = triples(grid.layout.user_order[in_users], grid.layout.item_order[in_items], values)
    assert found == triples(given.users, given.items, given.values)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 300), st.integers(1, 8), st.integers(0, 99))
def test_blocks_of_different_strips_and_tiers_share_nobody_and_nothing(
    users: int, items: int, ratings: int, size: int, seed: int
) -> None:
    grid = BlockGrid.build(random_ratings(users, items, ratings, seed), size=size)
    in_users, in_items, _ = unpacked(grid)
    strip_of: dict[int, int] = {}
    tier_of: dict[int, int] = {}
    for block in range(size * size):
        part = slice(grid.pointers[block], grid.pointers[block + 1])
        assert (np.diff(in_users[part]) >= 0).all()  # ordered by user inside a block
        assert {strip_of.setdefault(user, block // size) for user in in_users[part].tolist()} <= {block // size}
        assert {tier_of.setdefault(item, block % size) for item in in_items[part].tolist()} <= {block % size}


def test_strips_and_tiers_have_about_equal_mass() -> None:
    ratings = random_ratings(2000, 1000, 40_000, seed=1)
    grid = BlockGrid.build(ratings, size=8)
    counts = np.diff(grid.pointers).reshape(8, 8)
    even = len(ratings) / 8
    assert np.abs(counts.sum(axis=1) - even).max() <= np.diff(ratings.indptr).max()
    assert np.abs(counts.sum(axis=0) - even).max() <= np.bincount(ratings.items).max()


def test_items_are_numbered_by_popularity() -> None:
    ratings = random_ratings(50, 30, 500, seed=2)
    popularity = np.bincount(ratings.items, minlength=30)[BlockGrid.build(ratings, size=3).layout.item_order]
    assert (np.diff(popularity) <= 0).all()


def test_more_strips_than_users_leave_blocks_empty() -> None:
    ratings = Ratings.of([1, 1, 2], [1, 2, 1], [5, 4, 3], scale=(1, 5))
    grid = BlockGrid.build(ratings, size=8)
    assert grid.pointers.shape == (65,)
    assert np.count_nonzero(np.diff(grid.pointers)) <= 3
    assert len(grid) == 3


def test_the_grid_does_not_depend_on_threads() -> None:
    ratings = random_ratings(500, 200, 10_000, seed=3)
    one, four = (BlockGrid.build(ratings, size=7, n_threads=n_threads) for n_threads in (1, 4))
    for ours, theirs in zip((one.pointers, *unpacked(one)), (four.pointers, *unpacked(four)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_persons_place_among_others_does_not_depend_on_who_else_is_there() -> None:
    everyone = random_ratings(40, 20, 400, seed=4)
    without_one = everyone.select(everyone.users != 17)
    orders = []
    for ratings in (everyone, Ratings.of(without_one.users, without_one.items, without_one.values, scale=(1, 5))):
        grid = BlockGrid.build(ratings, size=2)
        orders.append([ratings.user_ids[user] for user in grid.layout.user_order.tolist()])
    assert [user for user in orders[0] if user != 17] == orders[1]


@pytest.mark.parametrize(
    ("n_ratings", "size"),
    [
        (1, 1),
        (20_000, 1),
        (79_999, 1),
        (80_000, 2),
        (320_000, 4),
        (10**6, 7),
        (9 * 10**6, 8),
        (5 * 10**7, 16),
        (10**9, 16),
    ],
)
def test_size_grows_with_the_data_up_to_a_limit(n_ratings: int, size: int) -> None:
    assert grid_size(n_ratings) == size


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 8))
def test_equal_masses_are_in_order_and_nearly_equal(masses: list[int], parts: int) -> None:
    weights = np.array(masses, np.int64)
    starts = equal_masses(weights, parts)
    assert starts[0] == 0
    assert starts[-1] == len(masses)
    assert (np.diff(starts) >= 0).all()
    found = [weights[first:last].sum() for first, last in pairwise(starts)]
    assert max(abs(mass - weights.sum() / parts) for mass in found) <= max(masses, default=0) + 1
