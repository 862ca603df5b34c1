"""Ratings from the order of users to the order of items: a counting sort, in pieces that do not touch each other.

>>> import numpy as np
>>> indptr, items, values = np.array([0, 2, 3]), np.array([0, 1, 0], np.int32), np.array([5, 4, 3], np.float32)
>>> transpose_reference(indptr, items, values, 2)
(array([0, 2, 3]), array([0, 1, 0], dtype=int32), array([5., 3., 4.], dtype=float32))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    start: int,
    stop: int,
    places: NDArray[np.int64],  # out: where the next rating of each column goes
    rows: NDArray[np.int32],  # out
    by_column: NDArray[np.float32],  # out
) -> None:
    """Write row numbers and values of rows start..stop-1 to their places in the order of columns."""
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            place = places[columns[p]]
            places[columns[p]] += 1
            rows[place] = i
            by_column[place] = values[p]


@kernel
def scatter_pattern(
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    places: NDArray[np.int64],  # out: where the next rating of each column goes
    rows: NDArray[np.int32],  # out
) -> None:
    """Write row numbers to their places in the order of columns, as `scatter_rows` does, without any values."""
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            rows[places[columns[p]]] = i
            places[columns[p]] += 1


def transpose_reference(
    indptr: NDArray[np.int64], columns: NDArray[np.int32], values: NDArray[np.float32], n_columns: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return indptr, rows and values in the order of columns, rows ascending within each."""
    order = np.argsort(columns, kind="stable")
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    starts = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=n_columns))])
    return starts, rows[order], values[order]
