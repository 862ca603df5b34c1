"""Stochastic gradient descent on the ratings of one block.

Letters: user i, item j, factors u_i and v_j, biases b_i and c_j, rating r, error e = r - mean - b_i - c_j - u_i·v_j,
step eta, penalty lambda, unit s of the rating scale. One rating moves

    u_i += eta (e v_j / s - lambda u_i),   v_j += eta (e u_i / s - lambda v_j),
    b_i += eta (e - lambda b_i),           c_j += eta (e - lambda c_j),

both factor rows from their old values. This is plain SGD on ratings divided by s, written in the ratings' own units
(factors grow with √s, biases with s), so that one eta and one lambda serve every scale.

The ratings of a block are ordered by user. They are visited in several lanes in turn: of n ratings the first, the one
at n/lanes, the one at 2n/lanes, …, then the second, and so on. Neighbours in this order belong to different users, so
the processor can start one while it still finishes another, and every lane's user stays in the cache.

>>> import numpy as np
>>> U, V, b, c = np.ones((1, 2)), np.ones((1, 2)), np.zeros(1), np.zeros(1)
>>> table = np.array([5.0])
>>> sgd_block_reference(np.array([0]), np.array([0]), np.array([0]), table, U, V, b, c, Step(2.0, 0.1, 0.0, 1.0), 1)
1.0
>>> U
array([[1.1, 1.1]])
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.jit import fast_kernel, kernel
from dpmf.kernels.rows import FLOATS_PER_LINE, descend

_VISITS_AHEAD = 2  # in each lane
LANES = 4
_LONG_ROW = 384


@kernel
def lanes_for(width: Any) -> int:
    """Return the number of lanes for rows of `width` floats; long rows would crowd each other out of the cache.

    >>> lanes_for(64), lanes_for(1024)
    (4, 1)
    """
    return LANES if width < _LONG_ROW else 1


class Step(NamedTuple):
    """The numbers of the module's formulas, as float32.

    >>> Step.of(3.5, 0.01, 0.02, 1.0).mean
    np.float32(3.5)
    """

    mean: np.float32
    eta: np.float32
    lam: np.float32
    unit: np.float32

    @classmethod
    def of(cls, mean: float, eta: float, lam: float, unit: float) -> Step:
        """Convert plain numbers."""
        return cls(np.float32(mean), np.float32(eta), np.float32(lam), np.float32(unit))


class _Run(NamedTuple):
    """What the visits of a block share, besides its ratings: flat rows, biases, and the numbers of an update."""

    U: Any
    V: Any
    b: Any
    c: Any
    width: Any
    stride: Any
    mean: Any
    eta: Any
    keep: Any
    factor_eta: Any
    state: Any


@numba.njit(inline="always")
def _visit(p: Any, users: Any, items: Any, codes: Any, table: Any, run: Any) -> Any:
    i, j = users[p], items[p]
    coming = items[min(p + _VISITS_AHEAD, len(codes) - 1)]
    target = table[codes[p]] - run.mean - run.b[i] - run.c[j]
    u, v, v_next = np.int64(i) * run.width, np.int64(j) * run.stride, np.int64(coming) * run.stride
    e = descend(run.U, u, run.V, v, v_next, run.width, target, run.keep, run.factor_eta, run.state)
    run.b[i] = run.keep * run.b[i] + run.eta * e
    run.c[j] = run.keep * run.c[j] + run.eta * e
    return np.float64(e) * np.float64(e)


@fast_kernel
def sgd_block(
    users: NDArray[Any],
    items: NDArray[Any],
    codes: NDArray[Any],
    table: NDArray[np.float32],
    U: NDArray[np.float32],  # out
    V: NDArray[Any],  # out
    b: NDArray[np.float32],  # out
    c: NDArray[np.float32],  # out
    step: Step,
    seed: np.uint64,
) -> float:
    """Visit the ratings of a block; return the sum of e², each before its update.

    Args:
        users, items: shape (n,), rows of U and V; unsigned integers.
        codes: shape (n,), indices into the table of rating values.
        table: the values.
        U, V: shape (rows, width), contiguous, width a multiple of 16; columns beyond the model's K are zero and stay
            so. V is float32, or uint32 words, see `dpmf.kernels.rows`.
        b, c: biases of users and items.
        step: mean, eta, lambda and unit of the module's formulas.
        seed: of the rounding of a 16-bit V.
    """
    width, stride = np.int64(U.shape[1]), np.int64(V.shape[1])
    state = np.empty(FLOATS_PER_LINE, np.uint32)
    for place in range(FLOATS_PER_LINE):
        state[place] = np.uint32(((seed >> np.uint64(32)) + np.uint64(place) * np.uint64(0x9E3779B9)) | np.uint64(1))
    keep, factor_eta = np.float32(1) - step.eta * step.lam, step.eta / step.unit
    flat_U, flat_V = U.reshape(U.size), V.reshape(V.size)
    run = _Run(flat_U, flat_V, b, c, width, stride, step.mean, step.eta, keep, factor_eta, state)
    squared = 0.0
    length = len(codes) // LANES if lanes_for(width) == LANES else 0
    for turn in range(length):
        for lane in range(LANES):
            squared += _visit(lane * length + turn, users, items, codes, table, run)
    for p in range(LANES * length, len(codes)):
        squared += _visit(p, users, items, codes, table, run)
    return squared


def visiting_order(count: int, lanes: int) -> Iterator[int]:
    """Yield the indices of a block's ratings in the order in which `sgd_block` visits them.

    >>> list(visiting_order(7, 3))
    [0, 2, 4, 1, 3, 5, 6]
    """
    length = count // lanes
    yield from (lane * length + step for step in range(length) for lane in range(lanes))
    yield from range(lanes * length, count)


def sgd_block_reference(
    users: NDArray[Any],
    items: NDArray[Any],
    codes: NDArray[Any],
    table: NDArray[Any],
    U: NDArray[Any],  # out
    V: NDArray[Any],  # out
    b: NDArray[Any],  # out
    c: NDArray[Any],  # out
    step: Step,
    lanes: int,
) -> float:
    """Do what `sgd_block` does, in the precision of the given arrays."""
    mean, eta, lam, unit = step
    squared = 0.0
    for p in visiting_order(len(codes), lanes):
        i, j = users[p], items[p]
        e = table[codes[p]] - mean - b[i] - c[j] - U[i] @ V[j]
        squared += float(e) ** 2
        b[i] += eta * (e - lam * b[i])
        c[j] += eta * (e - lam * c[j])
        U[i], V[j] = U[i] + eta * (e * V[j] / unit - lam * U[i]), V[j] + eta * (e * U[i] / unit - lam * V[j])
    return squared
