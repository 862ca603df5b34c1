"""Compressed sparse rows, the form in which kernels read ratings.

Row i has the entries indptr[i] to indptr[i + 1] - 1. Rows are users and entries their ratings, or, with the matrix
transposed, rows are items and `items` holds users. A kernel that takes a `CsrPattern` cannot depend on values.

>>> rated = Csr(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.array([4, 5, 3], np.float32))
>>> rated
Csr(2 rows)
>>> rated.pattern.items[rated.indptr[0] : rated.indptr[1]].tolist()
[0, 1]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class CsrPattern(NamedTuple):
    """Which entries there are, without their values.

    Attributes:
        indptr: shape (n_rows + 1,), where each row begins, and where the last one ends.
        items: shape (n,), the column of each entry.
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"CsrPattern({len(self.indptr) - 1} rows)"


class Csr(NamedTuple):
    """Entries with values.

    Attributes:
        indptr: shape (n_rows + 1,), where each row begins, and where the last one ends.
        items: shape (n,), the column of each entry.
        values: shape (n,).
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float32]

    @property
    def csr(self) -> Csr:
        """These rows themselves, as `dpmf.Ratings` offers its own."""
        return self

    @property
    def pattern(self) -> CsrPattern:
        """The same entries without their values."""
        return CsrPattern(self.indptr, self.items)

    def __repr__(self) -> str:
        return f"Csr({len(self.indptr) - 1} rows)"
