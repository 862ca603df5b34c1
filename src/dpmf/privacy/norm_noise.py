"""Integer noise on rows of a table, of uniform direction and gamma-distributed length, for pure ε.

On the grid whose step is `b / STEPS_PER_SCALE`, a row of noise is real noise y with a density proportional to
exp(-‖y‖₂ / b), rounded at random to whole steps. Real noise of this kind hides a change of a row by Δ, whatever its
direction, with ε = ‖Δ‖₂ / b and no δ. Rounding does not depend on the data, so it costs nothing.

>>> noise = Noise()
>>> lengths = np.linalg.norm(norm_integers(noise, (1000, 8), "item noise", 0) / STEPS_PER_SCALE, axis=1)
>>> bool(abs(lengths.mean() - 8) < 1)
True

Like all noise, it is drawn once for each label and index:

>>> norm_integers(noise, (3, 8), "item noise", 0)
Traceback (most recent call last):
dpmf.errors.InvalidArgument: noise for label 'item noise', index 0 was drawn before: use a new index for every draw

No floating-point number is involved. docs/proofs/norm-noise.md has the proof, and bounds the distance to real
noise. K is the number of columns.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.privacy.noise import STEPS_PER_SD, Noise

STEPS_PER_SCALE = STEPS_PER_SD
"""b in steps of the grid: the density is proportional to exp(-‖y‖₂ / STEPS_PER_SCALE), or a hair flatter."""

MOST_COLUMNS = 2**16
"""The longest row for which the sampler's inaccuracy is bounded."""

SLACK_WEIGHT = 2**9
"""A number with this noise costs no more slack than this many with Gaussian noise; Theorem 1 of the proof."""

# G = A²·X1 + A·X2 + X3 with Gaussian integers Xi: a Gaussian of nearly 2⁸² steps per standard deviation.
_STRETCH = 2**27
_LEVELS = 3
_BITS_PER_SD = 82
_ROUNDING_BITS = 64
_SURPLUS_BITS = 2 * _BITS_PER_SD - (STEPS_PER_SCALE.bit_length() - 1) - _ROUNDING_BITS  # of a product of two such G

_WORDS = 5  # for each number: one to round it, two for each run of coins
_CHUNK = 2**15  # numbers at a time: big integers take a lot of memory


def norm_integers(noise: Noise, shape: tuple[int, int], label: str, index: int) -> NDArray[np.int64]:
    """Return independent rows of noise, in steps: real noise with density ∝ exp(-‖y‖₂ / STEPS_PER_SCALE), rounded.

    Args:
        noise: the source of noise.
        shape: of the result: rows, and columns, of which there is at least one.
        label: what the noise is for; public.
        index: distinguishes draws with the same label; public.

    Raises:
        InvalidArgument: if something was drawn for this label and index before, or the rows are too long.
    """
    rows, columns = shape
    if not 1 <= columns <= MOST_COLUMNS:
        raise InvalidArgument(f"{columns} columns of {label!r}: use 1 to {MOST_COLUMNS}")
    gaussians = noise.integers((rows, 2 * columns + 1, _LEVELS), label, index)
    words = noise.words((rows, columns, _WORDS), f"{label}, rounding", index)
    drawn = np.empty(shape, np.int64)
    rows_at_once = max(1, _CHUNK // columns)
    for start in range(0, rows, rows_at_once):
        part = slice(start, start + rows_at_once)
        drawn[part] = _rounded(_real(_wide(gaussians[part])), words[part])
    return drawn


def _wide(gaussians: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return one Gaussian of nearly 2⁸² steps for the three along the last axis."""
    upper = gaussians[..., 0] * _STRETCH + gaussians[..., 1]  # below 2⁶¹
    return np.asarray(upper.astype(object) * _STRETCH + gaussians[..., 2].astype(object))


def _real(wide: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return noise in 2⁻⁶⁴ of a step: the length of the first K + 1 Gaussians of each row, times each of the other K.

    This is a mixture of Gaussians with exactly the density required.
    """
    columns = wide.shape[1] // 2
    squares = (wide[:, : columns + 1] ** 2).sum(axis=1)
    lengths = np.array([math.isqrt(square) for square in squares], object)
    return np.asarray((lengths[:, None] * wide[:, columns + 1 :]) >> _SURPLUS_BITS)


def _rounded(real: NDArray[np.object_], words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return whole steps: y goes up or down, to y on average, then up by one run of coins and down by another.

    The probability of each whole number changes by a factor of at most e^h if y changes by h, so that errors too
    small to be computed are too small to be seen.
    """
    whole = ((real + words[..., 0].astype(object)) >> _ROUNDING_BITS).astype(np.int64)
    return np.asarray(whole + _run(words[..., 1:3]) - _run(words[..., 3:5]))


def _run(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of tails before the first head: k with probability 2⁻ᵏ⁻¹, below 128.

    Args:
        words: two along the last axis, whose bits are the coins, from the lowest one on.
    """
    lowest = words & (~words + np.uint64(1))
    places = np.frexp(lowest.astype(np.float64))[1].astype(np.int64) - 1  # exact: a power of two, or -1 for zero
    first, second = places[..., 0], places[..., 1]
    return np.where(first >= 0, first, np.where(second >= 0, 64 + second, 128))
