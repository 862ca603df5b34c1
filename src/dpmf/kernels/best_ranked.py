"""The best items of many people by a ranking: scores from their own items, as in `dpmf.kernels.pair_scores`.

>>> from dpmf.kernels.tiles import pack_items
>>> ranked = RankedItems(
...     left=np.array([[1], [2]], np.float32), tiles=pack_items(np.array([[1], [3]], np.float32)),
...     pairs=Csr(np.zeros(3, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)),
...     head=np.array([5, 2], np.int32), others=np.array([1, 0, 3, 4], np.int32),
...     order=np.array([1, 5, 2, 0, 3, 4], np.int32), popularity=np.zeros(6, np.float32))
>>> owned = Csr(np.array([0, 1]), np.array([1], np.int32), np.ones(1, np.float32))
>>> items, scores, allowed = np.empty((1, 3), np.int32), np.empty((1, 3), np.float32), np.ones(6, np.bool_)
>>> seen = CsrPattern(np.array([0, 1]), np.array([1], np.int32))
>>> find_best_ranked(owned, ranked, allowed, seen, 0, 1, items, scores)
>>> items.tolist(), scores[0, :2].tolist()
([[2, 5, 0]], [6.0, 2.0])
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.jit import kernel
from dpmf.kernels.pair_scores import add_scaled
from dpmf.kernels.scores import NEVER, add_to_heap, sort_heap, start_heap
from dpmf.kernels.tiles import PEOPLE, TILE, lanes_above, lowest_bit, score_tile, without_lowest


class RankedItems(NamedTuple):
    """A catalogue as a ranking has it: M items of which pairs are known, the head, and all others after them.

    Attributes:
        left: shape (M, K), what an owned item contributes.
        tiles: what it is multiplied with to score an item, the items in the order of `head`; see `pack_items`.
        pairs: a row per owned item: contributions to single items, these as places in `head`.
        head: shape (M,), catalogue positions: of equal scores, the first of them is the better.
        others: the rest of the catalogue, best first.
        order: the whole catalogue, best first, for people of whom nothing is known.
        popularity: their scores, shape (n_items,).
    """

    left: NDArray[np.float32]
    tiles: NDArray[np.float32]
    pairs: Csr
    head: NDArray[np.int32]
    others: NDArray[np.int32]
    order: NDArray[np.int32]
    popularity: NDArray[np.float32]


@kernel
def find_best_ranked(
    owned: Csr,
    ranked: RankedItems,
    allowed: NDArray[np.bool_],
    seen: CsrPattern,
    start: int,
    stop: int,
    best_items: NDArray[np.int32],  # out
    best_scores: NDArray[np.float32],  # out
) -> None:
    """Write the best items of people start..stop-1 (rows of the outputs), best first; -1 and NEVER if there are few.

    The slow equivalent is to sort what `dpmf.model.ranking.Ranking.scores_of_people` returns.

    Args:
        owned: a row per person: rows of `left`, with their weights.
        ranked: the catalogue.
        allowed: for each of its items, whether anybody may get it.
        seen: a row per person: the items that they do not get.
        start, stop: the people to serve.
        best_items, best_scores: the lists.
    """
    n_head, n_factors = ranked.left.shape
    bars, nothing = np.full(PEOPLE, np.inf, np.float32), np.zeros(len(ranked.tiles) * TILE, np.float32)
    people, factors = np.zeros((n_factors, PEOPLE), np.float32), np.empty(n_factors, np.float32)
    of_tile = np.empty((PEOPLE, TILE), np.float32)
    scores = np.empty((PEOPLE, len(ranked.tiles), TILE), np.float32)
    free = allowed.copy()
    for first in range(start, stop, PEOPLE):
        count = min(PEOPLE, stop - first)
        for place in range(count):
            factors[:] = 0.0
            for p in range(owned.indptr[first + place], owned.indptr[first + place + 1]):
                add_scaled(factors, ranked.left[owned.items[p]], owned.values[p])
            people[:, place] = factors
        for tile in range(len(ranked.tiles)):
            score_tile(people, ranked.tiles[tile], nothing, tile * TILE, bars, of_tile)
            scores[:count, tile] = of_tile[:count]
        for place in range(count):
            i = first + place
            items, kept = best_items[i], best_scores[i]
            start_heap(items, kept)
            for p in range(seen.indptr[i], seen.indptr[i + 1]):
                free[seen.items[p]] = False
            if owned.indptr[i] == owned.indptr[i + 1]:
                _walk(ranked.order, free, 0, items)
                for rank in range(len(items)):
                    if items[rank] >= 0:
                        kept[rank] = ranked.popularity[items[rank]]
            else:
                mine = scores[place].reshape(-1)
                _add_pairs(owned, ranked.pairs, i, mine)
                below = np.nextafter(mine[:n_head].min(), np.float32(-np.inf))
                mine[n_head:] = NEVER
                n_kept = _keep_head(scores[place], ranked.head, free, items, kept)
                _walk(ranked.others, free, n_kept, items)
                for rank in range(n_kept, len(items)):
                    if items[rank] >= 0:
                        kept[rank] = below
            for p in range(seen.indptr[i], seen.indptr[i + 1]):
                free[seen.items[p]] = allowed[seen.items[p]]


@kernel
def _add_pairs(owned: Csr, pairs: Csr, person: int, scores: NDArray[np.float32]) -> None:
    """Add the contributions of single pairs to a person's scores (out)."""
    for p in range(owned.indptr[person], owned.indptr[person + 1]):
        j, weight = owned.items[p], owned.values[p]
        for q in range(pairs.indptr[j], pairs.indptr[j + 1]):
            scores[pairs.items[q]] += weight * pairs.values[q]


@kernel
def _keep_head(
    scores: NDArray[np.float32],
    head: NDArray[np.int32],
    free: NDArray[np.bool_],
    best_items: NDArray[np.int32],  # out
    best_scores: NDArray[np.float32],  # out
) -> int:
    """Write the best items of the head, given scores by tile, and return their number."""
    for tile in range(len(scores)):
        better = lanes_above(scores[tile], best_scores[0])
        while better != 0:
            lane = lowest_bit(better)
            better = without_lowest(better)
            place = tile * TILE + lane
            if scores[tile, lane] > best_scores[0] and free[head[place]]:
                add_to_heap(best_items, best_scores, place, scores[tile, lane])
    sort_heap(best_items, best_scores)
    n_kept = 0
    while n_kept < len(best_items) and best_items[n_kept] >= 0:
        best_items[n_kept] = head[best_items[n_kept]]
        n_kept += 1
    return n_kept


@kernel
def _walk(items: NDArray[np.int32], free: NDArray[np.bool_], found: int, chosen: NDArray[np.int32]) -> None:
    """Write the first free items to chosen[found:] (out)."""
    for item in items:
        if found == len(chosen):
            break
        if free[item]:
            chosen[found] = item
            found += 1
