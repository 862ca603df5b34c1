"""What a user of the published protocol computes in a round: gradients with noise on a grid, and a step of the profile.

>>> u, words = np.array([0.6, 0.8]), np.zeros((1, 2), np.uint32)
>>> pace = Pace(rate=0.1, penalty=0.0, radius=1.0, amplitude=0.0, steps=1000.0, limit=20.0)
>>> one, ratings, counts = np.ones((1, 2), np.float32), np.array([2.4], np.float32), np.ones(1, np.uint32)
>>> codes, normals = np.zeros((1, 2), np.uint16), np.zeros(2, np.float32)
>>> answer_round(one, ratings, counts, codes, spread_roots(), normals, pace, u, words)
>>> words.view(np.int32).tolist()  # -2 u (r - u·v), in steps
[[-1200, -1600]]
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.jit import kernel


class Pace(NamedTuple):
    """Public numbers of a round.

    Attributes:
        rate: the step size.
        penalty: on the profile.
        radius: how long it may be.
        amplitude: of the noise.
        steps: of the grid, per unit.
        limit: where a coordinate of a gradient is cut off.
    """

    rate: float
    penalty: float
    radius: float
    amplitude: float
    steps: float
    limit: float


@cache
def spread_roots() -> NDArray[np.float32]:
    """Return √(2H) for all H there are: H has the distribution Exp(1), in 2¹⁶ equally likely steps."""
    quantiles = (np.arange(1 << 16) + 0.5) / (1 << 16)
    return np.asarray(np.sqrt(-2 * np.log(quantiles)), np.float32)


@kernel
def answer_round(
    rows: NDArray[np.float32],
    values: NDArray[np.float32],
    counts: NDArray[np.uint32],
    codes: NDArray[np.uint16],
    roots: NDArray[np.float32],
    normals: NDArray[np.float32],
    pace: Pace,
    u: NDArray[np.float64],  # out
    words: NDArray[np.uint32],  # out
) -> None:
    """Add to words the gradient of the squared error of each rating with respect to its item, with noise.

    The noise on coordinate k of item j is amplitude · roots[codes[j, k]] / √counts[j] · a normal number. Then the
    profile takes a step along the mean of its own gradients, and is scaled to the radius at most.

    Args:
        rows: item profiles, shape (n, K).
        values: the ratings.
        counts: how many users answer for each item.
        codes: shape (n, K), which H it is.
        roots: √(2H) of all of them.
        normals: standard normal numbers, n · K of them.
        pace: public numbers.
        u: the profile, length K.
        words: shape (n, K), to add to, modulo 2³².
    """
    n, width = rows.shape
    gradient, noise = np.zeros(width), np.empty(width, np.float32)
    for j in range(n):
        e = np.float64(values[j])
        for k in range(width):
            e -= u[k] * rows[j, k]
        scale = np.float32(pace.steps * pace.amplitude / np.sqrt(np.float64(counts[j])))
        for k in range(width):  # apart from what follows, which has numbers of another size: so both are vectors
            noise[k] = scale * roots[codes[j, k]] * normals[j * width + k]
        for k in range(width):
            g = min(max(-2.0 * e * u[k], -pace.limit), pace.limit)
            words[j, k] += np.uint32(np.int64(np.rint(g * pace.steps + noise[k])))
            gradient[k] -= 2.0 * e * rows[j, k]
    square = 0.0
    for k in range(width):
        u[k] -= pace.rate * (gradient[k] / n + 2.0 * pace.penalty * u[k])
        square += u[k] * u[k]
    if not square < np.inf:
        u[:] = 0.0
    elif square > pace.radius * pace.radius:
        u *= pace.radius / np.sqrt(square)


def answer_round_reference(
    rows: NDArray[Any],
    values: NDArray[Any],
    counts: NDArray[Any],
    codes: NDArray[Any],
    roots: NDArray[Any],
    normals: NDArray[Any],
    pace: Pace,
    u: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return what is added to the words, as signed numbers, and the profile after the step."""
    V = rows.astype(np.float64)
    e = values - V @ u
    noise = pace.amplitude * roots[codes].astype(np.float64) / np.sqrt(counts[:, None]) * normals.reshape(V.shape)
    noisy = np.clip(-2 * np.outer(e, u), -pace.limit, pace.limit) + noise
    after = u - pace.rate * (-2 * e @ V / len(V) + 2 * pace.penalty * u)
    return np.rint(noisy * pace.steps).astype(np.int64), after * min(1.0, pace.radius / float(np.linalg.norm(after)))


@kernel
def in_range(counts: NDArray[np.uint32], most: int, rows: NDArray[np.float32], largest: float) -> bool:
    """Tell whether counts are from 1 to `most`, and rows finite numbers of at most this size."""
    for count in counts:
        if not 1 <= count <= most:
            return False
    flat, wrong = rows.ravel(), 0
    for place in range(len(flat)):  # no way out of the loop, so that it is done in vectors
        wrong += not abs(flat[place]) <= largest
    return wrong == 0


@kernel
def add_rows(sums: NDArray[Any], items: NDArray[np.uint32], words: NDArray[Any]) -> None:
    """Add words, shape (n, K), to the rows of these items in sums (out), modulo the size of a word."""
    for place in range(len(items)):
        j = items[place]
        for k in range(words.shape[1]):
            sums[j, k] += words[place, k]


@kernel
def subtract_rows(sums: NDArray[Any], items: NDArray[np.uint32], words: NDArray[Any]) -> None:
    """Subtract likewise."""
    for place in range(len(items)):
        j = items[place]
        for k in range(words.shape[1]):
            sums[j, k] -= words[place, k]


@kernel
def count_codes(codes: NDArray[np.uint16], shift: int, counts: NDArray[np.int64]) -> float:
    """Add to counts (out) how often each value of codes >> shift occurs.

    Returned is the greatest distance, at the edges, between the distribution of all that was counted and an even one.
    """
    for code in codes.flat:
        counts[code >> shift] += 1
    total, below, distance = counts.sum(), 0, 0.0
    for place in range(len(counts)):
        below += counts[place]
        distance = max(distance, abs(below / total - (place + 1) / len(counts)))
    return distance
