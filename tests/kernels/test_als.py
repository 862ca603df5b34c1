"""The least-squares kernels against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.kernels.als import (
    add_gramian,
    add_gramian_reference,
    observed_error,
    observed_error_reference,
    solve_rated,
    solve_rated_reference,
)
from dpmf.kernels.csr import Csr
from dpmf.kernels.ridge import Penalties

INDPTR = np.array([0, 5, 5, 6, 26, 326])  # five ratings, none, one, twenty, several panels
N_COLUMNS = 400
MEAN, RIDGE_B, RIDGE_U = 3.3, 0.7, 0.2
WIDTHS = [16, 48, 112]

Problem = tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]


def problem(width: int) -> Problem:
    rng = np.random.default_rng(width)
    rows = [rng.choice(N_COLUMNS, n, replace=False) for n in np.diff(INDPTR)]
    return (
        np.concatenate(rows).astype(np.int32),
        rng.uniform(1, 5, INDPTR[-1]).astype(np.float32),
        rng.normal(0, 0.5, (N_COLUMNS, width)).astype(np.float32),
        rng.normal(0, 0.3, N_COLUMNS).astype(np.float32),
    )


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("width", WIDTHS)
def test_rated_rows_equal_the_closed_form(width: int, exponent: float) -> None:
    columns, values, V, c = problem(width)
    b, U = np.full(5, 9, np.float32), np.full((5, width), 9, np.float32)
    penalties = Penalties(RIDGE_B, RIDGE_U, exponent)
    squared = np.full(5, 9.0)
    solve_rated(Csr(INDPTR, columns, values), 0, 5, V, c, MEAN, penalties, b, U, squared)
    for i in range(5):
        own = slice(INDPTR[i], INDPTR[i + 1])
        expected = np.zeros(width + 1)
        if INDPTR[i + 1] > INDPTR[i]:
            expected = solve_rated_reference(columns[own], values[own], V, c, MEAN, penalties)
        np.testing.assert_allclose(np.r_[b[i], U[i]], expected, rtol=1e-3, atol=1e-4)
        errors = values[own] - MEAN - c[columns[own]] - expected[0] - V[columns[own]] @ expected[1:]
        assert squared[i] == pytest.approx(float((errors**2).sum()), rel=1e-3, abs=1e-5)


def full_objective(
    columns: NDArray[np.int32], weights: NDArray[np.float32], V: NDArray[np.float32], u: NDArray[np.float64]
) -> float:
    preference, confidence = np.zeros(N_COLUMNS), np.ones(N_COLUMNS)
    preference[columns] = 1
    confidence[columns] += weights
    return float((confidence * (preference - V @ u) ** 2).sum() + RIDGE_U * (u**2).sum())


@pytest.mark.parametrize("width", WIDTHS)
def test_observed_error_and_gramian_make_the_objective(width: int) -> None:
    columns, weights, V, _ = problem(width)
    U = np.random.default_rng(1).normal(0, 0.3, (5, width)).astype(np.float32)
    gramian = np.zeros((width, width))
    add_gramian(V, 0, 100, gramian)
    add_gramian(V, 100, N_COLUMNS, gramian)
    np.testing.assert_allclose(gramian, add_gramian_reference(V), rtol=1e-4, atol=1e-3)
    observed = Csr(INDPTR, columns, weights)
    error = observed_error(observed, 0, 5, U, V)
    assert error == pytest.approx(observed_error_reference(observed, U, V), rel=1e-4)
    total = error + float(((U.astype(np.float64).T @ U) * gramian).sum())
    expected = 0.0
    for i in range(5):
        own = slice(INDPTR[i], INDPTR[i + 1])
        expected += full_objective(columns[own], weights[own], V, U[i].astype(np.float64))
        expected -= RIDGE_U * float((U[i].astype(np.float64) ** 2).sum())
    assert total == pytest.approx(expected, rel=1e-4)


def test_only_the_rows_asked_for_are_solved() -> None:
    columns, values, V, c = problem(16)
    b, U = np.full(5, 9, np.float32), np.full((5, 16), 9, np.float32)
    solve_rated(Csr(INDPTR, columns, values), 2, 4, V, c, MEAN, Penalties(RIDGE_B, RIDGE_U, 1.0), b, U, np.zeros(5))
    assert (b == 9).tolist() == [True, True, False, False, True]
    assert (U == 9).all(axis=1).tolist() == [True, True, False, False, True]


def test_a_ridge_too_small_for_single_precision_leaves_the_answer_finite() -> None:
    columns, values, V, c = problem(16)
    V[:, 1] = V[:, 0]
    b, U = np.zeros(5, np.float32), np.zeros((5, 16), np.float32)
    solve_rated(Csr(INDPTR, columns, values), 0, 5, V, c, MEAN, Penalties(0.0, 1e-30, 1.0), b, U, np.zeros(5))
    assert np.isfinite(U).all()
    assert np.isfinite(b).all()
    assert np.abs(U).max() < 1e3
