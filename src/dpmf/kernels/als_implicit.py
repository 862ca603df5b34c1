"""Least-squares fits to implicit feedback: the items of a catalogue that a person has, and the rest.

For one person who has the items O of a catalogue, minimise over u, p_j being 1 for items in O and 0 for the rest,

    Σ_all (p_j - c_j - u·v_j)² + Σ_O α_j (1 - c_j - u·v_j)² + ridge ‖u‖²,

α_j being α, or more for an item that the person had several times: see `Confidence`.

All items enter through V'V and Σ c_j v_j, which `prepare_items` computes once: only a person's own items are visited.

Compiled as written, one person at a time: nobody's factors depend on who else is there, and private sums are made of
them.

>>> items = prepare_items(np.eye(2, dtype=np.float32), np.zeros(2, np.float32), 1.0)
>>> U = np.zeros((1, 2), np.float32)
>>> once = Csr(np.array([0, 1]), np.array([0], np.int32), np.ones(1, np.float32))
>>> solve_implicit(once, 0, 1, items, Confidence(1.0), U)
>>> U.round(3).tolist()
[[0.6669999957084656, 0.0]]
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.dense import LEAST_PIVOT, solve_plainly
from dpmf.kernels.jit import kernel, short_form
from dpmf.kernels.ridge import ERROR_STEP

_ITEMS_AT_ONCE = 64  # whose products are in memory
_PER_DOUBLING = 0.25  # of a count, what is added to its weight


class Confidence(NamedTuple):
    """How much more an item that a person has weighs than one that they do not have, by how often they had it.

    It is alpha for a count of one, and rises with the count, as its logarithm (a quarter for every doubling) or as the
    count itself, up to `most`.

    Attributes:
        alpha: for a count of one.
        most: larger counts weigh no more than this one; 1 if it does not matter how often somebody had an item.
        linear: whether twice the count weighs twice as much.
    """

    alpha: float
    most: float = 1.0
    linear: bool = False


@kernel
def extra_weight(count: float, confidence: Confidence) -> float:
    """Return the weight of an item with this count beyond that of an item that a person does not have.

    It is from alpha to what `most` weighs, whatever the number: below 1, or if it is none, it counts as 1.
    """
    if not count > 1.0 or not confidence.most > 1.0:
        return confidence.alpha
    count = min(count, confidence.most)
    return confidence.alpha * (count if confidence.linear else 1.0 + _PER_DOUBLING * math.log2(count))


def extra_weights(counts: NDArray[Any], confidence: Confidence) -> NDArray[np.float64]:
    """Return what `extra_weight` returns for each count."""
    number = np.asarray(counts, np.float64)
    cut = np.minimum(np.where(number > 1.0, number, 1.0), max(confidence.most, 1.0))
    return confidence.alpha * (cut if confidence.linear else 1.0 + _PER_DOUBLING * np.log2(cut))


class ImplicitItems(NamedTuple):
    """The items of a catalogue, with the part of the normal equations that is the same for everybody.

    Attributes:
        V: factors, shape (n_items, K).
        c: popularity, shape (n_items,).
        gramian: V'V + ridge I, shape (K, K).
        bias_sum: Σ c_j v_j, shape (K,).
    """

    V: NDArray[np.float32]
    c: NDArray[np.float32]
    gramian: NDArray[np.float64]
    bias_sum: NDArray[np.float64]


def prepare_items(V: NDArray[np.float32], c: NDArray[np.float32], ridge: float) -> ImplicitItems:
    """Return the items with the part of the normal equations that is the same for everybody."""
    return ImplicitItems(V, c, *sum_items(V, c, ridge))


@kernel
def sum_items(
    V: NDArray[np.float32], c: NDArray[np.float32], ridge: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return V'V + ridge I, shape (K, K), and Σ c_j v_j, shape (K,)."""
    width = V.shape[1]
    gramian, bias_sum, v = np.zeros((width, width)), np.zeros(width), np.empty(width)
    for j in range(len(V)):
        for k in range(width):
            v[k] = V[j, k]
        for k in range(width):
            bias_sum[k] += c[j] * v[k]
            for other in range(width):
                gramian[k, other] += v[k] * v[other]
    for k in range(width):
        gramian[k, k] += ridge
    return gramian, bias_sum


@short_form(sum_items)
def sum_items_reference(
    V: NDArray[Any], c: NDArray[Any], ridge: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what `sum_items` returns, summed in the same order: along the first axis, NumPy adds row after row."""
    width = V.shape[1]
    sums = np.zeros((width, width + 1))
    for first in range(0, len(V), _ITEMS_AT_ONCE):
        v = V[first : first + _ITEMS_AT_ONCE].astype(np.float64)
        factors = np.column_stack([v, c[first : first + _ITEMS_AT_ONCE].astype(np.float64)])
        sums = np.add.reduce(np.concatenate([sums[None], v[:, :, None] * factors[:, None, :]]), axis=0)
    return sums[:, :width] + ridge * np.eye(width), np.ascontiguousarray(sums[:, width])


@kernel
def fill_normal_equations(
    own: NDArray[np.int32],
    counts: NDArray[np.float32],
    items: ImplicitItems,
    confidence: Confidence,
    A: NDArray[np.float64],  # out
    y: NDArray[np.float64],  # out
) -> None:
    """Write the normal equations A u = y of a person who had these items so often.

    Only items in ascending order and in the catalogue count.
    """
    V, c, gramian, bias_sum = items
    n, last = len(y), -1
    v = np.empty(n)
    for k in range(n):
        y[k] = -bias_sum[k]
        for other in range(n):
            A[k, other] = gramian[k, other]
    for place in range(len(own)):
        j = own[place]
        if not last < j < len(V):
            continue
        last = j
        alpha = extra_weight(counts[place], confidence)
        right = 1.0 + alpha * (1.0 - c[j])
        for k in range(n):
            v[k] = V[j, k]
        for k in range(n):
            y[k] += right * v[k]
            weighted = alpha * v[k]
            for other in range(n):
                A[k, other] += weighted * v[other]


@kernel
def _solve(A: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Overwrite y (out) with A⁻¹y; A (out) is symmetric and positive definite: pivots need no search."""
    n = len(y)
    for a in range(n):
        pivot = 1.0 / max(A[a, a], LEAST_PIVOT)
        for row in range(a + 1, n):
            factor = A[a, row] * pivot
            y[row] -= factor * y[a]
            for k in range(row, n):
                A[row, k] -= factor * A[a, k]
    for a in range(n - 1, -1, -1):
        for k in range(a + 1, n):
            y[a] -= A[a, k] * y[k]
        y[a] /= max(A[a, a], LEAST_PIVOT)


@kernel
def solve_implicit(
    owned: Csr,
    start: int,
    stop: int,
    items: ImplicitItems,
    confidence: Confidence,
    U: NDArray[np.float32],  # out
) -> None:
    """Fit the factors of people start..stop-1 to the items they have; a person without any gets zeros.

    The slow equivalent, for one person, is `solve_implicit_reference`.
    """
    n = items.V.shape[1]
    A, y = np.empty((n, n)), np.empty(n)
    for i in range(start, stop):
        first, end = owned.indptr[i], owned.indptr[i + 1]
        if end > first:
            fill_normal_equations(owned.items[first:end], owned.values[first:end], items, confidence, A, y)
            _solve(A, y)
        else:
            y[:] = 0.0
        for k in range(n):
            U[i, k] = np.float32(y[k])


def solve_implicit_person(
    own: NDArray[np.int32], counts: NDArray[Any], items: ImplicitItems, confidence: Confidence
) -> NDArray[np.float64]:
    """Return what `solve_implicit` writes for one person with these items, up to rounding, without a compiler."""
    if not len(own):
        return np.zeros(items.V.shape[1])
    v = items.V[own].astype(np.float64)
    alpha = extra_weights(counts, confidence)
    right = 1.0 + alpha * (1.0 - items.c[own].astype(np.float64))
    return solve_plainly(items.gramian + v.T @ (alpha[:, None] * v), right @ v - items.bias_sum)


def solve_implicit_reference(
    own: NDArray[Any], V: NDArray[Any], c: NDArray[Any], ridge: float, alpha: float | NDArray[Any]
) -> NDArray[np.float64]:
    """Return u of one person, by weighted least squares over the whole catalogue; alpha of all or of each own item."""
    V, p = V.astype(np.float64), np.isin(np.arange(len(V)), own).astype(np.float64)
    weights = np.ones(len(V))
    weights[own] += alpha
    A = V.T @ (weights[:, None] * V) + ridge * np.eye(V.shape[1])
    return np.asarray(np.linalg.solve(A, V.T @ (weights * (p - c))))


@kernel
def implicit_squared_errors(
    owned: CsrPattern,
    start: int,
    stop: int,
    V: NDArray[np.float32],
    c: NDArray[np.float32],
    U: NDArray[np.float32],
) -> float:
    """Return Σ (1 - c_j - u_i·v_j)² over the items that people start..stop-1 have, in steps as `squared_errors`."""
    indptr, items = owned
    steps = 0.0
    for i in range(start, stop):
        own = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
            e = 1.0 - c[j]
            for k in range(V.shape[1]):
                e -= U[i, k] * V[j, k]
            own += e * e
        steps += np.rint(own / ERROR_STEP)
    return steps * ERROR_STEP


def implicit_squared_errors_reference(owned: CsrPattern, V: NDArray[Any], c: NDArray[Any], U: NDArray[Any]) -> float:
    """Return what `implicit_squared_errors` returns for everybody."""
    people = np.repeat(np.arange(len(U)), np.diff(owned.indptr))
    scores = c[owned.items] + np.einsum("nk,nk->n", U[people], V[owned.items], dtype=np.float64)
    return float(np.square(1.0 - scores).sum())
