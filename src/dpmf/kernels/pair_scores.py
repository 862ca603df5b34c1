"""Scores of items from the items that a person has: low-rank contributions, and those of single pairs.

>>> owned = Csr(np.array([0, 1]), np.array([0], np.int32), np.array([0.5], np.float32))
>>> pairs = Csr(np.array([0, 1, 1]), np.array([1], np.int32), np.array([4], np.float32))
>>> score_head_reference(owned, np.array([[2.0], [1.0]]), np.array([[1.0, 3.0]]), pairs)
array([[1., 5.]])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr
from dpmf.kernels.jit import fast_kernel, kernel
from dpmf.kernels.scores import score_tile

_TILE = 128  # items scored at a time, for one person after the other


@fast_kernel
def add_scaled(total: NDArray[np.float32], row: NDArray[np.float32], weight: np.float32) -> None:
    """Add weight · row to total (out)."""
    for k in range(len(total)):
        total[k] += weight * row[k]


@kernel
def score_head(
    owned: Csr,
    left: NDArray[np.float32],
    columns: NDArray[np.float32],
    pairs: Csr,
    start: int,
    stop: int,
    out: NDArray[np.float32],  # out
) -> None:
    """Write Σ_j w_j (left_j · right_h + pairs_jh) for people start..stop-1 and all items h, shape (stop - start, M).

    Args:
        owned: a row per person: the items j that they have, with their weights w_j.
        left: shape (M, K), what an owned item contributes.
        columns: shape (K, M), what it is multiplied with, transposed.
        pairs: a row per owned item: contributions to single items.
        start, stop: the people to score.
        out: the scores.
    """
    n_head = columns.shape[1]
    nothing = np.zeros(n_head, np.float32)
    U = np.zeros((stop - start, left.shape[1]), np.float32)
    for i in range(start, stop):
        for p in range(owned.indptr[i], owned.indptr[i + 1]):
            add_scaled(U[i - start], left[owned.items[p]], owned.values[p])
    for first in range(0, n_head, _TILE):
        last = min(first + _TILE, n_head)
        for i in range(stop - start):
            score_tile(U[i], columns, nothing, first, out[i, first:last])
    for i in range(start, stop):
        for p in range(owned.indptr[i], owned.indptr[i + 1]):
            j, weight = owned.items[p], owned.values[p]
            for q in range(pairs.indptr[j], pairs.indptr[j + 1]):
                out[i - start, pairs.items[q]] += weight * pairs.values[q]


def score_head_of_one(
    items: NDArray[np.int32],
    weights: NDArray[np.float32],
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    pairs: Csr,
) -> NDArray[np.float32]:
    """Return what `score_head` writes for one person who has these items, up to rounding, without a compiler.

    >>> pairs = Csr(np.array([0, 1, 1]), np.array([1], np.int32), np.array([4], np.float32))
    >>> left, right = np.array([[2.0], [1.0]], np.float32), np.array([[1.0], [3.0]], np.float32)
    >>> score_head_of_one(np.array([0], np.int32), np.array([0.5], np.float32), left, right, pairs)
    array([1., 5.], dtype=float32)
    """
    scores = right @ (weights @ left[items])
    for j, weight in zip(items.tolist(), weights, strict=True):
        row = slice(pairs.indptr[j], pairs.indptr[j + 1])
        scores[pairs.items[row]] += weight * pairs.values[row]  # each item once in a row
    return np.asarray(scores, np.float32)


def score_head_reference(owned: Csr, left: NDArray[Any], columns: NDArray[Any], pairs: Csr) -> NDArray[np.float64]:
    """Return what `score_head` writes, for everybody."""
    B = left.astype(np.float64) @ columns
    for j in range(len(B)):
        row = slice(pairs.indptr[j], pairs.indptr[j + 1])
        B[j, pairs.items[row]] += pairs.values[row]
    W = np.zeros((len(owned.indptr) - 1, len(B)))
    for i in range(len(W)):
        row = slice(owned.indptr[i], owned.indptr[i + 1])
        W[i, owned.items[row]] = owned.values[row]
    return np.asarray(W @ B)
