"""How many people have both of two items.

>>> import numpy as np
>>> owned = CsrPattern(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32))
>>> count_pairs_reference(owned, 2).tolist()
[[1, 1], [1, 2]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.jit import kernel


@kernel
def count_pairs(owned: CsrPattern, start: int, stop: int, counts: NDArray[np.int32]) -> None:
    """Add to counts (out) every pair of items of people start..stop-1 once: an item with itself, or with a later one.

    Together with the other half, and the diagonal once, the counts of everybody are `count_pairs_reference`.
    """
    indptr, items = owned
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            row = counts[items[p]]
            for q in range(p, indptr[i + 1]):
                row[items[q]] += 1


def count_pairs_reference(owned: CsrPattern, n_items: int) -> NDArray[np.int64]:
    """Return X'X, where X has a row for each person, and a one for each of their items."""
    matrix = np.zeros((len(owned.indptr) - 1, n_items), np.int64)
    matrix[np.repeat(np.arange(len(matrix)), np.diff(owned.indptr)), owned.items] = 1
    return np.asarray(matrix.T @ matrix)
