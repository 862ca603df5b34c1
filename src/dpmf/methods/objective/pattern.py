"""Who rated what: public for the unit "value of one rating", and used without noise.

>>> from dpmf.ratings.synthetic import make
>>> pattern = Pattern.of(make(50, 40))
>>> pattern.by_user.n_rows, pattern.by_item.n_rows
(50, 40)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.sparse import SparseRows
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.files import reserve, scratch_file
from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.regression import sum_products
from dpmf.kernels.transpose import scatter_pattern

_NO_VALUES = np.zeros(0, np.float32)


@dataclass(frozen=True, eq=False)
class Pattern:
    """Pairs of users and items in both orders, without any rating.

    Attributes:
        by_user, by_item: the pairs; their values are empty. Of ratings on disk, they are mapped from it.
    """

    by_user: SparseRows
    by_item: SparseRows

    @classmethod
    def of(cls, ratings: AnyRatings) -> Pattern:
        """Return the pattern of ratings in memory or on disk."""
        if isinstance(ratings, StoredRatings):
            indptr, items = ratings.seen()
            counts = ratings.blocks.item_counts
            with scratch_file(ratings.columns.folder) as file:
                reserve(file, 4 * max(len(items), 1))
                users: NDArray[np.int32] = np.memmap(file, np.int32, "r+")[: len(items)]
        else:
            indptr, items = ratings.indptr, ratings.items
            counts = np.bincount(items, minlength=ratings.n_items)
            users = np.empty(len(items), np.int32)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        scatter_pattern(CsrPattern(indptr, items), starts[:-1].copy(), users)
        return cls(SparseRows(indptr, items, _NO_VALUES), SparseRows(starts, users, _NO_VALUES))

    def __len__(self) -> int:
        return len(self.by_user.columns)


def offset_sums(
    side: SparseRows, factors: NDArray[np.float32], offsets: NDArray[np.float32], n_threads: int
) -> NDArray[np.float64]:
    """Return Σ factors · offsets over the pairs of each row: public if its arguments are.

    Args:
        side: the pairs.
        factors: shape (columns, K).
        offsets: shape (columns,).
        n_threads: how many threads to use.
    """
    sums = np.empty((side.n_rows, factors.shape[1]))

    def work(start: int, stop: int) -> float:
        first, last = side.indptr[start], side.indptr[stop]
        columns = side.columns[first:last]
        pointers = side.indptr[start : stop + 1] - first
        sum_products(Csr(pointers, columns, offsets[columns]), 0, stop - start, factors, sums[start:stop])
        return 0.0

    side.visit(work, n_threads)
    return sums
