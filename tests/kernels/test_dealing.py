"""Dealing ratings into blocks against a sort."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.engine.grid import BlockGrid, equal_masses
from dpmf.kernels.dealing import count_blocks, deal_reference
from dpmf.ratings import Ratings


def skewed_ratings() -> Ratings:
    """Return ratings of 60 users and 40 items, a few of them very popular."""
    rng = np.random.default_rng(11)
    users, items = rng.integers(0, 60, 900), (40 * rng.random(900) ** 3).astype(int)
    return Ratings.of(users, items, rng.uniform(1, 5, 900), scale=(1, 5))


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_the_grid_deals_like_the_reference(size: int) -> None:
    ratings = skewed_ratings()
    grid = BlockGrid.build(ratings, size=size)
    user_places, item_places = np.argsort(grid.user_order), np.argsort(grid.item_order)
    strips = equal_masses(np.diff(ratings.indptr)[grid.user_order], size)[user_places]
    tiers = equal_masses(np.bincount(ratings.items)[grid.item_order], size)[item_places]
    order = deal_reference(ratings.users, ratings.items, user_places, strips, tiers)
    np.testing.assert_array_equal(grid.users, user_places[ratings.users][order])
    np.testing.assert_array_equal(grid.items, item_places[ratings.items][order])
    np.testing.assert_array_equal(grid.values, ratings.values[order])


def test_blocks_are_counted_like_the_reference() -> None:
    ratings = skewed_ratings()
    rng = np.random.default_rng(1)
    user_order = rng.permutation(ratings.n_users)
    strips = np.sort(rng.integers(0, 4, ratings.n_users)).astype(np.int32)
    tiers = rng.integers(0, 4, ratings.n_items).astype(np.int32)
    expected = np.zeros((4, 4), np.int64)
    np.add.at(expected, (strips[np.argsort(user_order)][ratings.users], tiers[ratings.items]), 1)
    counted = count_blocks(ratings.indptr, ratings.items, user_order, strips, tiers, 4)
    np.testing.assert_array_equal(counted, expected)
