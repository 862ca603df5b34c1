"""Predicting ratings, scoring items, and keeping the best of them.

>>> items, scores = np.empty(2, np.int32), np.empty(2, np.float32)
>>> keep_best(np.array([1, 3, 2], np.float32), items, scores)
>>> items.tolist(), scores.tolist()
([1, 2], [3.0, 2.0])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.jit import fast_kernel, kernel, short_form

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
    out: NDArray[np.float32],  # out
) -> None:
    """Write mean + b_i + c_j + u_i·v_j for the pairs of a user i and an item j."""
    for p in range(len(users)):
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
    """Return what `predict_pairs` writes."""
    return np.asarray(mean + b[users] + c[items] + np.einsum("nk,nk->n", U[users], V[items], dtype=np.float64))


@fast_kernel
def score_tile(
    u: NDArray[np.float32], VT: NDArray[np.float32], c: NDArray[np.float32], first: int, tile: NDArray[np.float32]
) -> np.float32:
    """Write c_j + u·v_j for the items first, first + 1, … to tile (out), and return the greatest.

    VT is the transposed item matrix, shape (K, m): the inner loop runs over items, so that it needs no sums across
    a vector register. Four factors at a time, so that a partial sum is loaded and stored once for four products.
    """
    n_factors = VT.shape[0]
    last = first + len(tile)
    tile[:] = c[first:last]
    whole = n_factors - n_factors % 4
    for k in range(0, whole, 4):
        u0, u1, u2, u3 = u[k], u[k + 1], u[k + 2], u[k + 3]
        v0 = VT[k, first:last]
        v1 = VT[k + 1, first:last]
        v2 = VT[k + 2, first:last]
        v3 = VT[k + 3, first:last]
        for j in range(len(tile)):
            tile[j] += u0 * v0[j] + u1 * v1[j] + u2 * v2[j] + u3 * v3[j]
    for k in range(whole, n_factors):
        u0 = u[k]
        v0 = VT[k, first:last]
        for j in range(len(tile)):
            tile[j] += u0 * v0[j]
    greatest = tile[0]
    for j in range(len(tile)):
        greatest = max(greatest, tile[j])
    return np.float32(greatest)


def score_tile_reference(
    u: NDArray[np.float32], VT: NDArray[np.float32], c: NDArray[np.float32], first: int, count: int
) -> NDArray[np.float64]:
    """Return what `score_tile` writes to a tile of `count` items."""
    tile = slice(first, first + count)
    return np.asarray(c[tile].astype(np.float64) + u.astype(np.float64) @ VT[:, tile])


@kernel
def add_to_heap(items: NDArray[np.int32], scores: NDArray[np.float32], item: int, score: float) -> None:
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
def start_heap(items: NDArray[np.int32], scores: NDArray[np.float32]) -> None:
    """Empty a heap (both out): -1 and NEVER everywhere."""
    items[:] = -1
    scores[:] = NEVER


@kernel
def sort_heap(items: NDArray[np.int32], scores: NDArray[np.float32]) -> None:
    """Turn a heap (both out) into a list, best first; of equal scores the smaller item first."""
    for last in range(len(items) - 1, 0, -1):
        item, score = items[last], scores[last]
        items[last], scores[last] = items[0], scores[0]
        add_to_heap(items[:last], scores[:last], item, score)


@kernel
def keep_best(scores: NDArray[np.float32], best_items: NDArray[np.int32], best_scores: NDArray[np.float32]) -> None:
    """Write the best items, best first, and their scores (both out); -1 and NEVER where there are too few.

    The slow equivalent is `dpmf.kernels.best_items.find_best_items_reference` for one person.
    """
    start_heap(best_items, best_scores)
    for item in range(len(scores)):
        if scores[item] > best_scores[0]:
            add_to_heap(best_items, best_scores, item, scores[item])
    sort_heap(best_items, best_scores)


@kernel
def skip_full_groups(
    ranking: NDArray[np.int32],
    groups: CsrPattern,
    most: int,
    counts: NDArray[np.int64],  # out
    chosen: NDArray[np.int32],  # out
) -> int:
    """Write the items that a walk down a ranking chooses, until `chosen` is full, and return their number.

    An item is skipped if one of its groups (its row of `groups`) has `most` chosen items already. `counts` holds the
    number of items chosen so far in each group, and is updated.
    """
    indptr, members = groups
    n_chosen = 0
    for item in ranking:
        if n_chosen == len(chosen):
            break
        full = False
        for p in range(indptr[item], indptr[item + 1]):
            full = full or counts[members[p]] >= most
        if not full:
            for p in range(indptr[item], indptr[item + 1]):
                counts[members[p]] += 1
            chosen[n_chosen] = item
            n_chosen += 1
    return n_chosen


@short_form(skip_full_groups)
def skip_full_groups_reference(
    ranking: NDArray[np.int32],
    groups: CsrPattern,
    most: int,
    counts: NDArray[np.int64],  # out
    chosen: NDArray[np.int32],  # out
) -> int:
    """Do what `skip_full_groups` does."""
    n_chosen = 0
    for item in ranking.tolist():
        if n_chosen == len(chosen):
            break
        own = groups.items[groups.indptr[item] : groups.indptr[item + 1]]
        if (counts[own] < most).all():
            np.add.at(counts, own, 1)
            chosen[n_chosen] = item
            n_chosen += 1
    return n_chosen
