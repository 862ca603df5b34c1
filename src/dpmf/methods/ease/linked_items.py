"""A ranking of the head and of linked items beyond it: one matrix, in which all others know nothing but their links."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.ease.defaults import MOST_HEAD
from dpmf.methods.ease.item_item import Denoised, ItemItem, closed_form
from dpmf.methods.ease.links import LinkedSums
from dpmf.methods.ease.shrinkage import Array

_UNSURE = 0.3  # of an estimate by links in the head, relatively: what is scaled alike for everybody fits nobody exactly
_MOST_ALIKE = 0.95  # of the smaller of two diagonals: hardly anybody likes a rare item together with more than itself
_ROOT_TWO = 2.0**0.5
Positions = NDArray[np.int32]


def estimate_with_links(
    head: Positions,
    found: Denoised,
    noisy: tuple[Array, float],
    linked: LinkedSums,
    counts: Array,
    n_users: float,
    limits: tuple[int, int],
) -> tuple[Positions, ItemItem]:
    """Return ascending positions of the items that something is known of, and their item-item matrix.

    Args:
        head: ascending positions of the items that all pairs were measured of.
        found: the estimate of their matrix.
        noisy: the triangle that it is an estimate of, and the standard deviation of the noise on it.
        linked: what links say.
        counts: above 0, of all items: about how much people like them.
        n_users: about how many people there are.
        limits: as of `estimate`.
    """
    # In the whole catalogue the diagonal adds up to the number of people. Over the head, z is scaled to length 1 there.
    everywhere = n_users / counts.sum()
    per_count = float(found.diagonal.sum() / counts[head].sum())
    values, sds = (one * per_count / everywhere for one in (linked.values, linked.sds))
    items = _chosen(head, linked, values, len(counts))
    places = np.full(len(counts), -1, np.int64)
    places[items] = np.arange(len(items))
    diagonal = per_count * counts[items]
    S, inside = np.zeros((len(items), len(items)), np.float32), places[head]
    outside = np.ones(len(items), np.bool_)
    outside[inside] = False
    vectors = np.zeros((len(items), 0 if found.vectors is None else found.vectors.shape[1]), np.float32)
    S[np.ix_(inside, inside)] = found.matrix
    diagonal[inside] = found.diagonal
    if found.vectors is not None:
        vectors[inside] = found.vectors
    rows, columns = places[linked.second], places[linked.first]
    kept = (rows >= 0) & (columns >= 0)
    rows, columns, values, sds = rows[kept], columns[kept], values[kept], sds[kept]
    both = ~outside[rows] & ~outside[columns]
    values[both] = _combined(
        noisy, np.searchsorted(inside, rows[both]), np.searchsorted(inside, columns[both]), values[both], sds[both]
    )
    most = _MOST_ALIKE * np.minimum(diagonal[rows], diagonal[columns])
    S[rows, columns] = S[columns, rows] = np.maximum(S[rows, columns], np.minimum(values, most))
    mean, mean_outside = n_users / len(head), float(diagonal[outside].mean()) if outside.any() else np.inf
    means = np.where(outside, mean_outside, mean)
    return items, closed_form(Denoised(S, diagonal, vectors), counts[items], means, limits)


def _chosen(head: Positions, linked: LinkedSums, values: Array, n_items: int) -> Positions:
    """Return the head, and the items beyond it of which links say most, as many as there is room for."""
    said = np.bincount(linked.first, values, n_items) + np.bincount(linked.second, values, n_items)
    said[head] = 0
    beyond = np.argsort(-said, kind="stable")[: max(MOST_HEAD - len(head), 0)]
    return np.sort(np.concatenate([head, beyond[said[beyond] > 0]])).astype(np.int32)


def _combined(
    noisy: tuple[Array, float], rows: NDArray[np.int64], columns: NDArray[np.int64], values: Array, sds: Array
) -> Array:
    """Return the means of what was measured in the head and of what links say, each weighted by how precise it is."""
    triangle, sd = noisy
    measured = triangle[rows * (rows + 1) // 2 + columns] / _ROOT_TWO
    own, its = 2 / sd**2, 1 / (sds**2 + (_UNSURE * values) ** 2)
    return np.asarray((own * measured + its * values) / (own + its))
