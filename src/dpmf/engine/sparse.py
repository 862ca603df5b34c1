"""Ratings in sparse rows, by user or by item, and threads that visit all rows.

>>> from dpmf.ratings import Ratings
>>> ratings = Ratings.of([1, 1, 2], [7, 8, 7], [5, 4, 3], scale=(1, 5))
>>> users = SparseRows.by_user(ratings)
>>> items = users.transposed(ratings.n_items)
>>> items.indptr.tolist(), items.columns.tolist(), items.values.tolist()
([0, 2, 3], [0, 1, 0], [5.0, 3.0, 4.0])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.threads import run_tasks
from dpmf.kernels.csr import Csr
from dpmf.kernels.transpose import count_columns, scatter_rows
from dpmf.ratings import Ratings

_COST_PER_TASK = 1 << 15  # about two milliseconds with 64 factors
_ROWS_COUNT_AS = 64  # ratings: the cost of solving for a row


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Ratings in compressed sparse rows: one row per user, or one per item.

    Attributes:
        indptr: shape (n_rows + 1,), where each row's ratings begin.
        columns: shape (n,), int32, the items, or the users; ascending in every row.
        values: shape (n,), float32.
    """

    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]

    @classmethod
    def by_user(cls, ratings: Ratings) -> SparseRows:
        """Return the ratings of each user, without a copy."""
        return cls(ratings.indptr, ratings.items, ratings.values)

    def with_values(self, values: NDArray[np.float32]) -> SparseRows:
        """Return the same pairs with other values."""
        return replace(self, values=values)

    def transposed(self, n_columns: int, n_threads: int = 1) -> SparseRows:
        """Return the rows of the transposed matrix: of items, if these are of users."""
        bounds = np.searchsorted(self.indptr, np.linspace(0, len(self.columns), n_threads + 1).astype(np.int64))
        bounds[-1] = self.n_rows
        places = np.zeros((n_threads, n_columns), np.int64)

        def count(piece: int) -> None:
            first, last = self.indptr[bounds[piece]], self.indptr[bounds[piece + 1]]
            count_columns(self.columns[first:last], places[piece])

        run_tasks(count, n_threads, n_threads)
        indptr = np.concatenate([[0], np.cumsum(places.sum(axis=0))])
        places[:] = np.cumsum(places, axis=0) - places + indptr[:-1]
        rows, values = np.empty_like(self.columns), np.empty_like(self.values)

        def scatter(piece: int) -> None:
            scatter_rows(self.csr, bounds[piece], bounds[piece + 1], places[piece], rows, values)

        run_tasks(scatter, n_threads, n_threads)
        return SparseRows(indptr, rows, values)

    def visit(self, work: Callable[[int, int], float], n_threads: int) -> float:
        """Call work(start, stop) for all rows, in tasks of about equal cost, and return the sum of the results.

        Neither the tasks nor the order in which results are added depend on the number of threads. Rows are never
        split: even the longest take a small part of the total time.
        """
        cost = self.indptr + _ROWS_COUNT_AS * np.arange(self.n_rows + 1)
        n_tasks = max(1, int(cost[-1]) // _COST_PER_TASK)
        bounds = np.searchsorted(cost, np.linspace(0, cost[-1], n_tasks + 1).astype(np.int64))
        results = np.zeros(n_tasks)

        def task(number: int) -> None:
            results[number] = work(int(bounds[number]), int(bounds[number + 1]))

        run_tasks(task, n_tasks, n_threads)
        return float(results.sum())

    @property
    def csr(self) -> Csr:
        """The rows as kernels take them; shares memory with this object."""
        return Csr(self.indptr, self.columns, self.values)

    @property
    def n_rows(self) -> int:
        """The number of rows, including rows without ratings."""
        return len(self.indptr) - 1
