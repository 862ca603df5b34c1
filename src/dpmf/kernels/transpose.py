"""Transposing compressed rows by a counting sort, in pieces that write to different places.

>>> import numpy as np
>>> by_user = Csr(np.array([0, 2, 3]), np.array([0, 1, 0], np.int32), np.array([5, 4, 3], np.float32))
>>> [array.tolist() for array in transpose_reference(by_user, 2)]
[[0, 2, 3], [0, 1, 0], [5.0, 3.0, 4.0]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.jit import kernel


@kernel
def count_columns(columns: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    """Add to counts (out) how often each column occurs."""
    for column in columns:
        counts[column] += 1


def count_columns_reference(columns: NDArray[np.int32], n_columns: int) -> NDArray[np.int64]:
    """Return what `count_columns` adds to zeros."""
    return np.bincount(columns, minlength=n_columns)


@kernel
def scatter_rows(
    by_row: Csr,
    start: int,
    stop: int,
    places: NDArray[np.int64],  # out: where the next rating of each column goes
    rows: NDArray[np.int32],  # out
    by_column: NDArray[np.float32],  # out
) -> None:
    """Write row numbers and values of rows start..stop-1 to their places in the order of columns.

    The slow equivalent, for all rows, is `transpose_reference`.
    """
    indptr, columns, values = by_row
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            place = places[columns[p]]
            places[columns[p]] += 1
            rows[place] = i
            by_column[place] = values[p]


@kernel
def scatter_pattern(
    by_row: CsrPattern,
    places: NDArray[np.int64],  # out: where the next rating of each column goes
    rows: NDArray[np.int32],  # out
) -> None:
    """Write the numbers of all rows to their places in the order of columns, as `scatter_rows` does."""
    indptr, columns = by_row
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            rows[places[columns[p]]] = i
            places[columns[p]] += 1


def transpose_reference(by_row: Csr, n_columns: int) -> Csr:
    """Return the transposed rows, whose `items` are row numbers, ascending."""
    indptr, columns, values = by_row
    order = np.argsort(columns, kind="stable")
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    starts = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=n_columns))])
    return Csr(starts, rows[order], values[order])
