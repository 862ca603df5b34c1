"""Predicting ratings, and finding the best items of many people without a people × items matrix.

>>> import numpy as np
>>> best_reference(np.array([[1.0, 3.0, 2.0]]), np.array([0, 1]), np.array([1]), 2)
(array([[2, 0]], dtype=int32), array([[2., 1.]], dtype=float32))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.compiling import fast_kernel, kernel

_TILE = 512  # items scored at a time: their partial sums stay in the first-level cache
NEVER = np.float32(-1e38)  # a score of this or less marks an item that is no candidate; finite, for the fast kernels


@fast_kernel
def predict_pairs(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    U: NDArray[np.float32],
    V: NDArray[np.float32],
    b: NDArray[np.float32],
    c: NDArray[np.float32],
    mean: float,
    start: int,
    stop: int,
    out: NDArray[np.float32],  # out
) -> None:
    """Write mean + b_i + c_j + u_i·v_j for the pairs start..stop-1."""
    for p in range(start, stop):
        i = users[p]
        j = items[p]
        dot = np.float32(0)
        for k in range(U.shape[1]):
            dot += U[i, k] * V[j, k]
        out[p] = np.float32(mean) + b[i] + c[j] + dot


def predict_pairs_reference(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    U: NDArray[np.float32],
    V: NDArray[np.float32],
    b: NDArray[np.float32],
    c: NDArray[np.float32],
    mean: float,
) -> NDArray[np.float64]:
    """Return what `predict_pairs` writes for all pairs."""
    return np.asarray(mean + b[users] + c[items] + np.einsum("nk,nk->n", U[users], V[items], dtype=np.float64))


@fast_kernel
def score_items(
    u: NDArray[np.float32], VT: NDArray[np.float32], c: NDArray[np.float32], scores: NDArray[np.float32]
) -> None:
    """Write c_j + u·v_j for all items to scores (out).

    VT is the transposed item matrix, shape (K, m): the inner loop runs over items, so that it needs no sums across
    a vector register. Four factors at a time, so that a partial sum is loaded and stored once for four products.
    """
    n_factors, n_items = VT.shape
    whole = n_factors - n_factors % 4
    for first in range(0, n_items, _TILE):
        last = min(first + _TILE, n_items)
        tile = scores[first:last]
        tile[:] = c[first:last]
        for k in range(0, whole, 4):
            u0, u1, u2, u3 = u[k], u[k + 1], u[k + 2], u[k + 3]
            v0 = VT[k, first:last]
            v1 = VT[k + 1, first:last]
            v2 = VT[k + 2, first:last]
            v3 = VT[k + 3, first:last]
            for j in range(last - first):
                tile[j] += u0 * v0[j] + u1 * v1[j] + u2 * v2[j] + u3 * v3[j]
        for k in range(whole, n_factors):
            u0 = u[k]
            v0 = VT[k, first:last]
            for j in range(last - first):
                tile[j] += u0 * v0[j]


@kernel
def _sink(items: NDArray[np.int32], scores: NDArray[np.float32], item: int, score: float) -> None:
    """Replace the first entry of a heap (both out), its worst, and restore its order: worst first.

    Of equal scores the item with the larger number is the worse.
    """
    place = 0
    while True:
        child = 2 * place + 1
        if child >= len(scores):
            break
        other = child + 1
        if other < len(scores) and (
            scores[other] < scores[child] or (scores[other] == scores[child] and items[other] > items[child])
        ):
            child = other
        if scores[child] > score or (scores[child] == score and items[child] <= item):
            break
        scores[place] = scores[child]
        items[place] = items[child]
        place = child
    scores[place] = score
    items[place] = item


@kernel
def keep_best(scores: NDArray[np.float32], best_items: NDArray[np.int32], best_scores: NDArray[np.float32]) -> None:
    """Write the best items, best first, and their scores (both out); -1 and NEVER where there are too few.

    Equal scores: the item with the smaller number first.
    """
    best_items[:] = -1
    best_scores[:] = NEVER
    worst = best_scores[0]
    for j in range(len(scores)):
        if scores[j] > worst:
            _sink(best_items, best_scores, j, scores[j])
            worst = best_scores[0]
    # Heap order is not item order among equals: sort by item first, then stably by score.
    by_item = np.argsort(best_items, kind="mergesort")
    order = by_item[np.argsort(-best_scores[by_item], kind="mergesort")]
    best_items[:] = best_items[order]
    best_scores[:] = best_scores[order]


@kernel
def best_items_of_people(
    U: NDArray[np.float32],
    VT: NDArray[np.float32],
    c: NDArray[np.float32],
    indptr: NDArray[np.int64],
    excluded: NDArray[np.int32],
    start: int,
    stop: int,
    best_items: NDArray[np.int32],  # out
    best_scores: NDArray[np.float32],  # out
) -> None:
    """Write the best items of people start..stop-1 (rows of the outputs, k columns), best first.

    Person i may not get the items excluded[indptr[i]:indptr[i+1]]; an item with c = 2·NEVER goes to nobody.
    """
    scores = np.empty(VT.shape[1], np.float32)
    for i in range(start, stop):
        score_items(U[i], VT, c, scores)
        for p in range(indptr[i], indptr[i + 1]):
            scores[excluded[p]] = NEVER
        keep_best(scores, best_items[i], best_scores[i])


def best_reference(
    scores: NDArray[np.floating], indptr: NDArray[np.int64], excluded: NDArray[np.int32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what `best_items_of_people` writes, given all scores; needs at least k candidates per person."""
    scores = scores.astype(np.float32)
    for i in range(len(scores)):
        scores[i, excluded[indptr[i] : indptr[i + 1]]] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order.astype(np.int32), np.take_along_axis(scores, order, axis=1)
