"""Exact least squares for many rows at once: normal equations and Cholesky factors in single precision.

Rows are users and columns items, or the other way round with the ratings transposed. For one row with ratings r_j of
columns j, `solve_rated` minimises over (b, u)

    Σ_j (r_j - mean - c_j - b - u·v_j)² + n^exponent (ridge_b b² + ridge_u ‖u‖²),    n the number of its ratings.

Factor rows have a multiple of 16 columns. Every row is solved by itself, so the result does not depend on how rows are
shared out. `add_gramian` and `observed_error` are what the objective of observations is made of, which
`dpmf.kernels.conjugate` minimises.

>>> import numpy as np
>>> add_gramian_reference(np.array([[1.0, 2.0]])).tolist()
[[1.0, 2.0], [2.0, 4.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.cholesky import ROWS_PER_STRIP, add_products, copy_line, dot_lines, eliminate
from dpmf.kernels.csr import Csr
from dpmf.kernels.jit import fast_kernel
from dpmf.kernels.ridge import RESOLUTION, Penalties, solve_person
from dpmf.kernels.rows import FLOATS_PER_LINE, aligned_rows

_PANEL = 64  # factor rows brought together at a time: with 64 factors they take a third of a first-level cache
_GRAMIAN_ROWS = 512  # summed in single precision before they are added up in double


@fast_kernel
def solve_rated(
    rated: Csr,
    start: int,
    stop: int,
    V: NDArray[np.float32],
    c: NDArray[np.float32],
    mean: float,
    penalties: Penalties,
    b: NDArray[np.float32],  # out
    U: NDArray[np.float32],  # out
    errors: NDArray[np.float64],  # out
) -> None:
    """Solve for rows start..stop-1, and write the sum of each one's squared errors; a row without ratings gets zeros.

    The slow equivalent, for one row, is `solve_rated_reference`.
    """
    indptr, columns, values = rated
    ridge_b, ridge_u, exponent = penalties
    width = V.shape[1]
    A, Z = aligned_rows(width, width + FLOATS_PER_LINE), aligned_rows(_PANEL, width)
    right, B = aligned_rows(ROWS_PER_STRIP, width), aligned_rows(_PANEL, FLOATS_PER_LINE)
    nothing = np.zeros(A.shape, np.float32)
    B[:] = np.float32(0)
    B[:, 1] = np.float32(1)
    for i in range(start, stop):
        n = indptr[i + 1] - indptr[i]
        if n == 0:
            b[i] = np.float32(0)
            U[i] = np.float32(0)
            errors[i] = 0.0
            continue
        _copy_upper(nothing, A)
        right[:] = np.float32(0)  # Σ e_j v_j and Σ v_j
        e_sum, e_squared = 0.0, 0.0
        for first in range(indptr[i], indptr[i + 1], _PANEL):
            count = min(indptr[i + 1] - first, _PANEL)
            for r in range(count):
                j = columns[first + r]
                e = values[first + r] - np.float32(mean) - c[j]
                e_sum += e
                e_squared += e * e
                B[r, 0] = e
                _copy_row(V, j, Z, r)
            _add_gramian(Z, count, A)
            add_products(B, 0, 0, Z, 0, count, right, 0, 0, width, False)
        scale = np.float64(n) ** exponent
        ridge = _add_ridge(A, ridge_u * scale)
        _factorize(A, right)
        ss, sy, yy = 0.0, 0.0, 0.0
        for k in range(width):
            y, s = np.float64(A[k, width]), np.float64(A[k, width + 1])
            ss += s * s
            sy += s * y
            yy += y * y
        bias = (e_sum - sy) / (n + ridge_b * scale - ss)
        length = _substitute(A, np.float32(bias), U[i])
        b[i] = np.float32(bias)
        # The normal equations being met, squared errors and penalties add up to Σ e² - b Σ e - u·Σ e v.
        errors[i] = e_squared - bias * e_sum - (yy - bias * sy) - ridge_b * scale * bias * bias - ridge * length


@fast_kernel
def add_gramian(V: NDArray[np.float32], start: int, stop: int, gramian: NDArray[np.float64]) -> None:
    """Add Σ v v' over rows start..stop-1 to gramian (out), shape (width, width)."""
    width = V.shape[1]
    part = aligned_rows(width, width)
    for first in range(start, stop, _GRAMIAN_ROWS):
        count = min(stop - first, _GRAMIAN_ROWS)
        part[:] = np.float32(0)
        for a in range(0, width, ROWS_PER_STRIP):
            add_products(V, first, a, V, first, count, part, a, a - a % FLOATS_PER_LINE, width, False)
        for a in range(width):
            gramian[a, a] += part[a, a]
            for k in range(a + 1, width):
                gramian[a, k] += part[a, k]
                gramian[k, a] += part[a, k]


@fast_kernel
def observed_error(
    observed: Csr,
    start: int,
    stop: int,
    U: NDArray[np.float32],
    V: NDArray[np.float32],
) -> float:
    """Return Σ (1 + w) (1 - u·v)² - (u·v)² over the observations of rows start..stop-1; their values are w."""
    indptr, columns, weights = observed
    width = V.shape[1]
    total = 0.0
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            at = np.int64(columns[p]) * width
            score = np.float64(dot_lines(U, i * width, V, at, width // FLOATS_PER_LINE))
            total += (1.0 + weights[p]) * (1.0 - score) ** 2 - score**2
    return total


@fast_kernel
def _copy_row(V: NDArray[np.float32], j: int, Z: NDArray[np.float32], r: int) -> None:
    """Write row j of V to row r of Z (out)."""
    width = V.shape[1]
    for k in range(0, width, FLOATS_PER_LINE):
        copy_line(V, np.int64(j) * width + k, Z, r * width + k, np.float32(1))


@fast_kernel
def _copy_upper(source: NDArray[np.float32], A: NDArray[np.float32]) -> None:
    """Write the lines that reach into the upper triangle, and those to the right of it, to A (out)."""
    n, width = A.shape
    for a in range(n):
        for k in range(a - a % FLOATS_PER_LINE, width, FLOATS_PER_LINE):
            copy_line(source, a * width + k, A, a * width + k, np.float32(1))


@fast_kernel
def _add_gramian(Z: NDArray[np.float32], count: int, A: NDArray[np.float32]) -> None:
    """Add Σ_r Z[r]' Z[r] over the first rows to the upper triangle of A (out); what is below it has no meaning."""
    width = Z.shape[1]
    for a in range(0, width, ROWS_PER_STRIP):
        add_products(Z, 0, a, Z, 0, count, A, a, a - a % FLOATS_PER_LINE, width, False)


@fast_kernel
def _add_ridge(A: NDArray[np.float32], ridge: float) -> float:
    """Add to the diagonal of A (out) what was asked for, or as much as single precision needs; return it."""
    total = 0.0
    for k in range(len(A)):
        total += A[k, k]
    ridge = max(ridge, RESOLUTION * total / len(A))
    for k in range(len(A)):
        A[k, k] += np.float32(ridge)
    return ridge


@fast_kernel
def _factorize(A: NDArray[np.float32], right: NDArray[np.float32]) -> None:
    """Overwrite the upper triangle of A (out) with R where R'R = A, and its last line with R'⁻¹y and R'⁻¹s.

    y and s are the first two rows of `right`. The last line takes part in the elimination like any other, so the
    forward substitution costs next to nothing.
    """
    n = len(A)
    for k in range(n):
        A[k, n] = right[0, k]
        A[k, n + 1] = right[1, k]
    for a in range(0, n, ROWS_PER_STRIP):
        add_products(A, 0, a, A, 0, a, A, a, a - a % FLOATS_PER_LINE, n + FLOATS_PER_LINE, True)
        eliminate(A, a)


@fast_kernel
def _substitute(A: NDArray[np.float32], bias: np.float32, u: NDArray[np.float32]) -> float:
    """Write to u (out) the solution of R u = y - bias s, y and s being in the last line of A; return ‖u‖²."""
    n, width = A.shape
    u[:] = np.float32(0)
    length = 0.0
    for i in range(n - 1, -1, -1):
        first = i - i % FLOATS_PER_LINE
        known = dot_lines(A, i * width + first, u, first, (n - first) // FLOATS_PER_LINE)
        u[i] = (A[i, n] - bias * A[i, n + 1] - known) / A[i, i]
        length += np.float64(u[i]) * np.float64(u[i])
    return length


def solve_rated_reference(
    columns: NDArray[Any],
    values: NDArray[Any],
    V: NDArray[Any],
    c: NDArray[Any],
    mean: float,
    penalties: Penalties,
) -> NDArray[np.float64]:
    """Return (b, u) of one row, shape (K + 1,), by NumPy's solver."""
    scale = float(len(columns)) ** penalties.exponent
    scaled = Penalties(penalties.bias * scale, penalties.factors * scale, exponent=0.0)
    return solve_person(columns, values, V, c, mean, scaled)


def add_gramian_reference(V: NDArray[Any]) -> NDArray[np.float64]:
    """Return what `add_gramian` adds for all rows."""
    return np.asarray(V.astype(np.float64).T @ V)


def observed_error_reference(observed: Csr, U: NDArray[Any], V: NDArray[Any]) -> float:
    """Return what `observed_error` returns for all rows."""
    rows = np.repeat(np.arange(len(U)), np.diff(observed.indptr))
    scores = np.einsum("nk,nk->n", U[rows], V[observed.items], dtype=np.float64)
    return float(((1.0 + observed.values) * (1.0 - scores) ** 2 - scores**2).sum())
