"""Coordinates in which a Gramian is the identity.

With G + ridge I = L L' a row v becomes y = L⁻¹v, and a solution u becomes x = L'u: then u·v = x·y, and
u'(G + ridge I)u = ‖x‖². L is found in double precision; rows are transformed in single.

>>> white = whitening_of(np.diag([3.0, 8.0] + [0.0] * 14), 1.0)
>>> rows = np.ones((1, 16), np.float32)
>>> transform_rows(rows, 0, 1, white.root, True, rows)
>>> rows[0, :3].tolist()
[2.0, 3.0, 1.0]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.cholesky import ROWS_PER_STRIP, add_products
from dpmf.kernels.jit import kernel
from dpmf.kernels.ridge import RESOLUTION
from dpmf.kernels.rows import FLOATS_PER_LINE, aligned_rows

_COLUMNS_AT_ONCE = 6 * FLOATS_PER_LINE
_LEAST_PIVOT = 1e-30


class Whitening(NamedTuple):
    """What rows are multiplied by, shape (K, K) each.

    Attributes:
        root: L, lower triangular: x' = u'L.
        inverse: L⁻¹, lower triangular: u' = x'L⁻¹.
        turned: its transpose, upper triangular: y' = v'L⁻¹'.
    """

    root: NDArray[np.float32]
    inverse: NDArray[np.float32]
    turned: NDArray[np.float32]


@kernel
def whitening_of(gramian: NDArray[np.float64], ridge: float) -> Whitening:
    """Return what makes gramian + ridge I the identity; a ridge that single precision would lose is raised."""
    n = len(gramian)
    total = 0.0
    for k in range(n):
        total += gramian[k, k]
    ridge = max(ridge, RESOLUTION * total / n)
    R, inverse = gramian.copy(), np.zeros((n, n))
    for a in range(n):
        R[a, a] += ridge
    for a in range(n):  # the upper triangle of R becomes L'
        scale = 1.0 / np.sqrt(max(R[a, a], _LEAST_PIVOT))
        for k in range(a, n):
            R[a, k] *= scale
        for row in range(a + 1, n):
            factor = R[a, row]
            for k in range(row, n):
                R[row, k] -= factor * R[a, k]
    for a in range(n):
        inverse[a, a] = 1.0
        for row in range(a):
            factor = R[row, a]
            for k in range(row + 1):
                inverse[a, k] -= factor * inverse[row, k]
        scale = 1.0 / R[a, a]
        for k in range(a + 1):
            inverse[a, k] *= scale
    found = aligned_rows(n, n), aligned_rows(n, n), aligned_rows(n, n)
    for a in range(n):
        for k in range(n):
            found[0][a, k] = R[k, a] if k <= a else 0.0
            found[1][a, k] = inverse[a, k]
            found[2][a, k] = inverse[k, a]
    return Whitening(found[0], found[1], found[2])


def whitening_reference(gramian: NDArray[Any], ridge: float) -> Whitening:
    """Return what `whitening_of` returns, in double precision."""
    ridge = max(ridge, RESOLUTION * float(np.trace(gramian)) / len(gramian))
    root = np.linalg.cholesky(gramian + ridge * np.eye(len(gramian)))
    inverse = np.linalg.inv(root)
    return Whitening(root, inverse, inverse.T)


@kernel
def transform_rows(
    rows: NDArray[np.float32],
    start: int,
    stop: int,
    M: NDArray[np.float32],
    is_lower: bool,
    out: NDArray[np.float32],
) -> None:
    """Write rows start..stop-1, times a triangular matrix, to the same rows of out, which may be `rows` itself.

    Args:
        rows: as wide as M, a multiple of 16.
        M: lower or upper triangular, as `is_lower` says: the other half is not visited.
        out: (out).
    """
    width = M.shape[1]
    columns, sums = aligned_rows(width, ROWS_PER_STRIP), aligned_rows(ROWS_PER_STRIP, width)
    columns[:] = np.float32(0)
    for first in range(start, stop, ROWS_PER_STRIP):
        count = min(ROWS_PER_STRIP, stop - first)
        for q in range(count):
            for k in range(width):
                columns[k, q] = rows[first + q, k]
        sums[:] = np.float32(0)
        for left in range(0, width, _COLUMNS_AT_ONCE):
            right = min(left + _COLUMNS_AT_ONCE, width)
            top, bottom = (left, width) if is_lower else (0, right)
            add_products(columns, top, 0, M, top, bottom - top, sums, 0, left, right, False)
        for q in range(count):
            for k in range(width):
                out[first + q, k] = sums[q, k]


def transform_rows_reference(rows: NDArray[Any], M: NDArray[Any]) -> NDArray[np.float64]:
    """Return all rows times M."""
    return np.asarray(rows.astype(np.float64) @ M)
