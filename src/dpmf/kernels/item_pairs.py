"""Sums over people of how much they like items, and pairs of items, formed in integers.

A person likes an item by a weight from 0 to 1, which rises with the rating; all weights together are scaled to length
1, and z is the result. Whatever the ratings are, the Euclidean length of what one person adds is at most their share
times `steps`: see docs/proofs/ease.md. Only ratings of items in the catalogue and in ascending order count, so that an
item that is listed twice counts once.

>>> own = Csr(np.array([0, 3]), np.array([0, 1, 2], np.int32), np.float32([5, 3, 1]))
>>> sums = np.zeros(3, np.int64)
>>> add_preferences(own, 0, 1, Ramp(2.0, 4.0), np.arange(3, dtype=np.int32), np.ones(1), 1000.0, sums)
>>> sums.tolist()  # weights 1, 1/2 and 0
[894, 447, 0]
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.bounded_sums import SAFETY, valid_share
from dpmf.kernels.csr import Csr
from dpmf.kernels.jit import kernel

_LEAST_TOTAL = 1e-250  # squares that make up a smaller sum may have lost digits
_ROOT_TWO = 2.0**0.5


class Ramp(NamedTuple):
    """The weight of a rating: 0 up to `none`, 1 from `full` on, and in proportion between them.

    Attributes:
        none, full: ratings.
        counts: whether values are counts above 0 of which logarithms, to base 2, take the place of ratings. What was
            counted at all was counted once.
    """

    none: float
    full: float
    counts: bool = False


@kernel
def preference(value: float, ramp: Ramp) -> float:
    """Return the weight of a rating, or of a count, from 0 to 1; what is neither weighs 0."""
    none, full, counts = ramp
    if counts:
        if not value > 0.0:
            return 0.0
        value = math.log2(max(value, 1.0))
    if value >= full:
        return 1.0
    weight = (value - none) / (full - none) if value > none else 0.0
    return weight if 0.0 <= weight <= 1.0 else 0.0


@kernel
def preference_normalizer(rated: Csr, ramp: Ramp, places: NDArray[np.int32], person: int) -> float:
    """Return a, just below 1/‖weights‖ over the person's ratings that count, or 0 if there are none."""
    indptr, items, values = rated
    last, total = -1, 0.0
    for p in range(indptr[person], indptr[person + 1]):
        item = items[p]
        if last < item < len(places):
            last = item
            if places[item] >= 0:
                weight = preference(values[p], ramp)
                total += weight * weight
    return SAFETY / np.sqrt(total) if _LEAST_TOTAL < total < np.inf else 0.0


@kernel
def add_preferences(
    rated: Csr,
    start: int,
    stop: int,
    ramp: Ramp,
    places: NDArray[np.int32],
    shares: NDArray[np.float64],
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add everybody's z to sums, shape (M,); places[j] is where item j goes, or -1. Bound: the person's share."""
    indptr, items, values = rated
    for i in range(start, stop):
        scale = preference_normalizer(rated, ramp, places, i) * valid_share(shares, i) * steps
        if not scale > 0.0:
            continue
        last = -1
        for p in range(indptr[i], indptr[i + 1]):
            item = items[p]
            if last < item < len(places):
                last = item
                if places[item] >= 0:
                    sums[places[item]] += np.int64(scale * preference(values[p], ramp))


@kernel
def add_item_pairs(
    rated: Csr,
    start: int,
    stop: int,
    ramp: Ramp,
    places: NDArray[np.int32],
    shares: NDArray[np.float64],
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add everybody's z z' to sums, shape (M·(M + 1)/2,), packed as `unpack_pairs` says. Bound: the person's share.

    places[j] is the row of item j, or -1; rows have to ascend with items.
    """
    indptr, items, values = rated
    longest = 0
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    rows, z = np.empty(longest, np.int64), np.empty(longest)
    for i in range(start, stop):
        normalizer = preference_normalizer(rated, ramp, places, i)
        scale = valid_share(shares, i) * steps
        if not normalizer * scale > 0.0:
            continue
        last, row, count = -1, -1, 0
        for p in range(indptr[i], indptr[i + 1]):
            item = items[p]
            if last < item < len(places):
                last = item
                if places[item] > row:
                    weight = preference(values[p], ramp)
                    if weight > 0.0:
                        row = places[item]
                        rows[count], z[count] = row, normalizer * weight
                        count += 1
        for a in range(count):
            base = rows[a] * (rows[a] + 1) // 2
            sums[base + rows[a]] += np.int64(scale * z[a] * z[a])
            twice = scale * SAFETY * _ROOT_TWO * z[a]
            for b in range(a):
                sums[base + rows[b]] += np.int64(twice * z[b])


@kernel
def add_group_pairs(
    rated: Csr,
    start: int,
    stop: int,
    ramp: Ramp,
    places: NDArray[np.int32],
    n_groups: int,
    shares: NDArray[np.float64],
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add everybody's pairs of groups to sums, shape (G·(G - 1)/2,). Bound: the person's share.

    places[j] is the group of item j, below G = n_groups, or -1. A person likes a group by the largest weight of its
    items, and a pair of groups by the product of both; all pairs together are scaled to length 1. The pair of g and an
    earlier group h is at g·(g - 1)/2 + h. Nothing is spent on a diagonal: to somebody who likes two groups, half of it.
    """
    indptr, items, values = rated
    weights, longest = np.zeros(n_groups), 0
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    rows = np.empty(longest, np.int64)
    for i in range(start, stop):
        last, count, total = -1, 0, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            item = items[p]
            if last < item < len(places):
                last = item
                row = places[item]
                weight = preference(values[p], ramp) if 0 <= row < n_groups else 0.0
                if weight > 0.0:
                    if weights[row] == 0.0:
                        rows[count] = row
                        count += 1
                    weights[row] = max(weights[row], weight)
        for a in range(count):
            for b in range(a):
                total += (weights[rows[a]] * weights[rows[b]]) ** 2
        scale = valid_share(shares, i) * steps
        normalizer = SAFETY * scale / np.sqrt(total) if _LEAST_TOTAL < total < np.inf else 0.0
        if normalizer > 0.0:
            for a in range(count):
                for b in range(a):
                    low, high = min(rows[a], rows[b]), max(rows[a], rows[b])
                    product = weights[rows[a]] * weights[rows[b]]
                    sums[high * (high - 1) // 2 + low] += np.int64(normalizer * product)
        for a in range(count):
            weights[rows[a]] = 0.0


@kernel
def unpack_pairs(triangle: NDArray[np.float64], full: NDArray[np.float64]) -> None:
    """Write the symmetric matrix, shape (M, M), whose lower triangle is packed row after row, to full (out).

    Off the diagonal it is packed times √2, so that lengths are Frobenius norms.
    """
    place = 0
    for j in range(len(full)):
        for k in range(j):
            full[j, k] = full[k, j] = triangle[place] / _ROOT_TWO
            place += 1
        full[j, j] = triangle[place]
        place += 1


def preferences_reference(values: NDArray[Any], none: float, full: float) -> NDArray[np.float64]:
    """Return one person's z, for valid ratings of which one has weight, before truncation and for steps = 1."""
    weights = np.clip((np.asarray(values, np.float64) - none) / (full - none), 0.0, 1.0)
    return np.asarray(weights / np.linalg.norm(weights))


def item_pairs_reference(values: NDArray[Any], none: float, full: float) -> NDArray[np.float64]:
    """Return one person's z z', as `preferences_reference`."""
    z = preferences_reference(values, none, full)
    return np.outer(z, z)


def group_pairs_reference(
    values: NDArray[Any], groups: NDArray[Any], n_groups: int, none: float, full: float
) -> NDArray[np.float64]:
    """Return what one person adds who likes two of these groups or more, before truncation and for steps = 1."""
    best = np.zeros(n_groups)
    np.maximum.at(best, groups, np.clip((np.asarray(values, np.float64) - none) / (full - none), 0.0, 1.0))
    pairs = np.outer(best, best)[np.tril_indices(n_groups, -1)]
    return np.asarray(pairs / np.linalg.norm(pairs))
