"""Everybody's gradient with respect to the cells of a sketch of items, clipped as a whole and summed in integers.

Item j has the components of its factors and, divided by `height`, its bias. Component l lives in k cells, one per row,
each with a sign. With errors e_ij = r_ij - b_i - c_j - u_i·v_j, person i's part is a vector with one number per cell:
the sum of sign · e_ij (u_i, height)_l over all items j that they rated and all components l that live there. What
shares a cell adds up or cancels there *before* the vector is clipped, so that its length is bounded however items
collide. docs/proofs/sketch.md has the proof. As in `dpmf.kernels.bounded_sums`, only ratings of items in the catalogue
and in ascending order count.

>>> five = Csr(np.array([0, 1]), np.array([0], np.int32), np.array([5], np.float32))
>>> one = np.ones((1, 1), np.float32)
>>> places, signs = np.array([[0, 0]], np.uint32), np.ones((1, 2), np.float32)  # both components in the same cell
>>> sums, zero, share = np.zeros(1, np.int64), np.zeros(1, np.float32), np.ones(1)
>>> add_sketched_gradients(five, 0, 1, one, zero, zero, one, share, 1.0, 2.0, 1e6, places, signs, sums)
>>> (sums / 1e6).round(3).tolist()  # 4 (1 + 1) = 8 in the one cell, scaled to a length of 2
[2.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.bounded_sums import SAFETY, valid_share
from dpmf.kernels.clipped_gradients import prediction_error
from dpmf.kernels.csr import Csr
from dpmf.kernels.jit import kernel


@kernel
def add_sketched_gradients(
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
    places: NDArray[np.uint32],
    signs: NDArray[np.float32],
    sums: NDArray[np.int64],  # out
) -> None:
    """Add the gradients of people start..stop-1 to the cells, shape (k·w,). Bound: share · clip.

    Args:
        rated: ratings, centred.
        V, c: item factors, shape (n_items, K), and biases, as they are read.
        b, U: biases and factors of people.
        shares: of the clip, from 0 to 1; anything else is taken as 0.
        height: how much biases count beside factors.
        clip: the greatest length.
        steps: of the grid, per unit.
        places, signs: shape (n_items, k·(K + 1)), where the components of items live, row after row, the bias last.
        sums: to add to.
    """
    indptr, items, values = rated
    n_items, K = V.shape
    width = places.shape[1]
    cells = np.zeros(len(sums))  # the person's vector; all zeros between one person and the next
    touched, owner = np.empty(len(sums), np.int64), np.full(len(sums), -1, np.int64)
    for i in range(start, stop):
        limit = valid_share(shares, i) * clip
        if not limit > 0.0:
            continue
        last, count = -1, 0
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
            if last < j < n_items:
                last = j
                e = prediction_error(values[p], b[i], c[j], U[i], V[j])
                for m in range(width):
                    cell, part = np.int64(places[j, m]), m % (K + 1)
                    cells[cell] += np.float64(signs[j, m]) * e * (np.float64(U[i, part]) if part < K else height)
                    if owner[cell] != i:  # several items may share it, and it counts once
                        owner[cell] = i
                        touched[count] = cell
                        count += 1
        total = 0.0
        for place in range(count):
            total += cells[touched[place]] * cells[touched[place]]
        length = np.sqrt(total)
        fits = length < np.inf
        scale = steps * SAFETY * (limit / length if length > limit else 1.0)
        for place in range(count):
            cell = touched[place]
            if fits:
                sums[cell] += np.int64(scale * cells[cell])
            cells[cell] = 0.0


def add_sketched_gradients_reference(
    items: NDArray[Any],
    values: NDArray[Any],
    V: NDArray[Any],
    c: NDArray[Any],
    b: float,
    u: NDArray[Any],
    share: float,
    height: float,
    clip: float,
    places: NDArray[Any],
    signs: NDArray[Any],
    n_cells: int,
) -> NDArray[np.float64]:
    """Return one person's clipped vector, shape (n_cells,), of ratings of different items in the catalogue."""
    errors = values - b - c[items] - V[items] @ u
    depth = places.shape[1] // (len(u) + 1)
    parts = errors[:, None] * np.tile(np.append(u, height), depth)
    gradient = np.bincount(places[items].ravel(), (signs[items] * parts).ravel(), n_cells)
    length = float(np.linalg.norm(gradient))
    return np.asarray(gradient * min(1.0, share * clip / length) if length else gradient)
