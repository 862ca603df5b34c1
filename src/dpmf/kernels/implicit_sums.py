"""Sums over people who have some items and not others, in which nobody counts for more than a stated amount.

An item that took part in a person's fit (`dpmf.kernels.als_implicit`) pulls it towards itself, and would confirm its
own factors, noise included. So each item is compared with the fit of a person who had all the others but not this one.
With A the matrix of the normal equations, u their solution, g = A⁻¹v and h = v·g, that is u + g (α v·u - 1 - α (1 - c))
/ (1 - α h).

The bound on what a person adds is that of `dpmf.kernels.bounded_sums`, whose rules hold here, too.

>>> sums, V, c = np.zeros((2, 2), np.int64), np.ones((2, 1), np.float32), np.zeros(2, np.float32)
>>> both = np.array([0, 2]), np.array([0, 1], np.int32)
>>> public = *common_of(V, c, 1.0), Observing(0.0, 0.0, 1.0, 0.5)
>>> add_observed(*both, *both, 0, 1, np.ones(2), np.ones(1), V, c, *public, 1e6, sums)
>>> (sums / 1e6).round(3).tolist()  # without the item, u is 1/3; and each has the weight 1/√2
[[0.236, 0.354], [0.236, 0.354]]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.als_implicit import common_of, equations, observer_reference
from dpmf.kernels.bounded_sums import SAFETY, bound_row, bounded_row, share_of, weight_scale
from dpmf.kernels.dense import invert, stretch
from dpmf.kernels.jit import kernel

__all__ = ["Observing", "add_observed", "add_spreads", "common_of", "observed_reference", "stretch_people"]

_LEAST_REST = 1e-6  # of an item that all but decides the fit, nothing can be said without it
_ROOT_TWO = 2.0**0.5


class Observing(NamedTuple):
    """The public numbers of `add_observed`.

    Attributes:
        alpha: how much more an item that a person has weighs in the fit than one that they do not have.
        length: if above 0, factors are only a first guess, and get this length.
        radius: the longest factors.
        height: what is added beside the factors, and counts.
    """

    alpha: float
    length: float
    radius: float
    height: float


@kernel
def add_spreads(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
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
    """Add everybody's x x' with x = (u, 1), as `dpmf.kernels.bounded_sums.symmetric` has it.

    A person counts by the scale of their weights, times `lift`, or in full if that is more than 1.
    Shape: ((K + 1)·(K + 2)/2,). Bound: share · (radius² + 1).
    """
    width = U.shape[1]
    row, x = np.empty(width), np.empty(width + 1)
    for i in range(start, stop):
        weight = weight_scale(indptr, items, weights, i) * lift
        if not weight > 0.0:
            continue
        bounded_row(U, i, radius, row)
        for k in range(width):
            x[k] = row[k]
        x[width] = SAFETY
        scale, place = min(weight, 1.0) * share_of(shares, i) * steps, 0
        for k in range(width + 1):
            sums[place] += np.int64(scale * x[k] * x[k])
            place += 1
            for other in range(k):
                sums[place] += np.int64(scale * SAFETY * _ROOT_TWO * x[k] * x[other])
                place += 1


@kernel
def add_observed(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    own_indptr: NDArray[np.int64],
    own_items: NDArray[np.int32],
    start: int,
    stop: int,
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    V: NDArray[np.float32],
    c: NDArray[np.float32],
    common: NDArray[np.float64],
    pull: NDArray[np.float64],
    step: Observing,
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add weighted (u, height) to the items that people have, u fitted without the item; shape (n_items, K + 1).

    Bound: share · sqrt(radius² + height²).

    Args:
        indptr, items: what people have and counts.
        own_indptr, own_items: all that they have, to which they are fitted; what counts is among it.
        start, stop: the people to add.
        weights: of items.
        shares: of people.
        V, c: factors and biases of items.
        common, pull: what `common_of` returns.
        step: public numbers.
        steps: of the grid, per unit.
        sums: to add to.
    """
    n = V.shape[1]
    A, inverse = np.empty((n, n)), np.empty((n, n))
    y, u, v, g, row = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(start, stop):
        scale = weight_scale(indptr, items, weights, i) * share_of(shares, i) * steps
        if not scale > 0.0:
            continue
        equations(own_items[own_indptr[i] : own_indptr[i + 1]], V, c, common, pull, step.alpha, A, y)
        invert(A, inverse)
        _times(inverse, y, u)
        last = -1
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
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
            rest = 1.0 - step.alpha * h
            if not rest > _LEAST_REST:
                continue
            back = (step.alpha * score - 1.0 - step.alpha * (1.0 - c[j])) / rest
            for k in range(n):
                row[k] = u[k] + back * g[k]
            if step.length > 0.0:
                stretch(row, step.length)
            bound_row(row, step.radius)
            amount = scale * weights[j]
            for k in range(n):
                sums[j, k] += np.int64(amount * row[k])
            sums[j, n] += np.int64(amount * SAFETY * step.height)


@kernel
def _times(matrix: NDArray[np.float64], vector: NDArray[np.float64], product: NDArray[np.float64]) -> None:
    """Write a symmetric matrix times a vector to product (out)."""
    product[:] = 0.0
    for k in range(len(vector)):
        for other in range(len(vector)):
            product[other] += vector[k] * matrix[k, other]


@kernel
def stretch_people(start: int, stop: int, length: float, U: NDArray[np.float32]) -> None:
    """Scale the factors of people start..stop-1 in U (out) to a length, unless they are 0."""
    row = np.empty(U.shape[1])
    for i in range(start, stop):
        for k in range(len(row)):
            row[k] = U[i, k]
        stretch(row, length)
        for k in range(len(row)):
            U[i, k] = np.float32(row[k])


def observed_reference(
    items: NDArray[Any],
    weights: NDArray[Any],
    share: float,
    V: NDArray[Any],
    c: NDArray[Any],
    ridge: float,
    step: Observing,
) -> NDArray[np.float64]:
    """Return what one well-behaved person adds, before truncation and for steps = 1: a fit of its own per item."""
    w = weights[items] / np.sqrt(np.sum(weights[items] ** 2))
    full = np.zeros((len(c), V.shape[1] + 1))
    for place, j in enumerate(items):
        row = observer_reference(items[items != j], V, c, ridge, step.alpha)
        length = max(float(np.linalg.norm(row)), 1e-300)
        row = row * (step.length / length if step.length > 0 else 1.0)
        row = row * min(1.0, step.radius / max(float(np.linalg.norm(row)), 1e-300))
        full[j] = share * w[place] * np.append(row, step.height)
    return full
