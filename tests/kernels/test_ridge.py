"""The ridge kernel against the closed form."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr
from dpmf.kernels.ridge import (
    Penalties,
    cholesky_solve,
    cholesky_solve_reference,
    solve_people,
    solve_person,
    squared_errors,
    squared_errors_reference,
)

INDPTR = np.array([0, 5, 5, 6, 26])  # five ratings, none, one, twenty
MEAN, RIDGE_B, RIDGE_U = 3.3, 0.7, 0.2


def problem(n_factors: int) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    rng = np.random.default_rng(n_factors)
    return (
        rng.integers(0, 30, 26).astype(np.int32),
        rng.uniform(1, 5, 26).astype(np.float32),
        rng.normal(0, 1, (30, n_factors)).astype(np.float32),
        rng.normal(0, 0.3, 30).astype(np.float32),
    )


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("n_factors", [1, 8, 33])
def test_kernel_equals_the_closed_form(n_factors: int, exponent: float) -> None:
    items, values, V, c = problem(n_factors)
    b, U = np.full(4, 9, np.float32), np.full((4, n_factors), 9, np.float32)
    solve_people(Csr(INDPTR, items, values), 0, 4, V, c, MEAN, Penalties(RIDGE_B, RIDGE_U, exponent), b, U)
    for i in range(4):
        own = slice(INDPTR[i], INDPTR[i + 1])
        expected = np.zeros(n_factors + 1)
        if INDPTR[i + 1] > INDPTR[i]:
            penalties = Penalties(RIDGE_B, RIDGE_U, exponent)
            expected = solve_person(items[own], values[own], V, c, MEAN, penalties)
        np.testing.assert_allclose(np.r_[b[i], U[i]], expected, rtol=1e-4, atol=1e-5)


def test_only_the_people_asked_for_are_solved() -> None:
    items, values, V, c = problem(3)
    b, U = np.full(4, 9, np.float32), np.full((4, 3), 9, np.float32)
    solve_people(Csr(INDPTR, items, values), 2, 3, V, c, MEAN, Penalties(RIDGE_B, RIDGE_U, 0.0), b, U)
    assert (b == 9).tolist() == [True, True, False, True]
    assert (U == 9).all(axis=1).tolist() == [True, True, False, True]


@pytest.mark.parametrize("size", [1, 2, 9, 33])
def test_equations_are_solved_as_by_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    Z, y = rng.normal(size=(2 * size, size)), rng.normal(size=size)
    A = Z.T @ Z + np.eye(size)
    expected = cholesky_solve_reference(A, y)
    cholesky_solve(A, y)
    np.testing.assert_allclose(y, expected, rtol=1e-9, atol=1e-12)


def test_squared_errors_equal_the_reference() -> None:
    items, values, V, c = problem(5)
    rng, rated = np.random.default_rng(1), Csr(INDPTR, items, values)
    b, U = rng.normal(size=4).astype(np.float32), rng.normal(size=(4, 5)).astype(np.float32)
    parts = [squared_errors(rated, start, stop, V, c, MEAN, b, U) for start, stop in ((0, 2), (2, 4))]
    assert sum(parts) == pytest.approx(squared_errors_reference(rated, V, c, MEAN, b, U), rel=1e-5)


def test_the_reference_is_the_minimum() -> None:
    """A step in any direction from the closed form makes the objective larger."""
    items, values, V, c = problem(4)

    def objective(x: NDArray[np.float64]) -> float:
        errors = values - MEAN - c[items] - x[0] - V[items] @ x[1:]
        return float((errors**2).sum() + RIDGE_B * x[0] ** 2 + RIDGE_U * (x[1:] ** 2).sum())

    best = solve_person(items, values, V, c, MEAN, Penalties(RIDGE_B, RIDGE_U, 0.0))
    for direction in np.eye(5):
        assert objective(best + 1e-3 * direction) > objective(best)
        assert objective(best - 1e-3 * direction) > objective(best)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_factors_of_any_size_that_is_told_can_be_fitted(size: float) -> None:
    rng = np.random.default_rng(0)
    for n_factors in (4, 16):
        counts = rng.integers(1, 20, 200)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        items = rng.integers(0, 30, indptr[-1]).astype(np.int32)
        values, c = rng.uniform(1, 5, indptr[-1]).astype(np.float32), np.zeros(30, np.float32)
        V = (size * rng.normal(size=(30, n_factors))).astype(np.float32)
        b, U = np.zeros(200, np.float32), np.zeros((200, n_factors), np.float32)
        solve_people(Csr(indptr, items, values), 0, 200, V, c, MEAN, Penalties(RIDGE_B, RIDGE_U, 0.0), b, U)
        assert np.isfinite(b).all()
        assert np.isfinite(U).all()


def test_factors_that_drown_their_penalty_still_have_an_answer() -> None:
    """The penalty is lost beside their squares, so that the equations have no unique solution in floating point."""
    V, c = np.full((2, 3), 1e12, np.float32), np.zeros(2, np.float32)
    found = solve_person(np.array([0, 1]), np.array([4.0, 2.0]), V, c, 3.0, Penalties(0.0, 1e-6, 0.0))
    assert np.isfinite(found).all()


def test_somebody_without_ratings_gets_zeros() -> None:
    none = np.zeros(0, np.int32), np.zeros(0, np.float32)
    found = solve_person(*none, np.ones((2, 3), np.float32), np.zeros(2, np.float32), 3.0, Penalties(0.0, 1.0, 1.0))
    assert found.tolist() == [0.0] * 4
