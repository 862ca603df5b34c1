"""Fits to what people have: the items of a catalogue that are theirs, and those that are not.

For one person who has the items O of a catalogue, minimise over u, p being 1 for what they have and 0 for the rest,

    Σ_all (p_j - c_j - u·v_j)² + α Σ_O (1 - c_j - u·v_j)² + ridge ‖u‖².

All items enter through V'V and Σ c_j v_j, which `common_of` computes once: only a person's own items are visited.

Compiled as written, one person at a time: nobody's factors depend on who else is there, and private sums are made of
them.

>>> V, c = np.eye(2, dtype=np.float32), np.zeros(2, np.float32)
>>> common, pull = common_of(V, c, 1.0)
>>> U = np.zeros((1, 2), np.float32)
>>> solve_observers(np.array([0, 1]), np.array([0], np.int32), 0, 1, V, c, common, pull, 1.0, U)
>>> U.round(3).tolist()
[[0.6669999957084656, 0.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.dense import LEAST_PIVOT
from dpmf.kernels.jit import kernel


@kernel
def common_of(
    V: NDArray[np.float32], c: NDArray[np.float32], ridge: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what everybody's fit has in common: V'V + ridge, shape (K, K), and Σ c_j v_j, shape (K,)."""
    width = V.shape[1]
    gramian, pull, v = np.zeros((width, width)), np.zeros(width), np.empty(width)
    for j in range(len(V)):
        for k in range(width):
            v[k] = V[j, k]
        for k in range(width):
            pull[k] += c[j] * v[k]
            for other in range(width):
                gramian[k, other] += v[k] * v[other]
    for k in range(width):
        gramian[k, k] += ridge
    return gramian, pull


@kernel
def equations(
    items: NDArray[np.int32],
    V: NDArray[np.float32],
    c: NDArray[np.float32],
    common: NDArray[np.float64],
    pull: NDArray[np.float64],
    alpha: float,
    A: NDArray[np.float64],  # out
    y: NDArray[np.float64],  # out
) -> None:
    """Write the normal equations of a person; only items in ascending order and in the catalogue count."""
    n, last = len(y), -1
    v = np.empty(n)
    for k in range(n):
        y[k] = -pull[k]
        for other in range(n):
            A[k, other] = common[k, other]
    for place in range(len(items)):
        j = items[place]
        if not last < j < len(V):
            continue
        last = j
        right = 1.0 + alpha * (1.0 - c[j])
        for k in range(n):
            v[k] = V[j, k]
        for k in range(n):
            y[k] += right * v[k]
            weighted = alpha * v[k]
            for other in range(n):
                A[k, other] += weighted * v[other]


@kernel
def _solve(A: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Overwrite y (out) with A⁻¹y; A (out) is symmetric and positive definite: pivots need no search."""
    n = len(y)
    for a in range(n):
        pivot = 1.0 / max(A[a, a], LEAST_PIVOT)
        for row in range(a + 1, n):
            factor = A[a, row] * pivot
            y[row] -= factor * y[a]
            for k in range(row, n):
                A[row, k] -= factor * A[a, k]
    for a in range(n - 1, -1, -1):
        for k in range(a + 1, n):
            y[a] -= A[a, k] * y[k]
        y[a] /= max(A[a, a], LEAST_PIVOT)


@kernel
def solve_observers(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    start: int,
    stop: int,
    V: NDArray[np.float32],
    c: NDArray[np.float32],
    common: NDArray[np.float64],
    pull: NDArray[np.float64],
    alpha: float,
    U: NDArray[np.float32],  # out
) -> None:
    """Fit people start..stop-1; somebody who has nothing gets zeros, since nothing is known of them."""
    n = V.shape[1]
    A, y = np.empty((n, n)), np.empty(n)
    for i in range(start, stop):
        first, end = indptr[i], indptr[i + 1]
        if end > first:
            equations(items[first:end], V, c, common, pull, alpha, A, y)
            _solve(A, y)
        else:
            y[:] = 0.0
        for k in range(n):
            U[i, k] = np.float32(y[k])


@kernel
def missing_squares(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    start: int,
    stop: int,
    V: NDArray[np.float32],
    c: NDArray[np.float32],
    U: NDArray[np.float32],
) -> float:
    """Return Σ (1 - c_j - u_i·v_j)² over what people start..stop-1 have."""
    total = 0.0
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
            e = 1.0 - c[j]
            for k in range(V.shape[1]):
                e -= U[i, k] * V[j, k]
            total += e * e
    return total


def observer_reference(
    items: NDArray[Any], V: NDArray[Any], c: NDArray[Any], ridge: float, alpha: float
) -> NDArray[np.float64]:
    """Return u of one person, by weighted least squares over the whole catalogue."""
    V, p = V.astype(np.float64), np.isin(np.arange(len(V)), items).astype(np.float64)
    confidence = 1.0 + alpha * p
    A = V.T @ (confidence[:, None] * V) + ridge * np.eye(V.shape[1])
    return np.asarray(np.linalg.solve(A, V.T @ (confidence * (p - c))))
