"""Pairs of items that people have are counted as a matrix product would."""

from __future__ import annotations

import numpy as np

from dpmf.kernels.cooccurrence import count_pairs, count_pairs_reference
from dpmf.kernels.csr import CsrPattern


def test_counts_are_those_of_the_reference_in_any_order_of_items() -> None:
    chance = np.random.default_rng(3)
    rows = [chance.permutation(9)[: chance.integers(0, 9)] for _ in range(30)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    owned = CsrPattern(indptr, np.concatenate(rows).astype(np.int32))
    counts = np.zeros((9, 9), np.int32)
    for first, last in ((0, 11), (11, 30)):
        count_pairs(owned, first, last, counts)
    assert (counts + counts.T - np.diag(counts.diagonal()) == count_pairs_reference(owned, 9)).all()
