"""What a user of the published protocol computes in a round: noisy gradients on a grid, and a step of the profile.

>>> u, sums = np.array([0.6, 0.8]), np.zeros((1, 2), np.uint32)
>>> settings = RoundSettings(rate=0.1, penalty=0.0, radius=1.0, amplitude=0.0, steps=1000.0, limit=20.0)
>>> one, ratings, counts = np.ones((1, 2), np.float32), np.array([2.4], np.float32), np.ones(1, np.uint32)
>>> codes, normals = np.zeros((1, 2), np.uint16), np.zeros(2, np.float32)
>>> compute_answer(one, ratings, counts, codes, variance_roots(), normals, settings, u, sums)
>>> sums.view(np.int32).tolist()  # -2 u (r - u·v), in steps
[[-1200, -1600]]
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.jit import kernel


class RoundSettings(NamedTuple):
    """Public settings of a round.

    Attributes:
        rate: the step size.
        penalty: on the profile.
        radius: the largest norm of the profile.
        amplitude: the scale of the noise.
        steps: of the grid, per unit.
        limit: where a coordinate of a gradient is clipped.
    """

    rate: float
    penalty: float
    radius: float
    amplitude: float
    steps: float
    limit: float


@cache
def variance_roots() -> NDArray[np.float32]:
    """Return √(2H) for every code of H: the 2¹⁶ equally likely quantiles of Exp(1)."""
    quantiles = (np.arange(1 << 16) + 0.5) / (1 << 16)
    return np.asarray(np.sqrt(-2 * np.log(quantiles)), np.float32)


@kernel
def compute_answer(
    rows: NDArray[np.float32],
    values: NDArray[np.float32],
    counts: NDArray[np.uint32],
    codes: NDArray[np.uint16],
    roots: NDArray[np.float32],
    normals: NDArray[np.float32],
    settings: RoundSettings,
    u: NDArray[np.float64],  # out
    sums: NDArray[np.uint32],  # out
) -> None:
    """Add to sums the noisy gradient of each rating's squared error with respect to its item.

    The noise on coordinate k of item j is amplitude · roots[codes[j, k]] / √counts[j] · a standard normal.
    Then the profile takes a step along the mean of its own gradients, and is projected to the radius.

    Args:
        rows: item profiles, shape (n, K).
        values: the ratings.
        counts: how many users answer for each item.
        codes: shape (n, K), of H.
        roots: √(2H) by code.
        normals: n · K standard normal numbers.
        settings: of the round.
        u: the profile, length K.
        sums: ring elements, shape (n, K), added to modulo 2³².
    """
    n, width = rows.shape
    gradient, noise = np.zeros(width), np.empty(width, np.float32)
    for j in range(n):
        e = np.float64(values[j])
        for k in range(width):
            e -= u[k] * rows[j, k]
        scale = np.float32(settings.steps * settings.amplitude / np.sqrt(np.float64(counts[j])))
        for k in range(width):  # a loop of its own: mixing widths would keep both from being vectorized
            noise[k] = scale * roots[codes[j, k]] * normals[j * width + k]
        for k in range(width):
            g = min(max(-2.0 * e * u[k], -settings.limit), settings.limit)
            sums[j, k] += np.uint32(np.int64(np.rint(g * settings.steps + noise[k])))
            gradient[k] -= 2.0 * e * rows[j, k]
    square = 0.0
    for k in range(width):
        u[k] -= settings.rate * (gradient[k] / n + 2.0 * settings.penalty * u[k])
        square += u[k] * u[k]
    if not square < np.inf:
        u[:] = 0.0
    elif square > settings.radius * settings.radius:
        u *= settings.radius / np.sqrt(square)


def compute_answer_reference(
    rows: NDArray[Any],
    values: NDArray[Any],
    counts: NDArray[Any],
    codes: NDArray[Any],
    roots: NDArray[Any],
    normals: NDArray[Any],
    settings: RoundSettings,
    u: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return what is added to the sums, as signed numbers, and the profile after the step."""
    V = rows.astype(np.float64)
    e = values - V @ u
    noise = settings.amplitude * roots[codes].astype(np.float64) / np.sqrt(counts[:, None]) * normals.reshape(V.shape)
    noisy = np.clip(-2 * np.outer(e, u), -settings.limit, settings.limit) + noise
    after = u - settings.rate * (-2 * e @ V / len(V) + 2 * settings.penalty * u)
    return np.rint(noisy * settings.steps).astype(np.int64), after * min(
        1.0, settings.radius / float(np.linalg.norm(after))
    )


@kernel
def in_range(counts: NDArray[np.uint32], most: int, rows: NDArray[np.float32], largest: float) -> bool:
    """Tell whether all counts are from 1 to `most`, and all rows finite and at most `largest` in magnitude."""
    for count in counts:
        if not 1 <= count <= most:
            return False
    flat, wrong = rows.ravel(), 0
    for place in range(len(flat)):  # no early exit, so that it is vectorized
        wrong += not abs(flat[place]) <= largest
    return wrong == 0


@kernel
def add_rows(sums: NDArray[Any], items: NDArray[np.uint32], elements: NDArray[Any]) -> None:
    """Add elements, shape (n, K), to the rows of these items in sums (out), modulo the size of their type."""
    for place in range(len(items)):
        j = items[place]
        for k in range(elements.shape[1]):
            sums[j, k] += elements[place, k]


@kernel
def subtract_rows(sums: NDArray[Any], items: NDArray[np.uint32], elements: NDArray[Any]) -> None:
    """Subtract elements, shape (n, K), from the rows of these items in sums (out), likewise."""
    for place in range(len(items)):
        j = items[place]
        for k in range(elements.shape[1]):
            sums[j, k] -= elements[place, k]


@kernel
def count_codes(codes: NDArray[np.uint16], shift: int, counts: NDArray[np.int64]) -> float:
    """Add to counts (out) how often each value of codes >> shift occurs.

    Returns the largest distance, over the bins' edges, between the distribution counted so far and the uniform one.
    """
    for code in codes.flat:
        counts[code >> shift] += 1
    total, below, distance = counts.sum(), 0, 0.0
    for place in range(len(counts)):
        below += counts[place]
        distance = max(distance, abs(below / total - (place + 1) / len(counts)))
    return distance
