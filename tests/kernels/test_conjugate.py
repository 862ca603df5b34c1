"""Steps towards the least squares of observations, against NumPy and against the minimum itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.kernels.conjugate import MOST_STEPS, improve_observed, improve_observed_reference
from dpmf.kernels.csr import Csr

INDPTR = np.array([0, 5, 5, 6, 26, 326])  # five observations, none, one, twenty, hundreds
N_COLUMNS = 400
WIDTHS = [16, 48, 80, 176]  # of one, three, five and eleven lines: in registers, and in rounds

Start = NDArray[np.float32]


def problem(width: int, heaviest: float = 5.0) -> tuple[Csr, NDArray[np.float32], Start]:
    rng = np.random.default_rng(width)
    columns = np.concatenate([rng.choice(N_COLUMNS, n, replace=False) for n in np.diff(INDPTR)]).astype(np.int32)
    Y = np.linalg.qr(rng.normal(size=(N_COLUMNS, width)))[0].astype(np.float32)  # Y'Y = I
    weights = rng.uniform(0, heaviest, len(columns)).astype(np.float32)
    return Csr(INDPTR, columns, weights), Y, rng.normal(0, 0.3, (5, width)).astype(np.float32)


def normal_equations(pairs: Csr, i: int, Y: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    own = slice(INDPTR[i], INDPTR[i + 1])
    Z, w = Y[pairs.items[own]].astype(np.float64), pairs.values[own].astype(np.float64)
    return np.eye(Y.shape[1]) + Z.T @ (w[:, None] * Z), Z.T @ (1 + w)


def full_objective(pairs: Csr, i: int, Y: NDArray[np.float32], x: NDArray[np.float32]) -> float:
    own = slice(INDPTR[i], INDPTR[i + 1])
    preference, confidence = np.zeros(N_COLUMNS), np.ones(N_COLUMNS)
    preference[pairs.items[own]] = 1
    confidence[pairs.items[own]] += pairs.values[own]
    return float((confidence * (preference - Y.astype(np.float64) @ x) ** 2).sum())


@pytest.mark.parametrize("is_cold", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_rows_equal_the_reference(width: int, is_cold: bool) -> None:
    pairs, Y, X = problem(width)
    if is_cold:
        X[:] = 0
    start, objectives = X.copy(), np.full(5, 9.0)
    improve_observed(pairs, 0, 5, Y, X, objectives)
    for i in range(5):
        own = slice(INDPTR[i], INDPTR[i + 1])
        expected, f = np.zeros(width), 0.0
        if INDPTR[i + 1] > INDPTR[i]:
            expected, f = improve_observed_reference(pairs.values[own], Y[pairs.items[own]], start[i])
            assert f == pytest.approx(full_objective(pairs, i, Y, X[i]), rel=1e-5)
        np.testing.assert_allclose(X[i], expected, rtol=1e-3, atol=1e-5)
        assert objectives[i] == pytest.approx(f, rel=1e-5)


@pytest.mark.parametrize("heaviest", [1.0, 40.0])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_visit_leaves_a_tenth_of_the_residual(width: int, heaviest: float) -> None:
    pairs, Y, X = problem(width, heaviest)
    before = X.copy()
    improve_observed(pairs, 0, 5, Y, X, np.zeros(5))
    for i in (0, 2, 3, 4):
        A, b = normal_equations(pairs, i, Y)
        assert np.linalg.norm(b - A @ X[i]) <= 0.1001 * np.linalg.norm(b - A @ before[i])
        assert full_objective(pairs, i, Y, X[i]) < full_objective(pairs, i, Y, before[i])


@pytest.mark.parametrize("width", WIDTHS)
def test_visits_end_at_the_minimum_and_stay_there(width: int) -> None:
    pairs, Y, X = problem(width)
    for _ in range(8):
        improve_observed(pairs, 0, 5, Y, X, np.zeros(5))
    for i in (0, 2, 3, 4):
        np.testing.assert_allclose(X[i], np.linalg.solve(*normal_equations(pairs, i, Y)), rtol=1e-3, atol=1e-4)
    after = X.copy()
    improve_observed(pairs, 0, 5, Y, X, np.zeros(5))
    np.testing.assert_allclose(X, after, atol=1e-5)


def test_weights_that_steps_are_too_few_for_do_no_harm() -> None:
    pairs, Y, X = problem(80, 1e6)
    values = [sum(full_objective(pairs, i, Y, X[i]) for i in (0, 2, 3, 4))]
    for _ in range(3):
        improve_observed(pairs, 0, 5, Y, X, np.zeros(5))
        values.append(sum(full_objective(pairs, i, Y, X[i]) for i in (0, 2, 3, 4)))
    assert np.isfinite(X).all()
    assert values[3] < values[2] < values[1] < values[0]
    assert MOST_STEPS < 80  # which would be enough for anything


def test_only_the_rows_asked_for_are_improved() -> None:
    pairs, Y, X = problem(16)
    before = X.copy()
    improve_observed(pairs, 2, 4, Y, X, np.zeros(5))
    assert (before == X).all(axis=1).tolist() == [True, True, False, False, True]


def test_without_weight_the_observed_columns_still_count() -> None:
    pairs, Y, X = problem(48)
    weightless = Csr(pairs.indptr, pairs.items, np.zeros_like(pairs.values))
    improve_observed(weightless, 0, 5, Y, X, np.zeros(5))
    for i in (0, 2, 3, 4):  # A is the identity
        np.testing.assert_allclose(X[i], normal_equations(weightless, i, Y)[1], atol=1e-5)
