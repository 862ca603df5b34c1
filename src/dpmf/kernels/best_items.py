"""The best items of many people, from their factors and those of the items, without a people × items matrix.

Scores are computed in tiles, see `dpmf.kernels.tiles`, and compared with the worst that is in a person's list, sixteen
at once; most tiles have none that is better.

>>> from dpmf.kernels.tiles import pack_items
>>> excluded = CsrPattern(np.array([0, 1]), np.array([1], np.int32))
>>> items, scores = np.empty((1, 2), np.int32), np.empty((1, 2), np.float32)
>>> V, c = np.array([[1], [3], [2]], np.float32), np.zeros(3, np.float32)
>>> find_best_items(np.ones((1, 1), np.float32), pack_items(V), c, excluded, 0, 1, items, scores)
>>> items.tolist(), scores.tolist()
([[2, 0]], [[2.0, 1.0]])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.jit import kernel
from dpmf.kernels.scores import NEVER, add_to_heap, sort_heap, start_heap
from dpmf.kernels.tiles import PEOPLE, TILE, lanes_above, lowest_bit, score_tile, without_lowest


@kernel
def find_best_items(
    U: NDArray[np.float32],
    tiles: NDArray[np.float32],
    c: NDArray[np.float32],
    excluded: CsrPattern,
    start: int,
    stop: int,
    best_items: NDArray[np.int32],  # out
    best_scores: NDArray[np.float32],  # out
) -> None:
    """Write the items with the greatest c_j + u·v_j for people start..stop-1 (rows of the outputs), best first.

    Of equal scores the smaller item comes first; -1 and NEVER where there are too few. Nobody gets the items in their
    row of `excluded`, which are in ascending order; an item with c = 2·NEVER goes to nobody. `tiles` is what
    `dpmf.kernels.tiles.pack_items` returned.
    """
    n_factors, n_groups = tiles.shape[1], -(-(stop - start) // PEOPLE)
    people = np.zeros((n_groups, n_factors, PEOPLE), np.float32)
    bars = np.full((n_groups, PEOPLE), np.inf, np.float32)  # the worst score in a list; infinity where there is nobody
    for i in range(start, stop):
        group, place = divmod(i - start, PEOPLE)
        people[group, :, place] = U[i]
        bars[group, place] = NEVER
        start_heap(best_items[i], best_scores[i])
    offsets = np.full(len(tiles) * TILE, 2 * NEVER, np.float32)
    offsets[: len(c)] = c
    coming = excluded.indptr[start:stop].copy()  # the next excluded item of each person
    scores = np.empty((PEOPLE, TILE), np.float32)
    for tile in range(len(tiles)):
        for group in range(n_groups):
            beaten = score_tile(people[group], tiles[tile], offsets, tile * TILE, bars[group], scores)
            while beaten != 0:
                place = lowest_bit(beaten)
                beaten = without_lowest(beaten)
                i = start + group * PEOPLE + place
                bars[group, place] = _offer(
                    scores[place], tile * TILE, excluded, i, coming[i - start :], best_items[i], best_scores[i]
                )
    for i in range(start, stop):
        sort_heap(best_items[i], best_scores[i])


@kernel
def _offer(
    scores: NDArray[np.float32],
    first: int,
    excluded: CsrPattern,
    person: int,
    coming: NDArray[np.int64],  # out
    best_items: NDArray[np.int32],  # out
    best_scores: NDArray[np.float32],  # out
) -> np.float32:
    """Put a person's scores of a tile that are better than the worst in their heap into it; return the worst then."""
    indptr, items = excluded
    end, p = indptr[person + 1], coming[0]
    better = lanes_above(scores, best_scores[0])
    while better != 0:
        item = first + lowest_bit(better)
        better = without_lowest(better)
        if scores[item - first] > best_scores[0]:
            while p < end and items[p] < item:
                p += 1
            if p == end or items[p] != item:
                add_to_heap(best_items, best_scores, item, scores[item - first])
    coming[0] = p
    return np.float32(best_scores[0])


def find_best_items_reference(
    scores: NDArray[np.floating], excluded: CsrPattern, k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return what `find_best_items` writes, given all scores; needs at least k candidates per person."""
    scores = scores.astype(np.float32)
    for i in range(len(scores)):
        scores[i, excluded.items[excluded.indptr[i] : excluded.indptr[i + 1]]] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order.astype(np.int32), np.take_along_axis(scores, order, axis=1)
