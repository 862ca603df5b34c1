"""Sums over people in which each person's contribution has a bounded length, formed in integers.

Every function adds, for each person i, a vector of integers to `sums`. Whatever the ratings, factors and biases are,
the Euclidean length of that vector is at most `steps` times the bound that the function's docstring states. The proof
is in docs/proofs/als.md; it needs of the arguments only that `steps` and `radius` are positive and finite, and that
nothing that belongs to person i depends on other people. Only ratings of items in the catalogue and in ascending order
count, so that an item that is listed twice counts once.

Integers add up to the same total in any order, so the sums are the same for any number of threads.

>>> sums = np.zeros(2, np.int64)
>>> one, weights = np.ones(1), np.ones(2)
>>> add_counts(CsrPattern(np.array([0, 2]), np.array([0, 1], np.int32)), 0, 1, weights, one, 1000.0, sums)
>>> sums.tolist()  # 1000 / sqrt(2), truncated
[707, 707]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.jit import kernel

# A root of a sum of n squares is off by n · 2⁻⁵⁴ at most, relatively: that is 1.2e-7 for 2³¹ items, and this is more.
SAFETY = 1.0 - 1e-6
_LEAST_TOTAL = 1e-250  # squares that make up a smaller sum may have lost digits, or have underflowed altogether
_ROOT_TWO = 2.0**0.5


@kernel
def valid_share(shares: NDArray[np.float64], person: int) -> float:
    """Return a person's share of the full weight; anything but a number from 0 to 1 is taken as 0."""
    share = shares[person]
    return share if 0.0 <= share <= 1.0 else 0.0


@kernel
def weight_normalizer(rated: CsrPattern, weights: NDArray[np.float64], person: int) -> float:
    """Return a, just below 1/‖weights‖ over the person's ratings that count: Σ_j (a · weights[j])² < 1.

    It is 0 if the sum of squares is 0, not finite, or too small to be precise.
    """
    indptr, items = rated
    last, total = -1, 0.0
    for place in range(indptr[person], indptr[person + 1]):
        item = items[place]
        if last < item < len(weights):
            last = item
            total += weights[item] * weights[item]
    return SAFETY / np.sqrt(total) if _LEAST_TOTAL < total < np.inf else 0.0


def weight_normalizer_reference(items: NDArray[Any], weights: NDArray[Any]) -> float:
    """Return what `weight_normalizer` returns, for valid items of one person and weights of ordinary size."""
    return SAFETY / float(np.linalg.norm(weights[items]))


@kernel
def clip_norm(row: NDArray[np.float64], radius: float) -> None:
    """Scale row (out) down to a length below `radius`; set it to 0 if any number in it is not finite."""
    total = 0.0
    for k in range(len(row)):
        total += row[k] * row[k]
    if not total < np.inf:
        row[:] = 0.0
        return
    length = np.sqrt(total)
    factor = SAFETY * (radius / length if length > radius else 1.0)
    for k in range(len(row)):
        row[k] *= factor


@kernel
def copy_clipped(rows: NDArray[np.float32], person: int, radius: float, row: NDArray[np.float64]) -> None:
    """Copy a person's factors to row (out), clipped to a length below `radius`."""
    for k in range(len(row)):
        row[k] = rows[person, k]
    clip_norm(row, radius)


@kernel
def _side(triangle: int) -> int:
    """Return K for a triangle of K·(K + 1)/2 numbers."""
    return int((np.sqrt(8.0 * triangle + 1.0) - 1.0) / 2.0 + 0.5)


@kernel
def add_counts(
    rated: CsrPattern,
    start: int,
    stop: int,
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add the weights of everybody's ratings to the items, shape (n_items,). Bound: the person's share, at most 1."""
    indptr, items = rated
    for i in range(start, stop):
        scale = weight_normalizer(rated, weights, i) * valid_share(shares, i) * steps
        if not scale > 0.0:
            continue
        last = -1
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
            if last < j < len(weights):
                last = j
                sums[j] += np.int64(scale * weights[j])


@kernel
def add_moments(
    start: int,
    stop: int,
    shares: NDArray[np.float64],
    U: NDArray[np.float32],
    radius: float,
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add u u' of everybody's first K factors, shape (K·(K + 1)/2,), packed as `symmetric` says.

    Bound: share · radius². K follows from the shape of sums.
    """
    row = np.empty(min(_side(len(sums)), U.shape[1]))
    for i in range(start, stop):
        copy_clipped(U, i, radius, row)
        scale, place = valid_share(shares, i) * steps, 0
        for k in range(len(row)):
            sums[place] += np.int64(scale * row[k] * row[k])
            place += 1
            for other in range(k):
                sums[place] += np.int64(scale * SAFETY * _ROOT_TWO * row[k] * row[other])
                place += 1


@kernel
def add_item_moments(
    rated: CsrPattern,
    start: int,
    stop: int,
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    U: NDArray[np.float32],
    radius: float,
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add weighted u u' of people's first K factors to the items, shape (n_items, K·(K + 1)/2), packed likewise.

    Bound: share · radius².
    """
    indptr, items = rated
    row = np.empty(min(_side(sums.shape[1]), U.shape[1]))
    for i in range(start, stop):
        scale = weight_normalizer(rated, weights, i) * valid_share(shares, i) * steps
        if not scale > 0.0:
            continue
        copy_clipped(U, i, radius, row)
        last = -1
        for p in range(indptr[i], indptr[i + 1]):
            j, place = items[p], 0
            if not last < j < len(weights):
                continue
            last = j
            amount = scale * weights[j]
            for k in range(len(row)):
                sums[j, place] += np.int64(amount * row[k] * row[k])
                place += 1
                for other in range(k):
                    sums[j, place] += np.int64(amount * SAFETY * _ROOT_TWO * row[k] * row[other])
                    place += 1


def add_counts_reference(items: NDArray[Any], weights: NDArray[Any], share: float) -> NDArray[np.float64]:
    """Return what one person with valid ratings adds, before truncation and for steps = 1."""
    full = np.zeros(len(weights))
    full[items] = share * weights[items] / np.linalg.norm(weights[items])
    return full


def add_moments_reference(u: NDArray[Any], share: float, radius: float) -> NDArray[np.float64]:
    """Return what one person adds, before truncation and for steps = 1, as a matrix of shape (K, K)."""
    row = clip_norm_reference(u, radius)
    return np.asarray(share * np.outer(row, row))


def add_item_moments_reference(
    items: NDArray[Any], weights: NDArray[Any], u: NDArray[Any], share: float, radius: float
) -> NDArray[np.float64]:
    """Return what one person adds, before truncation and for steps = 1, as matrices of shape (n_items, K, K)."""
    counts = add_counts_reference(items, weights, share)
    return np.asarray(counts[:, None, None] * add_moments_reference(u, 1.0, radius))


def clip_norm_reference(row: NDArray[Any], radius: float) -> NDArray[np.float64]:
    """Return what `clip_norm` makes of a row of finite numbers."""
    return np.asarray(row * min(1.0, radius / max(float(np.linalg.norm(row)), 1e-300)), np.float64)


def symmetric(triangle: NDArray[np.float64], n_factors: int) -> NDArray[np.float64]:
    """Return the symmetric matrices, shape (…, K, K), whose lower triangles are packed row after row.

    Of each row the diagonal element comes first, then the others times √2: so lengths are Frobenius norms.

    >>> symmetric(np.array([1.0, 4.0, 3.0 * 2**0.5]), 2).round(6).tolist()
    [[1.0, 3.0], [3.0, 4.0]]
    """
    full = np.zeros((*triangle.shape[:-1], n_factors, n_factors))
    place = 0
    for k in range(n_factors):
        full[..., k, k] = triangle[..., place]
        place += 1
        for other in range(k):
            full[..., k, other] = full[..., other, k] = triangle[..., place] / _ROOT_TWO
            place += 1
    return full
