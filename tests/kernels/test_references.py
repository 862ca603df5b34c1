"""Small kernels against the plain functions beside them, on random data."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.kernels import blocks as dealing


@pytest.fixture(params=range(20))
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def test_values_and_their_sum(rng: np.random.Generator) -> None:
    values = (rng.integers(-300, 300, 500) / 64).astype(np.float32)
    table = np.empty(600, np.float32)
    filled = dealing.collect_values(values, table, 0)
    np.testing.assert_array_equal(table[:filled], dealing.collect_values_reference(values))
    assert dealing.sum_on_grid(values, -5.0, 5.0) == dealing.sum_on_grid_reference(values, -5.0, 5.0)
    assert dealing.collect_values(values, np.empty(3, np.float32), 0) == -1


def test_tiers_of_a_strip(rng: np.random.Generator) -> None:
    counts = rng.integers(0, 6, 12)
    indptr, users = np.concatenate([[0], np.cumsum(counts)]), np.repeat(np.arange(12, dtype=np.int32), counts)
    items, tiers = rng.integers(0, 7, len(users)).astype(np.int32), rng.integers(0, 3, 7).astype(np.int32)
    order = rng.permutation(12)
    counted = dealing.count_tiers(indptr, items, order, 3, 9, tiers, 3)
    np.testing.assert_array_equal(counted, dealing.count_tiers_reference(users, items, order[3:9], tiers, 3))
