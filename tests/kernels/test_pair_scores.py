"""Scores from a person's own items equal the dense product."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.kernels.csr import Csr
from dpmf.kernels.pair_scores import score_head, score_head_of_one, score_head_reference


def rows(n_rows: int, n_columns: int, most: int, rng: np.random.Generator) -> Csr:
    """Return rows of random length, up to `most`, of random values."""
    found = [np.sort(rng.choice(n_columns, rng.integers(0, most + 1), replace=False)) for _ in range(n_rows)]
    indptr = np.cumsum([0, *map(len, found)])
    return Csr(indptr, np.concatenate(found).astype(np.int32), rng.normal(size=indptr[-1]).astype(np.float32))


@pytest.mark.parametrize(("n_items", "n_factors"), [(1, 1), (7, 0), (130, 6), (300, 33)])
def test_scores_equal_the_reference(n_items: int, n_factors: int) -> None:
    rng = np.random.default_rng(n_items)
    left, right = rng.normal(size=(2, n_items, n_factors)).astype(np.float32)
    owned, pairs = rows(9, n_items, min(n_items, 20), rng), rows(n_items, n_items, min(n_items, 5), rng)
    columns = np.ascontiguousarray(right.T)
    expected = score_head_reference(owned, left, columns, pairs)
    for start, stop in ((0, 9), (3, 8), (4, 4)):
        out = np.full((stop - start, n_items), np.nan, np.float32)
        score_head(owned, left, columns, pairs, start, stop, out)
        np.testing.assert_allclose(out, expected[start:stop], rtol=1e-4, atol=1e-4)
    for i, scores in enumerate(expected):
        own = slice(owned.indptr[i], owned.indptr[i + 1])
        found = score_head_of_one(owned.items[own], owned.values[own], left, right, pairs)
        np.testing.assert_allclose(found, scores, rtol=1e-4, atol=1e-4)
