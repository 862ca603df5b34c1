"""Least squares with given right-hand sides, and sums in whole numbers: the plain functions, and the bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from dpmf.kernels.regression import (
    add_levels,
    add_levels_reference,
    grid_rows,
    solve_given,
    solve_given_reference,
    sum_products,
)

INDPTR = np.array([0, 5, 5, 6, 46])  # five ratings, none, one, forty
any_float = st.floats(width=32, allow_nan=True, allow_infinity=True)


def problem(n_factors: int) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
    rng = np.random.default_rng(n_factors)
    values, U = rng.uniform(1, 5, 46), rng.normal(0, 1, (30, n_factors))
    return rng.integers(0, 30, 46).astype(np.int32), values.astype(np.float32), U.astype(np.float32)


@pytest.mark.parametrize("spread", [0.0, 2.5])
@pytest.mark.parametrize("n_factors", [1, 8, 50])
def test_rows_are_solved_as_by_numpy(n_factors: int, spread: float) -> None:
    columns, values, U = problem(n_factors)
    right, V = np.full((4, n_factors), 9.0), np.full((4, n_factors), 9, np.float32)
    sum_products(INDPTR, columns, values, 0, 4, U, right)
    for j in range(4):
        own = slice(INDPTR[j], INDPTR[j + 1])
        np.testing.assert_allclose(right[j], values[own].astype(float) @ U[columns[own]], rtol=1e-10, atol=1e-10)
    right += np.random.default_rng(0).normal(0, 1, right.shape)
    solve_given(INDPTR, columns, 0, 4, U, 0.7, spread, right, V)
    for j in range(4):
        own = slice(INDPTR[j], INDPTR[j + 1])
        expected = solve_given_reference(columns[own], U, 0.7, spread, right[j])
        np.testing.assert_allclose(V[j], expected, rtol=1e-5, atol=1e-5)
    if spread:
        assert not V[1].any()  # nothing is known about it


def test_only_the_rows_asked_for_are_touched() -> None:
    columns, values, U = problem(3)
    right, V = np.full((4, 3), 9.0), np.full((4, 3), 9, np.float32)
    sum_products(INDPTR, columns, values, 2, 3, U, right)
    solve_given(INDPTR, columns, 2, 3, U, 1.0, 0.0, right, V)
    assert (right == 9).all(axis=1).tolist() == [True, True, False, True]
    assert (V == 9).all(axis=1).tolist() == [True, True, False, True]


def test_whole_numbers_are_summed_exactly() -> None:
    columns, _, U = problem(6)
    rows, sums = np.empty(U.shape, np.int64), np.zeros((4, 6), np.int64)
    grid_rows(U, 1.0, 2.0**30, rows)
    levels = np.random.default_rng(1).integers(0, 25_200, 46)
    add_levels(INDPTR, columns, levels, 0, 4, rows, sums)
    for j in range(4):
        own = slice(INDPTR[j], INDPTR[j + 1])
        np.testing.assert_array_equal(sums[j], add_levels_reference(columns[own], levels[own], rows))


@given(
    U=arrays(np.float32, (3, 4), elements=any_float),
    radius=st.floats(1e-3, 1e3),
    steps=st.floats(1.0, 2.0**40),
)
def test_no_row_is_longer_than_the_radius(U: NDArray[np.float32], radius: float, steps: float) -> None:
    rows = np.full(U.shape, 7, np.int64)
    grid_rows(U, radius, steps, rows)
    for i in range(len(rows)):
        assert sum(int(one) ** 2 for one in rows[i]) <= (radius * steps) ** 2
        if not np.isfinite(U[i]).all():
            assert not rows[i].any()


def test_rows_within_the_radius_stay_where_they_are() -> None:
    U = np.array([[0.3, -0.4], [30.0, -40.0]], np.float32)
    rows = np.empty((2, 2), np.int64)
    grid_rows(U, 1.0, 1e6, rows)
    np.testing.assert_allclose(rows / 1e6, [[0.3, -0.4], [0.6, -0.8]], atol=3e-6)
