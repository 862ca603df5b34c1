"""Inverting a small matrix and rescaling vectors, in the order of operations as written.

>>> inverse = np.empty((2, 2))
>>> invert(np.array([[2.0, 1.0], [1.0, 1.0]]), inverse)
>>> inverse.tolist()
[[1.0, -1.0], [-1.0, 2.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.jit import kernel

LEAST_PIVOT = 1e-30  # rounding may leave less than this, or less than 0, of a pivot that is positive


@kernel
def invert(A: NDArray[np.float64], inverse: NDArray[np.float64]) -> None:
    """Write A⁻¹ to inverse (out) by elimination; A (out) is symmetric, positive definite: pivots need no search."""
    n = len(A)
    inverse[:] = 0.0
    for a in range(n):
        inverse[a, a] = 1.0
    for a in range(n):
        pivot = 1.0 / max(A[a, a], LEAST_PIVOT)
        for k in range(n):
            A[a, k] *= pivot
            inverse[a, k] *= pivot
        for row in range(n):
            if row != a:
                factor = A[row, a]
                for k in range(n):
                    A[row, k] -= factor * A[a, k]
                    inverse[row, k] -= factor * inverse[a, k]


def invert_reference(A: NDArray[Any]) -> NDArray[np.float64]:
    """Return what `invert` writes."""
    return np.asarray(np.linalg.inv(A))


@kernel
def rescale(row: NDArray[np.float64], length: float) -> None:
    """Scale row (out) to a length, unless it is 0."""
    total = 0.0
    for k in range(len(row)):
        total += row[k] * row[k]
    if 0.0 < total < np.inf:
        factor = length / np.sqrt(total)
        for k in range(len(row)):
            row[k] *= factor


@kernel
def rescale_rows(start: int, stop: int, length: float, rows: NDArray[np.float32]) -> None:
    """Scale rows start..stop-1 (out) to a length, except rows of zeros."""
    row = np.empty(rows.shape[1])
    for i in range(start, stop):
        for k in range(len(row)):
            row[k] = rows[i, k]
        rescale(row, length)
        for k in range(len(row)):
            rows[i, k] = np.float32(row[k])


def rescale_rows_reference(length: float, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return what `rescale_rows` makes of all rows, and `rescale` of each."""
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(rows * np.where(lengths > 0, length / np.maximum(lengths, 1e-300), 1.0))


def solve_plainly(A: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return A⁻¹y by NumPy's solver; the least of all answers if A is singular in floating point.

    >>> solve_plainly(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([1.0, 1.0])).tolist()
    [0.5, 0.25]
    """
    try:
        return np.asarray(np.linalg.solve(A, y))
    except np.linalg.LinAlgError:  # factors so long that a penalty is lost beside their squares
        return np.asarray(np.linalg.lstsq(A, y)[0])
