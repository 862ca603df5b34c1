"""Stochastic gradient descent on the ratings of one block.

Letters: user i, item j, factors u_i and v_j, biases b_i and c_j, rating r, error e = r - mean - b_i - c_j - u_i·v_j,
step eta, penalty lambda, unit s of the rating scale. One rating moves

    u_i += eta (e v_j / s - lambda u_i),   v_j += eta (e u_i / s - lambda v_j),
    b_i += eta (e - lambda b_i),           c_j += eta (e - lambda c_j),

both factor rows from their old values. This is plain SGD on ratings divided by s, written in the ratings' own units
(factors grow with √s, biases with s), so that one eta and one lambda serve every scale.

The ratings of a block are ordered by user, and no user has an item twice. Four ratings of one user are one step: all
four errors and all moves come from the old values, and u_i and b_i are moved by the sum of what each of the four asks
for. What is left of a user's ratings in the block makes a step of two, a step of one, or both.

>>> import numpy as np
>>> U, V, b, c = np.ones((1, 2)), np.ones((2, 2)), np.zeros(1), np.zeros(2)
>>> users, items, codes, table = np.zeros(2, int), np.arange(2), np.zeros(2, int), np.array([5.0])
>>> sgd_block_reference(users, items, codes, table, U, V, b, c, Step(2.0, 0.1, 0.0, 1.0))
2.0
>>> U[0].round(3).tolist(), V[1].round(3).tolist()
([1.2, 1.2], [1.1, 1.1])
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.descend import descend, ratings_in_step, size_of_step
from dpmf.kernels.jit import kernel
from dpmf.kernels.rows import FLOATS_PER_LINE


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


@kernel
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
        users, items: shape (n,), rows of U and V; unsigned integers, ordered by user, and no pair twice.
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
    flat_U, flat_V, decay, gain = U.reshape(U.size), V.reshape(V.size), step.eta * step.lam, step.eta / step.unit
    squared, place = 0.0, 0
    while place < len(codes):
        size = size_of_step(place, users)
        squared += descend(
            place, size, users, items, codes, table, flat_U, flat_V, b, c,
            width, stride, step.mean, step.eta, decay, gain, state,
        )  # fmt: skip
        place += size
    return squared


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
) -> float:
    """Do what `sgd_block` does, in the precision of the given arrays."""
    mean, eta, lam, unit = step
    squared, place = 0.0, 0
    while place < len(codes):
        size = ratings_in_step(users, place)
        i, j = users[place], items[place : place + size]
        e = table[codes[place : place + size]] - mean - b[i] - c[j] - V[j] @ U[i]
        squared += float(e @ e)
        b[i] += eta * (e.sum() - size * lam * b[i])
        c[j] += eta * (e - lam * c[j])
        u = U[i].copy()
        U[i] += eta * (e @ V[j] / unit - size * lam * u)
        V[j] += eta * (np.outer(e, u) / unit - lam * V[j])
        place += size
    return squared
