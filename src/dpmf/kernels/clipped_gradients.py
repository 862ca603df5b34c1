"""Everybody's gradient with respect to item factors and biases, clipped as a whole and summed in integers.

With errors e_ij = r_ij - b_i - c_j - u_i·v_j, person i's part is the vector of all e_ij (u_i, height), over the items j
that they rated; it is scaled down to a length of `clip` if it is longer. docs/proofs/sgld.md and, for full batches,
docs/proofs/gaussian.md prove that its length is bounded whatever the ratings, factors and biases are. As in
`dpmf.kernels.bounded_sums`, only ratings of items in the catalogue and in ascending order count.

>>> five = Csr(np.array([0, 1]), np.array([0], np.int32), np.array([5], np.float32))
>>> one = np.ones((1, 1), np.float32)
>>> sums, zero, share = np.zeros((1, 2), np.int64), np.zeros(1, np.float32), np.ones(1)
>>> add_clipped_gradients(five, 0, 1, one, zero, zero, one, share, 1.0, 2.0, 1e6, sums)
>>> (sums / 1e6).round(3).tolist()  # e (u, 1) = 4 (1, 1), scaled to a length of 2
[[1.414, 1.414]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.bounded_sums import SAFETY, valid_share
from dpmf.kernels.csr import Csr
from dpmf.kernels.jit import kernel


@kernel
def prediction_error(value: Any, bias: Any, item_bias: Any, u: NDArray[np.float32], v: NDArray[np.float32]) -> float:
    """Return value - bias - item_bias - u·v in double precision."""
    error = np.float64(value) - np.float64(bias) - np.float64(item_bias)
    for k in range(len(u)):
        error -= np.float64(u[k]) * np.float64(v[k])
    return error


@kernel
def add_clipped_gradients(
    rated: Csr,
    start: int,
    stop: int,
    V: NDArray[np.float32],
    c: NDArray[np.float32],
    b: NDArray[np.float32],
    U: NDArray[np.float32],
    shares: NDArray[np.float64],
    height: float,
    clip: float,
    steps: float,
    sums: NDArray[np.int64],  # out
) -> None:
    """Add the gradients of people start..stop-1 to the items, shape (n_items, K + 1). Bound: share · clip.

    Args:
        rated: ratings, centred.
        V, c: item factors, shape (n_items, K), and biases.
        b, U: biases and factors of people.
        shares: of the clip, from 0 to 1; anything else is taken as 0.
        height: how much biases count beside factors.
        clip: the greatest length.
        steps: of the grid, per unit.
        sums: to add to.
    """
    indptr, items, values = rated
    n_items, K = V.shape
    for i in range(start, stop):
        limit = valid_share(shares, i) * clip
        weight = height * height
        for k in range(K):
            weight += np.float64(U[i, k]) * np.float64(U[i, k])
        last, total = -1, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
            if last < j < n_items:
                last = j
                e = prediction_error(values[p], b[i], c[j], U[i], V[j])
                total += e * e
        length = np.sqrt(weight) * np.sqrt(total)
        if not (limit > 0.0 and length < np.inf):
            continue
        scale = steps * SAFETY * (limit / length if length > limit else 1.0)
        last = -1
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
            if last < j < n_items:
                last = j
                amount = scale * prediction_error(values[p], b[i], c[j], U[i], V[j])
                for k in range(K):
                    sums[j, k] += np.int64(amount * np.float64(U[i, k]))
                sums[j, K] += np.int64(amount * height)


def add_clipped_gradients_reference(
    items: NDArray[Any],
    values: NDArray[Any],
    V: NDArray[Any],
    c: NDArray[Any],
    b: float,
    u: NDArray[Any],
    share: float,
    height: float,
    clip: float,
) -> NDArray[np.float64]:
    """Return one person's clipped gradient, shape (n_items, K + 1), of ratings of different items in the catalogue."""
    gradient = np.zeros((len(V), V.shape[1] + 1))
    errors = values - b - c[items] - V[items] @ u
    gradient[items] = errors[:, None] * np.append(u, height)
    length = np.linalg.norm(gradient)
    return gradient * min(1.0, share * clip / length) if length else gradient
