"""Least squares with given right-hand sides, and sums in whole numbers: the plain functions, and the bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.regression import (
    add_levels,
    add_levels_reference,
    quantize_rows,
    quantize_rows_reference,
    scatter_levels,
    scatter_levels_reference,
    solve_normal_equations,
    solve_normal_equations_reference,
    sum_products,
    sum_products_reference,
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
    sum_products(Csr(INDPTR, columns, values), 0, 4, U, right)
    for j in range(4):
        own = slice(INDPTR[j], INDPTR[j + 1])
        expected = sum_products_reference(columns[own], values[own], U)
        np.testing.assert_allclose(right[j], expected, rtol=1e-10, atol=1e-10)
    right += np.random.default_rng(0).normal(0, 1, right.shape)
    solve_normal_equations(CsrPattern(INDPTR, columns), 0, 4, U, 0.7, spread, right, V)
    for j in range(4):
        own = slice(INDPTR[j], INDPTR[j + 1])
        expected = solve_normal_equations_reference(columns[own], U, 0.7, spread, right[j])
        np.testing.assert_allclose(V[j], expected, rtol=1e-5, atol=1e-5)
    if spread:
        assert not V[1].any()  # nothing is known about it


def test_only_the_rows_asked_for_are_touched() -> None:
    columns, values, U = problem(3)
    right, V = np.full((4, 3), 9.0), np.full((4, 3), 9, np.float32)
    sum_products(Csr(INDPTR, columns, values), 2, 3, U, right)
    solve_normal_equations(CsrPattern(INDPTR, columns), 2, 3, U, 1.0, 0.0, right, V)
    assert (right == 9).all(axis=1).tolist() == [True, True, False, True]
    assert (V == 9).all(axis=1).tolist() == [True, True, False, True]


def test_whole_numbers_are_summed_exactly() -> None:
    columns, _, U = problem(6)
    rows, sums = np.empty(U.shape, np.int64), np.zeros((4, 6), np.int64)
    quantize_rows(U, 1.0, 2.0**30, rows)
    levels = np.random.default_rng(1).integers(0, 25_200, 46)
    add_levels(CsrPattern(INDPTR, columns), levels, 0, 4, rows, sums)
    for j in range(4):
        own = slice(INDPTR[j], INDPTR[j + 1])
        np.testing.assert_array_equal(sums[j], add_levels_reference(columns[own], levels[own], rows))


def test_whole_numbers_are_scattered_exactly() -> None:
    columns, _, U = problem(6)
    rows, sums = np.empty(U.shape, np.int64), np.zeros((30, 6), np.int64)
    quantize_rows(U, 1.0, 2.0**30, rows)
    levels, rated = np.random.default_rng(1).integers(0, 25_200, 46), CsrPattern(INDPTR, columns)
    expected = np.zeros(sums.shape, np.int64)
    for start, stop in ((0, 2), (2, 4)):
        scatter_levels(rated, levels, start, stop, rows, sums)
        for i in range(start, stop):
            own = slice(INDPTR[i], INDPTR[i + 1])
            expected += scatter_levels_reference(columns[own], levels[own], rows[i], 30)
        np.testing.assert_array_equal(sums, expected)


def test_scattered_sums_are_those_of_the_transposed_ratings() -> None:
    columns, *_ = problem(3)
    rows = np.arange(12, dtype=np.int64).reshape(4, 3)
    levels, scattered, added = np.arange(46), np.zeros((30, 3), np.int64), np.zeros((30, 3), np.int64)
    scatter_levels(CsrPattern(INDPTR, columns), levels, 0, 4, rows, scattered)
    order = np.argsort(columns, kind="stable")
    users = np.repeat(np.arange(4, dtype=np.int32), np.diff(INDPTR))[order]
    by_column = CsrPattern(np.searchsorted(columns[order], np.arange(31)), users)
    add_levels(by_column, levels[order], 0, 30, rows, added)
    np.testing.assert_array_equal(scattered, added)


@pytest.mark.parametrize("radius", [0.5, 100.0])
def test_rows_are_quantized_like_the_reference(radius: float) -> None:
    *_, U = problem(5)
    rows = np.empty(U.shape, np.int64)
    quantize_rows(U, radius, 2.0**30, rows)
    assert np.abs(rows - quantize_rows_reference(U.astype(np.float64), radius, 2.0**30)).max() <= 1


@given(
    U=arrays(np.float32, (3, 4), elements=any_float),
    radius=st.floats(1e-3, 1e3),
    steps=st.floats(1.0, 2.0**40),
)
def test_no_row_is_longer_than_the_radius(U: NDArray[np.float32], radius: float, steps: float) -> None:
    rows = np.full(U.shape, 7, np.int64)
    quantize_rows(U, radius, steps, rows)
    for i in range(len(rows)):
        assert sum(int(one) ** 2 for one in rows[i]) <= (radius * steps) ** 2
        if not np.isfinite(U[i]).all():
            assert not rows[i].any()


def test_rows_within_the_radius_stay_where_they_are() -> None:
    U = np.array([[0.3, -0.4], [30.0, -40.0]], np.float32)
    rows = np.empty((2, 2), np.int64)
    quantize_rows(U, 1.0, 1e6, rows)
    np.testing.assert_allclose(rows / 1e6, [[0.3, -0.4], [0.6, -0.8]], atol=3e-6)
