"""Small matrices and vectors of one person, in the order of operations as written.

>>> inverse = np.empty((2, 2))
>>> invert(np.array([[2.0, 1.0], [1.0, 1.0]]), inverse)
>>> inverse.tolist()
[[1.0, -1.0], [-1.0, 2.0]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.jit import kernel

LEAST_PIVOT = 1e-30  # what rounding may leave of a matrix that is positive definite


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


@kernel
def stretch(row: NDArray[np.float64], length: float) -> None:
    """Scale row (out) to a length, unless it is 0."""
    total = 0.0
    for k in range(len(row)):
        total += row[k] * row[k]
    if 0.0 < total < np.inf:
        factor = length / np.sqrt(total)
        for k in range(len(row)):
            row[k] *= factor
