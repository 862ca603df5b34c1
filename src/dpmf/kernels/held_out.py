"""Bounded sums of held-out residuals: every rating is predicted from the person's other ratings.

A person's bias and factors are fitted to their ratings. A rating that took part in the fit pulls it towards itself, so
that its residual and the factors agree even where there is nothing to learn: whatever direction the item factors
have is then confirmed, noise included. So each rating is left out of the fit that it is compared with. For ridge
regression with matrix A = Z'Z + ridges and solution t that needs no second fit: with g = A⁻¹z, h = z·g and residual
r = e - z·t of one rating, leaving it out gives the solution t - g r/(1 - h) and the residual r/(1 - h).

What a person adds is bounded as in `dpmf.kernels.bounded_sums`, whose rules apply here, too.

>>> sums, nothing = np.zeros((2, 1), np.int64), np.zeros((2, 0), np.float32)
>>> one = Csr(np.array([0, 2]), np.array([0, 1], np.int32), np.array([4.0, 5.0], np.float32))
>>> public = nothing, np.zeros(2, np.float32), HeldOutSettings(3.0, 1e-6, 1.0, 0.0, 1.0, 1.0, 1.0)
>>> add_held_out_residuals(one, one, 0, 1, np.ones(2), np.ones(1), *public, 1e6, sums)
>>> (sums / 1e6).round(3).ravel().tolist()  # 4 is 1 less than 5, and 5 is 1 more than 4; each has the weight 1/√2
[-0.707, 0.707]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.bounded_sums import SAFETY, clip_norm, clip_norm_reference, valid_share, weight_normalizer
from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.dense import invert, rescale
from dpmf.kernels.jit import kernel

_BATCH = 4  # ratings per pass: a matrix entry is loaded once for four products
_LEAST_SLACK = 1e-6  # of 1 - h: a rating that all but decides the fit cannot be predicted from the others


class HeldOutSettings(NamedTuple):
    """The public numbers of `add_held_out_residuals`.

    Attributes:
        mean: what every prediction starts from.
        ridge_b, ridge_u: penalties on a person's bias and factors.
        length: if above 0, factors that are summed are only a first guess: they are scaled to this length, and do not
            predict.
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
    V: NDArray[np.float32],
    c: NDArray[np.float32],
    settings: HeldOutSettings,
    inverse: NDArray[np.float64],  # out
    solution: NDArray[np.float64],  # out
) -> float:
    """Write the inverse of the normal equations' matrix and their solution, (factors, bias); return Σ e."""
    n, total, held = len(solution), 0.0, 0
    Z, e, y = np.zeros((_BATCH, n)), np.zeros(_BATCH), np.zeros(n)
    A = np.zeros((n, n))
    for place in range(len(items)):
        j = items[place]
        if 0 <= j < len(c):
            e[held] = np.float64(values[place]) - settings.mean - c[j]
            total += e[held]
            for k in range(n - 1):
                Z[held, k] = V[j, k]
            Z[held, n - 1] = 1.0
            held += 1
        if held == _BATCH or (held > 0 and place == len(items) - 1):
            Z[held:] = 0.0
            e[held:] = 0.0
            held = 0
            _add_products(Z, e, A, y)
    for k in range(n):
        for other in range(k):
            A[other, k] = A[k, other]
    for k in range(n - 1):
        A[k, k] += settings.ridge_u
    A[n - 1, n - 1] += settings.ridge_b
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
    counted: Csr,
    rated: Csr,
    start: int,
    stop: int,
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    V: NDArray[np.float32],
    c: NDArray[np.float32],
    settings: HeldOutSettings,
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add weighted, clipped residuals times (u, height) to the items, shape (n_items, K + 1).

    Bound: share · clip · sqrt(radius² + height²). u are a person's first K factors, as many as the shape of sums says;
    others take part in the fit alone. With sums of shape (n_items, 1), residuals are only added times height. Bound:
    share · clip · height.

    Args:
        counted: the ratings that count.
        rated: all ratings, to which people are fitted; those that count are among them.
        start, stop: the people to add.
        weights: of items.
        shares: of people.
        V, c: factors and biases of items.
        settings: public numbers.
        steps: of the grid, per unit.
        sums: to add to.
    """
    indptr, items, values = counted
    pattern = CsrPattern(indptr, items)
    width = V.shape[1]
    added = min(sums.shape[1] - 1, width)
    inverse, solution = np.empty((width + 1, width + 1)), np.empty(width + 1)
    Z, G, row = np.zeros((_BATCH, width + 1)), np.empty((_BATCH, width + 1)), np.empty(added)
    Z[:, width] = 1.0
    places = np.empty(_BATCH, np.int64)
    for i in range(start, stop):
        scale = weight_normalizer(pattern, weights, i) * valid_share(shares, i) * steps
        if not scale > 0.0:
            continue
        first, end = rated.indptr[i], rated.indptr[i + 1]
        total = fit_person(rated.items[first:end], rated.values[first:end], V, c, settings, inverse, solution)
        last, held = -1, 0
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
            if last < j < len(weights):
                last = j
                places[held] = p
                for k in range(width):
                    Z[held, k] = V[j, k]
                held += 1
            if held < _BATCH and p < indptr[i + 1] - 1:
                continue
            _multiply(Z, inverse, G)
            for one in range(held):
                j = items[places[one]]
                e = np.float64(values[places[one]]) - settings.mean - c[j]
                h, residual = 0.0, e
                for k in range(width + 1):
                    h += Z[one, k] * G[one, k]
                    residual -= Z[one, k] * solution[k]
                if not 1.0 - h > _LEAST_SLACK:
                    continue
                residual /= 1.0 - h
                for k in range(added):
                    row[k] = solution[k] - G[one, k] * residual
                if settings.length > 0.0:
                    if added == width:
                        residual = e - (total - e) / (max(end - first - 1, 0) + settings.ridge_b)
                    else:
                        for k in range(added):
                            residual += Z[one, k] * row[k]
                    rescale(row, settings.length)
                clip_norm(row, settings.radius)
                if not abs(residual) < np.inf:
                    continue
                amount = scale * weights[j] * min(max(residual, -settings.clip), settings.clip)
                for k in range(added):
                    sums[j, k] += np.int64(amount * row[k])
                sums[j, added] += np.int64(amount * SAFETY * settings.height)
            held = 0


def add_held_out_residuals_reference(
    items: NDArray[Any],
    values: NDArray[Any],
    weights: NDArray[Any],
    share: float,
    V: NDArray[Any],
    c: NDArray[Any],
    settings: HeldOutSettings,
    added: int | None = None,
) -> NDArray[np.float64]:
    """Return what one person with valid ratings adds, before truncation and for steps = 1: one fit per rating.

    Args:
        items, values, weights, share, V, c, settings: as above.
        added: how many factors are summed; None for all of them.
    """
    width = V.shape[1]
    added = width if added is None else added
    w = weights[items] / np.sqrt(np.sum(weights[items] ** 2))
    Z, e = np.c_[V[items].astype(np.float64), np.ones(len(items))], values - settings.mean - c[items]
    ridges = np.diag([settings.ridge_u] * width + [settings.ridge_b])
    full = np.zeros((len(c), added + 1))
    for place, j in enumerate(items):
        others = np.arange(len(items)) != place
        u = np.linalg.solve(Z[others].T @ Z[others] + ridges, Z[others].T @ e[others])
        residual, row = e[place] - Z[place] @ u, u[:added]
        if settings.length > 0:
            residual += Z[place, :added] @ row
            if added == width:
                residual = e[place] - e[others].sum() / (others.sum() + settings.ridge_b)
            row = row * settings.length / max(float(np.linalg.norm(row)), 1e-300)
        row = clip_norm_reference(row, settings.radius)
        full[j] = share * w[place] * np.clip(residual, -settings.clip, settings.clip) * np.append(row, settings.height)
    return full
