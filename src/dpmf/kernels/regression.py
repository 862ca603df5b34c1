"""Least squares for many rows whose right-hand sides may come from elsewhere, with noise in them.

Letters: row j (an item, say) with ratings r_i by columns i (users) that have factors u_i, and A_j = Σ u_i u_i' over
them. The right-hand side Σ u_i r_i is `sum_products` in floating-point numbers. In integers it is `add_levels`: there,
factors and ratings are whole numbers, so that every product and every sum is exact, and what one rating can change
follows from the longest row of whole numbers, which `quantize_rows` bounds. `solve_normal_equations` takes any
right-hand side.

>>> U = np.array([[0.6, 0.8]], np.float32)
>>> rows = np.empty((1, 2), np.int64)
>>> quantize_rows(U, 1.0, 1000.0, rows)
>>> rows.tolist()
[[599, 799]]
>>> sums = np.zeros((1, 2), np.int64)
>>> add_levels(CsrPattern(np.array([0, 1]), np.array([0], np.int32)), np.array([3]), 0, 1, rows, sums)
>>> sums.tolist()
[[1797, 2397]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.bounded_sums import SAFETY, clip_norm_reference, copy_clipped
from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.jit import fast_kernel, kernel
from dpmf.kernels.ridge import cholesky_solve


@fast_kernel
def sum_products(
    rated: Csr,
    start: int,
    stop: int,
    U: NDArray[np.float32],
    sums: NDArray[np.float64],  # out
) -> None:
    """Write Σ u_i r_i of rows start..stop-1, shape (rows, K), in double precision."""
    indptr, columns, values = rated
    for j in range(start, stop):
        sums[j] = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            u, r = U[columns[p]], np.float64(values[p])
            for k in range(sums.shape[1]):
                sums[j, k] += r * u[k]


@fast_kernel
def solve_normal_equations(
    rated: CsrPattern,
    start: int,
    stop: int,
    U: NDArray[np.float32],
    ridge: float,
    spread: float,
    right: NDArray[np.float64],
    V: NDArray[np.float32],  # out
) -> None:
    """Solve (A_j + ridge I + spread A_j⁻¹) v_j = right_j for rows start..stop-1, by Cholesky in double precision.

    Args:
        rated: the columns of each row.
        start, stop: the rows.
        U: shape (columns, at least K).
        ridge: above 0, unless `spread` is.
        spread: from 0 on. If right_j has noise of variance s², and v_j was drawn with variance t² in every direction,
            s²/t² makes the likeliest v_j; it is found as A_j w with (A_j² + ridge A_j + spread I) w = right_j.
        right: shape (rows, K).
        V: shape (rows, K).
    """
    indptr, columns = rated
    width = right.shape[1]
    A, B, y = np.empty((width, width)), np.empty((width, width)), np.empty(width)
    for j in range(start, stop):
        A[:] = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            u = U[columns[p]]
            for a in range(width):
                ua, row = np.float64(u[a]), A[a]
                for k in range(a + 1):
                    row[k] += ua * u[k]
        for a in range(width):
            y[a] = right[j, a]
            for k in range(a):
                A[k, a] = A[a, k]
        if spread > 0.0:
            for a in range(width):
                for b in range(a + 1):
                    total = ridge * A[a, b]
                    for k in range(width):
                        total += A[a, k] * A[b, k]
                    B[a, b] = total
                B[a, a] += spread
            cholesky_solve(B, y)
            for a in range(width):
                total = 0.0
                for k in range(width):
                    total += A[a, k] * y[k]
                V[j, a] = np.float32(total)
        else:
            for a in range(width):
                A[a, a] += ridge
            cholesky_solve(A, y)
            for a in range(width):
                V[j, a] = np.float32(y[a])


@kernel
def quantize_rows(U: NDArray[np.float32], radius: float, steps: float, rows: NDArray[np.int64]) -> None:
    """Write U in whole steps to rows (out), same shape; no row is longer than radius · steps.

    Rows that are longer than the radius are scaled to it, those with a number that is not finite become 0, and every
    number is truncated toward 0, which makes no row longer.
    """
    row = np.empty(U.shape[1])
    for i in range(len(U)):
        copy_clipped(U, i, radius, row)
        for k in range(len(row)):
            rows[i, k] = np.int64(row[k] * steps)


@kernel
def add_levels(
    rated: CsrPattern,
    levels: NDArray[np.int64],
    start: int,
    stop: int,
    rows: NDArray[np.int64],
    sums: NDArray[np.int64],  # out
) -> None:
    """Add Σ levels · rows[column] over the ratings of rows start..stop-1 to sums, shape (rows, K).

    Bound: a rating whose level changes by d changes one row of the sums by d times a row of `rows`.
    """
    indptr, columns = rated
    for j in range(start, stop):
        for p in range(indptr[j], indptr[j + 1]):
            level, row = levels[p], rows[columns[p]]
            for k in range(sums.shape[1]):
                sums[j, k] += level * row[k]


@kernel
def scatter_levels(
    rated: CsrPattern,
    levels: NDArray[np.int64],
    start: int,
    stop: int,
    rows: NDArray[np.int64],
    sums: NDArray[np.int64],  # out
) -> None:
    """Add levels · rows[i] to sums[column] for the ratings of rows start..stop-1; sums has shape (columns, K).

    Bound: a rating whose level changes by d changes one row of the sums by d times a row of `rows`.
    """
    indptr, columns = rated
    for i in range(start, stop):
        row = rows[i]
        for p in range(indptr[i], indptr[i + 1]):
            for k in range(sums.shape[1]):
                sums[columns[p], k] += levels[p] * row[k]


def sum_products_reference(columns: NDArray[Any], values: NDArray[Any], U: NDArray[Any]) -> NDArray[np.float64]:
    """Return Σ u_i r_i of one row, shape (K,)."""
    return np.asarray(values.astype(np.float64) @ U[columns])


def quantize_rows_reference(U: NDArray[Any], radius: float, steps: float) -> NDArray[np.int64]:
    """Return what `quantize_rows` writes for finite rows."""
    return np.array([np.trunc(SAFETY * steps * clip_norm_reference(u, radius)) for u in U]).astype(np.int64)


def solve_normal_equations_reference(
    columns: NDArray[Any], U: NDArray[Any], ridge: float, spread: float, right: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return v of one row, shape (K,)."""
    Z = U[columns].astype(np.float64)
    A, one = Z.T @ Z, np.eye(len(right))
    if spread:
        return np.asarray(A @ np.linalg.solve(A @ A + ridge * A + spread * one, right))
    return np.asarray(np.linalg.solve(A + ridge * one, right))


def add_levels_reference(
    columns: NDArray[Any], levels: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return Σ levels · rows[column] of one row, shape (K,)."""
    return np.asarray(levels @ rows[columns])


def scatter_levels_reference(
    columns: NDArray[Any], levels: NDArray[np.int64], row: NDArray[np.int64], n_columns: int
) -> NDArray[np.int64]:
    """Return what one row adds to the sums of all columns, shape (n_columns, K)."""
    sums = np.zeros((n_columns, len(row)), np.int64)
    np.add.at(sums, columns, levels[:, None] * row)
    return sums
