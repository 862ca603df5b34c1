"""Stochastic gradient descent on the ratings of one block.

Letters: user i, item j, factors u_i and v_j, biases b_i and c_j, rating r, error e = r - mean - b_i - c_j - u_i·v_j,
step eta, penalty lambda, unit s of the rating scale. One rating moves

    u_i += eta (e v_j / s - lambda u_i),   v_j += eta (e u_i / s - lambda v_j),
    b_i += eta (e - lambda b_i),           c_j += eta (e - lambda c_j),

both factor rows from their old values. This is plain SGD on ratings divided by s, written in the ratings' own units
(factors grow with √s, biases with s), so that one eta and one lambda serve every scale.

>>> import numpy as np
>>> U, V, b, c = np.ones((1, 2)), np.ones((1, 2)), np.zeros(1), np.zeros(1)
>>> sgd_block_reference(np.array([0]), np.array([0]), np.array([5.0]), 0, 1, U, V, b, c, 2.0, 0.1, 0.0, 1.0)
1.0
>>> U
array([[1.1, 1.1]])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.compiling import fast_kernel, prefetch_row

_FLOATS_PER_LINE = 16
_RATINGS_AHEAD = 2


@fast_kernel
def sgd_block(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    start: int,
    stop: int,
    U: NDArray[np.float32],  # out
    V: NDArray[np.float32],  # out
    b: NDArray[np.float32],  # out
    c: NDArray[np.float32],  # out
    mean: np.float32,
    eta: np.float32,
    lam: np.float32,
    unit: np.float32,
) -> float:
    """Visit ratings start..stop-1 in turn; return the sum of e² as met on the way.

    Args:
        users, items, values: the ratings of all blocks.
        start, stop: the part to visit.
        U, V: shape (n, width), rows of whole cache lines; columns beyond the model's K hold zeros and keep them.
        b, c: biases of users and items.
        mean, eta, lam, unit: as in the module's formulas.
    """
    width = U.shape[1]
    keep = np.float32(1) - eta * lam
    factor_eta = eta / unit
    flat = V.reshape(V.size)
    squared = 0.0
    for p in range(start, stop):
        if p + _RATINGS_AHEAD < stop:
            ahead = np.int64(items[p + _RATINGS_AHEAD]) * width
            for x in range(0, width, _FLOATS_PER_LINE):
                prefetch_row(flat, ahead + x)  # type: ignore[call-arg]  # the compiler supplies the first one
        i = users[p]
        j = items[p]
        u = U[i]
        v = V[j]
        dot = np.float32(0)
        for k in range(width):
            dot += u[k] * v[k]
        e = values[p] - mean - b[i] - c[j] - dot
        squared += np.float64(e) * np.float64(e)
        b[i] = keep * b[i] + eta * e
        c[j] = keep * c[j] + eta * e
        step = factor_eta * e
        for k in range(width):
            old_u = u[k]
            old_v = v[k]
            u[k] = keep * old_u + step * old_v
            v[k] = keep * old_v + step * old_u
    return squared


def sgd_block_reference(
    users: NDArray[Any],
    items: NDArray[Any],
    values: NDArray[Any],
    start: int,
    stop: int,
    U: NDArray[Any],  # out
    V: NDArray[Any],  # out
    b: NDArray[Any],  # out
    c: NDArray[Any],  # out
    mean: float,
    eta: float,
    lam: float,
    unit: float,
) -> float:
    """Do what `sgd_block` does, in the precision of the arrays given."""
    squared = 0.0
    for i, j, r in zip(users[start:stop], items[start:stop], values[start:stop], strict=True):
        e = r - mean - b[i] - c[j] - U[i] @ V[j]
        squared += float(e) ** 2
        b[i] += eta * (e - lam * b[i])
        c[j] += eta * (e - lam * c[j])
        U[i], V[j] = U[i] + eta * (e * V[j] / unit - lam * U[i]), V[j] + eta * (e * U[i] / unit - lam * V[j])
    return squared
