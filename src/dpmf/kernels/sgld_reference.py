"""What `dpmf.kernels.sgld` computes, in plain NumPy.

>>> import numpy as np
>>> def side(): return Side(np.ones((1, 1)), np.zeros(1), np.zeros(1, np.int64), np.zeros(1))
>>> users, items, place = side(), side(), np.array([0])
>>> dynamics = Dynamics(0.1, 1.0, 0.0, 0.0, 0.0, 0.0, -9.0, 9.0)
>>> sgld_block_reference(place, place, place, np.array([3.0]), users, items, np.ones(1), dynamics, np.zeros((1, 4)), 0)
4.0
>>> users.factors, users.biases
(array([[1.2]]), array([0.2]))
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.descend import ratings_in_step
from dpmf.kernels.normals import normal_row_reference
from dpmf.kernels.rows import FLOATS_PER_LINE
from dpmf.kernels.sgld import Dynamics, Side, drawn_per_row
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
    noise: NDArray[Any],
    start: int,
) -> float:
    """Do what `sgld_block` does, in the precision of the arrays given, without padding.

    Args:
        users, items, codes, table, of_users, of_items, weights, dynamics, start: as there.
        noise: shape (n, 2 K + 2), standard normal numbers for u and b, v and c at every step; see
            `block_noise_reference`.
    """
    step, scale, pull, variance, user_prior, item_prior, low, high, patience = dynamics
    (U, b), (V, c) = of_users[:2], of_items[:2]
    K, squared, place = U.shape[1], 0.0, 0
    while place < len(codes):
        size, i, now = ratings_in_step(users, place), users[place], start + place
        j, r, drawn = items[place : place + size], table[codes[place : place + size]], noise[place : place + size]
        owed = [(i, of_users, user_prior, drawn[0, : K + 1])]
        owed += [(row, of_items, item_prior, own[K + 1 :]) for row, own in zip(j, drawn, strict=True)]
        for row, side, prior, own in owed:
            if now - side.clocks[row] > patience:
                _bring_up_to_date(side, row, prior, own, pull, variance, now)
                side.clocks[row] = now
        e = r - b[i] - c[j] - V[j] @ U[i]
        squared += float((np.clip(e, r - high, r - low) ** 2).sum())
        moved = step * scale * weights[i] * np.where((r - high <= e) & (e <= r - low), e, 0.0)
        U[i], V[j] = U[i] + moved @ V[j], V[j] + np.outer(moved, U[i])
        b[i] += moved.sum()
        c[j] += moved
        place += size
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
    """Return the numbers that `sgld_block` draws at `count` steps if no row is up to date, shape (count, 2 K + 2)."""
    return np.hstack([_noise_reference(count, K, width, gaussians, start, own) for own in (mix(np.full(1, key)), key)])


def settling_noise_reference(
    count: int, K: int, width: int, gaussians: NDArray[np.float32], first: int, key: np.uint64
) -> NDArray[np.float64]:
    """Return the numbers that `settle` draws for `count` rows, shape (count, K + 1)."""
    return _noise_reference(count, K, width, gaussians, first, key)


def _noise_reference(
    count: int, K: int, width: int, gaussians: NDArray[np.float32], first: int, key: Any
) -> NDArray[np.float64]:
    """Return what is drawn for rows and their biases by words from first on, shape (count, K + 1)."""
    words = mix(key + np.arange(first, first + count, dtype=np.uint64))
    if len(gaussians):
        places, signs = _places_reference(words, width, gaussians), 1.0 - 2.0 * (words & np.uint64(1))
        drawn = signs[:, None] * gaussians[places[:, None] + np.arange(width + 1)]
    else:
        drawn = np.array([normal_row_reference(word, drawn_per_row(width)) for word in words])
    return np.hstack([drawn[:, :K], drawn[:, width : width + 1]])


def _places_reference(words: NDArray[np.uint64], width: int, gaussians: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return where in the table to begin, as words say."""
    n_lines = (len(gaussians) - drawn_per_row(width)) // FLOATS_PER_LINE
    lines = (words >> np.uint64(32)) * np.uint64(n_lines) >> np.uint64(32)
    return lines.astype(np.int64) * FLOATS_PER_LINE
