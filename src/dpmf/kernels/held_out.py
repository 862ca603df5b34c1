"""Sums of residuals in which every rating is predicted by what the person's other ratings say.

A person's bias and factors are fitted to their ratings. A rating that took part in the fit pulls it towards itself, so
that its residual and the factors agree even where there is nothing to learn: whatever direction the item factors
have is then confirmed, noise included. So each rating is left out of the fit that it is compared with. For ridge
regression with matrix A = Z'Z + ridges and solution t that needs no second fit: with g = A⁻¹z, h = z·g and residual
r = e - z·t of one rating, leaving it out gives the solution t - g r/(1 - h) and the residual r/(1 - h).

The bound on what a person adds is that of `dpmf.kernels.bounded_sums`, whose rules hold here, too.

>>> sums, nothing = np.zeros((2, 1), np.int64), np.zeros((2, 0), np.float32)
>>> one = np.array([0, 2]), np.array([0, 1], np.int32), np.array([4.0, 5.0], np.float32)
>>> step = HeldOut(3.0, 1e-6, 1.0, 0.0, 1.0, 1.0, 1.0)
>>> add_held_out_residuals(*one, *one, 0, 1, np.ones(2), np.ones(1), np.zeros(2, np.float32), nothing, step, 1e6, sums)
>>> (sums / 1e6).round(3).ravel().tolist()  # 4 is 1 less than 5, and 5 is 1 more than 4; each has the weight 1/√2
[-0.707, 0.707]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.bounded_sums import SAFETY, bound_row, share_of, weight_scale
from dpmf.kernels.dense import invert, stretch
from dpmf.kernels.jit import kernel

_AT_ONCE = 4  # ratings: a matrix entry is loaded once for so many products
_LEAST_REST = 1e-6  # of a rating that all but decides the fit, nothing can be said without it


class HeldOut(NamedTuple):
    """The public numbers of `add_held_out_residuals`.

    Attributes:
        mean: what every prediction starts from.
        ridge_b, ridge_u: penalties on a person's bias and factors.
        length: if above 0, factors are only a first guess: they get this length, and do not predict.
        clip: where residuals are cut off.
        radius: the longest factors.
        height: the factor that stands for the bias.
    """

    mean: float
    ridge_b: float
    ridge_u: float
    length: float
    clip: float
    radius: float
    height: float


@kernel
def fit_person(
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    c: NDArray[np.float32],
    V: NDArray[np.float32],
    step: HeldOut,
    inverse: NDArray[np.float64],  # out
    solution: NDArray[np.float64],  # out
) -> float:
    """Find the inverse of the normal equations' matrix and their solution, (factors, bias); return Σ e."""
    n, total, held = len(solution), 0.0, 0
    Z, e, y = np.zeros((_AT_ONCE, n)), np.zeros(_AT_ONCE), np.zeros(n)
    A = np.zeros((n, n))
    for place in range(len(items)):
        j = items[place]
        if 0 <= j < len(c):
            e[held] = np.float64(values[place]) - step.mean - c[j]
            total += e[held]
            for k in range(n - 1):
                Z[held, k] = V[j, k]
            Z[held, n - 1] = 1.0
            held += 1
        if held == _AT_ONCE or (held > 0 and place == len(items) - 1):
            Z[held:] = 0.0
            e[held:] = 0.0
            held = 0
            _add_products(Z, e, A, y)
    for k in range(n):
        for other in range(k):
            A[other, k] = A[k, other]
    for k in range(n - 1):
        A[k, k] += step.ridge_u
    A[n - 1, n - 1] += step.ridge_b
    invert(A, inverse)
    for k in range(n):
        solution[k] = 0.0
        for other in range(n):
            solution[k] += inverse[k, other] * y[other]
    return total


@kernel
def _add_products(
    Z: NDArray[np.float64],
    e: NDArray[np.float64],
    A: NDArray[np.float64],  # out
    y: NDArray[np.float64],  # out
) -> None:
    """Add Z'Z to the lower triangle of A, and Z'e to y."""
    z0, z1, z2, z3 = Z[0], Z[1], Z[2], Z[3]
    for k in range(len(y)):
        a0, a1, a2, a3 = z0[k], z1[k], z2[k], z3[k]
        y[k] += a0 * e[0] + a1 * e[1] + a2 * e[2] + a3 * e[3]
        row = A[k]
        for other in range(k + 1):
            row[other] += a0 * z0[other] + a1 * z1[other] + a2 * z2[other] + a3 * z3[other]


@kernel
def _multiply(Z: NDArray[np.float64], M: NDArray[np.float64], product: NDArray[np.float64]) -> None:
    """Write Z M to product (out)."""
    product[:] = 0.0
    p0, p1, p2, p3 = product[0], product[1], product[2], product[3]
    for k in range(len(M)):
        z0, z1, z2, z3, row = Z[0, k], Z[1, k], Z[2, k], Z[3, k], M[k]
        for other in range(len(row)):
            p0[other] += z0 * row[other]
            p1[other] += z1 * row[other]
            p2[other] += z2 * row[other]
            p3[other] += z3 * row[other]


@kernel
def add_held_out_residuals(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    own_indptr: NDArray[np.int64],
    own_items: NDArray[np.int32],
    own_values: NDArray[np.float32],
    start: int,
    stop: int,
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    c: NDArray[np.float32],
    V: NDArray[np.float32],
    step: HeldOut,
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add weighted, clipped residuals times (u, height) to the items, shape (n_items, K + 1).

    Bound: share · clip · sqrt(radius² + height²).

    Args:
        indptr, items, values: the ratings that count.
        own_indptr, own_items, own_values: all ratings, to which people are fitted; those that count are among them.
        start, stop: the people to add.
        weights: of items.
        shares: of people.
        c, V: biases and factors of items.
        step: public numbers.
        steps: of the grid, per unit.
        sums: to add to.
    """
    width = V.shape[1]
    inverse, solution = np.empty((width + 1, width + 1)), np.empty(width + 1)
    Z, G, row = np.zeros((_AT_ONCE, width + 1)), np.empty((_AT_ONCE, width + 1)), np.empty(width)
    Z[:, width] = 1.0
    places = np.empty(_AT_ONCE, np.int64)
    for i in range(start, stop):
        scale = weight_scale(indptr, items, weights, i) * share_of(shares, i) * steps
        if not scale > 0.0:
            continue
        first, end = own_indptr[i], own_indptr[i + 1]
        total = fit_person(own_items[first:end], own_values[first:end], c, V, step, inverse, solution)
        last, held = -1, 0
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
            if last < j < len(weights):
                last = j
                places[held] = p
                for k in range(width):
                    Z[held, k] = V[j, k]
                held += 1
            if held < _AT_ONCE and p < indptr[i + 1] - 1:
                continue
            _multiply(Z, inverse, G)
            for one in range(held):
                j = items[places[one]]
                e = np.float64(values[places[one]]) - step.mean - c[j]
                h, residual = 0.0, e
                for k in range(width + 1):
                    h += Z[one, k] * G[one, k]
                    residual -= Z[one, k] * solution[k]
                if not 1.0 - h > _LEAST_REST:
                    continue
                residual /= 1.0 - h
                for k in range(width):
                    row[k] = solution[k] - G[one, k] * residual
                if step.length > 0.0:
                    residual = e - (total - e) / (max(end - first - 1, 0) + step.ridge_b)
                    stretch(row, step.length)
                bound_row(row, step.radius)
                if not abs(residual) < np.inf:
                    continue
                amount = scale * weights[j] * min(max(residual, -step.clip), step.clip)
                for k in range(width):
                    sums[j, k] += np.int64(amount * row[k])
                sums[j, width] += np.int64(amount * SAFETY * step.height)
            held = 0


def held_out_reference(
    items: NDArray[Any],
    values: NDArray[Any],
    weights: NDArray[Any],
    share: float,
    c: NDArray[Any],
    V: NDArray[Any],
    step: HeldOut,
) -> NDArray[np.float64]:
    """Return what one well-behaved person adds, before truncation and for steps = 1: a fit of its own per rating."""
    width = V.shape[1]
    w = weights[items] / np.sqrt(np.sum(weights[items] ** 2))
    Z, e = np.c_[V[items].astype(np.float64), np.ones(len(items))], values - step.mean - c[items]
    ridges = np.diag([step.ridge_u] * width + [step.ridge_b])
    full = np.zeros((len(c), width + 1))
    for place, j in enumerate(items):
        others = np.arange(len(items)) != place
        u = np.linalg.solve(Z[others].T @ Z[others] + ridges, Z[others].T @ e[others])
        residual, row = e[place] - Z[place] @ u, u[:width]
        if step.length > 0:
            residual = e[place] - e[others].sum() / (others.sum() + step.ridge_b)
            row = row * step.length / max(float(np.linalg.norm(row)), 1e-300)
        row = row * min(1.0, step.radius / max(float(np.linalg.norm(row)), 1e-300))
        full[j] = share * w[place] * np.clip(residual, -step.clip, step.clip) * np.append(row, step.height)
    return full
