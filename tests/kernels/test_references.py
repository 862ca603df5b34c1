"""Small kernels against the plain functions beside them, on random data."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.kernels import blocks
from dpmf.kernels import scores as scoring
from dpmf.kernels import sort as ordering


@pytest.fixture(params=range(20))
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def test_order_of_pairs(rng: np.random.Generator) -> None:
    users, items = rng.integers(0, 2, 3).astype(np.int32), rng.integers(0, 2, 3).astype(np.int32)
    assert ordering.pairs_in_order(users, items) == ordering.pairs_in_order_reference(users, items)


def test_row_pointers(rng: np.random.Generator) -> None:
    users = np.sort(rng.integers(0, 9, 30)).astype(np.int32)
    np.testing.assert_array_equal(ordering.row_pointers(users, 12), ordering.row_pointers_reference(users, 12))


def test_ascending_rows(rng: np.random.Generator) -> None:
    indptr, items = np.array([0, 2, 2, 4]), rng.integers(0, 3, 4).astype(np.int32)
    assert ordering.rows_ascend(indptr, items) == ordering.rows_ascend_reference(indptr, items)


def test_ids_in_a_table(rng: np.random.Generator) -> None:
    ids = rng.integers(-5, 15, 40)
    present = np.zeros(20, np.bool_)
    ordering.mark_present(ids, -5, present)
    np.testing.assert_array_equal(present, ordering.mark_present_reference(ids, -5, 20))
    table, codes = rng.integers(-1, 9, 12).astype(np.int32), np.empty(40, np.int32)
    ordering.look_up(ids, -2, table, codes)
    np.testing.assert_array_equal(codes, ordering.look_up_reference(ids, -2, table))


def test_values_and_their_sum(rng: np.random.Generator) -> None:
    values = (rng.integers(-300, 300, 500) / 64).astype(np.float32)
    table = np.empty(600, np.float32)
    filled = blocks.collect_values(values, table, 0)
    np.testing.assert_array_equal(table[:filled], blocks.collect_values_reference(values))
    assert blocks.sum_on_grid(values, -5.0, 5.0) == blocks.sum_on_grid_reference(values, -5.0, 5.0)
    assert blocks.collect_values(values, np.empty(3, np.float32), 0) == -1


def test_tiers_of_a_strip(rng: np.random.Generator) -> None:
    counts = rng.integers(0, 6, 12)
    indptr, users = np.concatenate([[0], np.cumsum(counts)]), np.repeat(np.arange(12, dtype=np.int32), counts)
    items, tiers = rng.integers(0, 7, len(users)).astype(np.int32), rng.integers(0, 3, 7).astype(np.int32)
    order = rng.permutation(12)
    counted = blocks.count_tiers(indptr, items, order[3:9], tiers, 3)
    np.testing.assert_array_equal(counted, blocks.count_tiers_reference(users, items, order[3:9], tiers, 3))


def test_scores_of_a_tile(rng: np.random.Generator) -> None:
    n_factors = int(rng.integers(1, 10))
    u, VT, c = (rng.normal(size=shape).astype(np.float32) for shape in (n_factors, (n_factors, 50), 50))
    tile = np.empty(17, np.float32)
    greatest = scoring.score_tile(u, VT, c, 30, tile)
    np.testing.assert_allclose(tile, scoring.score_tile_reference(u, VT, c, 30, 17), rtol=1e-4, atol=1e-4)
    assert greatest == tile.max()
