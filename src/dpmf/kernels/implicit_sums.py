"""Bounded sums over people of which only the items that they have are known.

An item that took part in a person's fit (`dpmf.kernels.als_implicit`) pulls it towards itself, and would confirm its
own factors, noise included. So each item gets the fit of a person who has all the others but not this one.
With A the matrix of the normal equations, u their solution, g = A⁻¹v and h = v·g, that is u + g (α v·u - 1 - α (1 - c))
/ (1 - α h), α being the extra weight of the item in this person's fit.

How often somebody had an item reaches nothing but their own fit, which is clipped: in sums, all their items count the
same.

What a person adds is bounded as in `dpmf.kernels.bounded_sums`, whose rules apply here, too.

>>> sums, V, c = np.zeros((2, 2), np.int64), np.ones((2, 1), np.float32), np.zeros(2, np.float32)
>>> both = Csr(np.array([0, 2]), np.array([0, 1], np.int32), np.ones(2, np.float32))
>>> settings = ImplicitSettings(Confidence(0.0), 0.0, 1.0, 0.5)
>>> items = prepare_items(V, c, 1.0)
>>> add_held_out_factors(both, both, 0, 1, np.ones(2), np.ones(1), items, settings, 1e6, sums)
>>> (sums / 1e6).round(3).tolist()  # without the item, u is 1/3; and each has the weight 1/√2
[[0.236, 0.354], [0.236, 0.354]]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.als_implicit import (
    Confidence,
    ImplicitItems,
    extra_weight,
    extra_weights,
    fill_normal_equations,
    prepare_items,
    solve_implicit_reference,
)
from dpmf.kernels.bounded_sums import (
    SAFETY,
    clip_norm,
    clip_norm_reference,
    copy_clipped,
    valid_share,
    weight_normalizer,
)
from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.dense import invert, rescale
from dpmf.kernels.jit import kernel

__all__ = [
    "ImplicitSettings",
    "add_held_out_factors",
    "add_held_out_factors_reference",
    "add_implicit_moments",
    "add_implicit_moments_reference",
    "prepare_items",
]

_LEAST_SLACK = 1e-6  # of 1 - α h: an item that all but decides the fit leaves none without it
_ROOT_TWO = 2.0**0.5


class ImplicitSettings(NamedTuple):
    """The public numbers of `add_held_out_factors`.

    Attributes:
        confidence: the extra weight in the fit of an item that a person has.
        length: if above 0, factors are only a first guess, and are scaled to this length.
        radius: the longest factors.
        height: what is added beside the factors, to count people.
    """

    confidence: Confidence
    length: float
    radius: float
    height: float


@kernel
def add_implicit_moments(
    owned: CsrPattern,
    start: int,
    stop: int,
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    U: NDArray[np.float32],
    lift: float,
    radius: float,
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add everybody's second moments x x' with x = (u, 1), packed as `dpmf.kernels.bounded_sums.symmetric` says.

    A person's weight is lift / ‖their weights‖, at most 1. Shape: ((K + 1)·(K + 2)/2,). Bound: share · (radius² + 1).
    """
    width = U.shape[1]
    row, x = np.empty(width), np.empty(width + 1)
    for i in range(start, stop):
        weight = weight_normalizer(owned, weights, i) * lift
        if not weight > 0.0:
            continue
        copy_clipped(U, i, radius, row)
        for k in range(width):
            x[k] = row[k]
        x[width] = SAFETY
        scale, place = min(weight, 1.0) * valid_share(shares, i) * steps, 0
        for k in range(width + 1):
            sums[place] += np.int64(scale * x[k] * x[k])
            place += 1
            for other in range(k):
                sums[place] += np.int64(scale * SAFETY * _ROOT_TWO * x[k] * x[other])
                place += 1


@kernel
def add_held_out_factors(
    counted: Csr,
    owned: Csr,
    start: int,
    stop: int,
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    items: ImplicitItems,
    settings: ImplicitSettings,
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add weighted (u, height) to the items that people have, u being fitted without the item; shape (n_items, K + 1).

    Bound: share · sqrt(radius² + height²).

    Args:
        counted: the items of each person that count.
        owned: all items of each person, to which they are fitted; those that count are among them.
        start, stop: the people to add.
        weights: of items.
        shares: of people.
        items: factors and popularity of items, from `prepare_items`.
        settings: public numbers.
        steps: of the grid, per unit.
        sums: to add to.
    """
    V, c = items.V, items.c
    n = V.shape[1]
    A, inverse, pattern = np.empty((n, n)), np.empty((n, n)), CsrPattern(counted.indptr, counted.items)
    y, u, v, g, row = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(start, stop):
        scale = weight_normalizer(pattern, weights, i) * valid_share(shares, i) * steps
        if not scale > 0.0:
            continue
        first, end = owned.indptr[i], owned.indptr[i + 1]
        fill_normal_equations(owned.items[first:end], owned.values[first:end], items, settings.confidence, A, y)
        invert(A, inverse)
        _times(inverse, y, u)
        last = -1
        for p in range(counted.indptr[i], counted.indptr[i + 1]):
            j = counted.items[p]
            if not last < j < len(weights):
                continue
            last = j
            for k in range(n):
                v[k] = V[j, k]
            _times(inverse, v, g)
            h, score = 0.0, 0.0
            for k in range(n):
                h += v[k] * g[k]
                score += v[k] * u[k]
            alpha = extra_weight(counted.values[p], settings.confidence)
            rest = 1.0 - alpha * h
            if not rest > _LEAST_SLACK:
                continue
            back = (alpha * score - 1.0 - alpha * (1.0 - c[j])) / rest
            for k in range(n):
                row[k] = u[k] + back * g[k]
            if settings.length > 0.0:
                rescale(row, settings.length)
            clip_norm(row, settings.radius)
            amount = scale * weights[j]
            for k in range(n):
                sums[j, k] += np.int64(amount * row[k])
            sums[j, n] += np.int64(amount * SAFETY * settings.height)


@kernel
def _times(matrix: NDArray[np.float64], vector: NDArray[np.float64], product: NDArray[np.float64]) -> None:
    """Write a symmetric matrix times a vector to product (out)."""
    product[:] = 0.0
    for k in range(len(vector)):
        for other in range(len(vector)):
            product[other] += vector[k] * matrix[k, other]


def add_implicit_moments_reference(
    items: NDArray[Any], weights: NDArray[Any], u: NDArray[Any], share: float, lift: float, radius: float
) -> NDArray[np.float64]:
    """Return what one person with valid items adds, before truncation and for steps = 1, as a matrix."""
    weight = min(1.0, lift / float(np.linalg.norm(weights[items])))
    x = np.append(clip_norm_reference(u, radius), 1.0)
    return np.asarray(share * weight * np.outer(x, x))


def add_held_out_factors_reference(
    items: NDArray[Any],
    counts: NDArray[Any],
    weights: NDArray[Any],
    share: float,
    V: NDArray[Any],
    c: NDArray[Any],
    ridge: float,
    settings: ImplicitSettings,
) -> NDArray[np.float64]:
    """Return what one person with valid items adds, before truncation and for steps = 1: one fit per item."""
    alpha = extra_weights(counts, settings.confidence)
    w = weights[items] / np.sqrt(np.sum(weights[items] ** 2))
    full = np.zeros((len(c), V.shape[1] + 1))
    for place, j in enumerate(items):
        row = solve_implicit_reference(items[items != j], V, c, ridge, alpha[items != j])
        length = max(float(np.linalg.norm(row)), 1e-300)
        row = row * (settings.length / length if settings.length > 0 else 1.0)
        row = clip_norm_reference(row, settings.radius)
        full[j] = share * w[place] * np.append(row, settings.height)
    return full
