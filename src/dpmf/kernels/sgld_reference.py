"""What `dpmf.kernels.sgld` computes, in plain NumPy.

>>> import numpy as np
>>> def side(): return Side(np.ones((1, 1)), np.zeros(1), np.zeros(1, np.int64), np.zeros(1))
>>> users, items, place = side(), side(), np.array([0])
>>> dynamics = Dynamics(0.1, 1.0, 0.0, 0.0, 0.0, 0.0, -9.0, 9.0)
>>> sgld_block_reference(place, place, place, np.array([3.0]), users, items, np.ones(1), dynamics, [[0, 0, 0, 0]], 0, 1)
4.0
>>> users.factors, users.biases
(array([[1.2]]), array([0.2]))
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.lanes import lanes_for, visiting_order
from dpmf.kernels.normals import normal_row_reference
from dpmf.kernels.rows import FLOATS_PER_LINE
from dpmf.kernels.sgld import VISITS_AT_ONCE, Dynamics, Side, drawn_at_once, drawn_per_row
from dpmf.streams import mix


def sgld_block_reference(
    users: NDArray[Any],
    items: NDArray[Any],
    codes: NDArray[Any],
    table: NDArray[Any],
    of_users: Side,  # out: factors, biases, clocks
    of_items: Side,  # out: factors, biases, clocks
    weights: NDArray[Any],
    dynamics: Dynamics,
    noise: Any,
    start: int,
    lanes: int,
) -> float:
    """Do what `sgld_block` does, in the precision of the arrays given, without padding.

    Args:
        users, items, codes, table, of_users, of_items, weights, dynamics, start: as there.
        noise: shape (n, 2 K + 2), standard normal numbers for u, v, b and c at every step; see `block_noise_reference`.
        lanes: as `visiting_order` takes them.
    """
    step, scale, pull, variance, user_prior, item_prior, low, high, patience = dynamics
    (U, b), (V, c) = of_users[:2], of_items[:2]
    K, squared = U.shape[1], 0.0
    for place, p in enumerate(visiting_order(len(codes), lanes)):
        i, j, r, drawn, now = users[p], items[p], table[codes[p]], np.asarray(noise[place]), start + place
        for row, side, prior, own in (
            (i, of_users, user_prior, np.r_[drawn[:K], drawn[2 * K]]),
            (j, of_items, item_prior, np.r_[drawn[K : 2 * K], drawn[2 * K + 1]]),
        ):
            if now - side.clocks[row] > patience:
                _bring_up_to_date(side, row, prior, own, pull, variance, now)
                side.clocks[row] = now
        e = r - b[i] - c[j] - U[i] @ V[j]
        squared += float(np.clip(e, r - high, r - low)) ** 2
        moved = step * scale * weights[i] * e if r - high <= e <= r - low else 0.0
        U[i], V[j] = U[i] + moved * V[j], V[j] + moved * U[i]
        b[i] += moved
        c[j] += moved
    return squared


def settle_reference(
    side: Side, pull: float, bias_prior: float, variance: float, noise: NDArray[Any], now: int
) -> None:
    """Do what `settle` does with standard normal numbers, shape (rows, K + 1), without padding."""
    for row, own in enumerate(noise):
        _bring_up_to_date(side, row, bias_prior, own, pull, variance, now)
    side.clocks[:] = 0


def _bring_up_to_date(
    side: Side, row: int, bias_prior: Any, noise: NDArray[Any], pull: Any, variance: Any, now: int
) -> None:
    """Give a row the pull and the noise of all steps since it was last up to date."""
    due = now - side.clocks[row]
    x = pull * due * np.append(side.prior, bias_prior)
    drawn = np.sqrt(variance * due * (1 - x / 2)) * noise
    side.factors[row] = (1 - x[:-1]) * side.factors[row] + drawn[:-1]
    side.biases[row] = (1 - x[-1]) * side.biases[row] + drawn[-1]


def block_noise_reference(
    count: int, K: int, width: int, gaussians: NDArray[np.float32], start: int, key: np.uint64
) -> NDArray[np.float64]:
    """Return the numbers that `sgld_block` draws at `count` steps, shape (count, 2 K + 2)."""
    together = count - count % lanes_for(width)  # visited lane by lane; a new group begins with those left
    drawn = []
    for first, last in ((0, together), (together, count)):
        for place in range(first, last, VISITS_AT_ONCE):
            u, v, b, c = _group_reference(np.uint64(start + place), width, gaussians, key)
            drawn.append(np.hstack([u[:, :K], v[:, :K], b, c])[: last - place])
    return np.concatenate(drawn)


def _group_reference(
    first: np.uint64, width: int, gaussians: NDArray[np.float32], key: np.uint64
) -> list[NDArray[np.float64]]:
    """Return the numbers of a group of visits for u, v, b and c, shapes (VISITS_AT_ONCE, width) and (…, 1)."""
    of_rows, signs = VISITS_AT_ONCE * 2 * width, np.ones((VISITS_AT_ONCE, 2, 1))
    if len(gaussians):
        word = mix(np.full(1, key + first))
        place = _places_reference(word, width, gaussians)[0]
        drawn = gaussians[place : place + drawn_at_once(width)].astype(np.float64)
        bits = mix(word) >> np.arange(2 * VISITS_AT_ONCE, dtype=np.uint64) & np.uint64(1)
        signs = np.where(bits, -1.0, 1.0).reshape(signs.shape)
    else:
        words = mix(key + first + np.arange(VISITS_AT_ONCE, dtype=np.uint64))
        of_biases = mix(mix(np.full(1, key)) + first)[0]
        rows = [normal_row_reference(word, 2 * width) for word in words]
        drawn = np.concatenate([*rows, normal_row_reference(of_biases, 2 * VISITS_AT_ONCE)])
    rows_drawn = signs * drawn[:of_rows].reshape(VISITS_AT_ONCE, 2, width)
    biases = signs * drawn[of_rows:].reshape(VISITS_AT_ONCE, 2, 1)
    return [rows_drawn[:, 0], rows_drawn[:, 1], biases[:, 0], biases[:, 1]]


def settling_noise_reference(
    count: int, K: int, width: int, gaussians: NDArray[np.float32], first: int, key: np.uint64
) -> NDArray[np.float64]:
    """Return the numbers that `settle` draws for `count` rows, shape (count, K + 1)."""
    words = mix(key + np.arange(first, first + count, dtype=np.uint64))
    if len(gaussians):
        places, signs = _places_reference(words, width, gaussians), 1.0 - 2.0 * (words & np.uint64(1))
        drawn = signs[:, None] * gaussians[places[:, None] + np.arange(width + 1)]
    else:
        drawn = np.array([normal_row_reference(word, drawn_per_row(width)) for word in words])
    return np.hstack([drawn[:, :K], drawn[:, width : width + 1]])


def _places_reference(words: NDArray[np.uint64], width: int, gaussians: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return where in the table to begin, as words say."""
    n_lines = (len(gaussians) - drawn_at_once(width)) // FLOATS_PER_LINE
    lines = (words >> np.uint64(32)) * np.uint64(n_lines) >> np.uint64(32)
    return lines.astype(np.int64) * FLOATS_PER_LINE
