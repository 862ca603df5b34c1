"""Integer Gaussian noise from a cryptographic generator.

Noise that is added as floating-point numbers leaks: which numbers can appear at all depends on the secret sum (Mironov
2012). Here everything is an integer. A caller who wants noise of standard deviation `sd` works on the public grid of
step `sd / STEPS_PER_SD`: it scales bounded contributions to that grid, truncates them toward zero, sums them in int64
and adds what `Noise.integers` draws.

>>> noise = Noise()
>>> drawn = noise.integers((1000, 8), "item factors", 0)
>>> bool(abs(drawn.std() / STEPS_PER_SD - 1) < 0.1)
True

Noise is drawn once for each label and index, whatever the order or the thread, so it cannot be used twice:

>>> noise.integers(3, "item factors", 0)
Traceback (most recent call last):
dpmf.errors.InvalidArgument: noise for label 'item factors', index 0 was drawn before: use a new index for every draw

How close this comes to real Gaussian noise is proven in docs/proofs/noise.md and charged by `slack`.
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
import secrets
import threading
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

STEPS_PER_SD = 2**28
"""S: a drawn integer has P(k) proportional to exp(-k²/2S²), up to the two constants below."""

LARGEST_DRAW = 2**33
"""No drawn integer exceeds this in size; it is 32 standard deviations."""

EPSILON_PER_COORDINATE = 2.0**-53
"""The exact discrete Gaussian against a real one, rounded: the range of ln(P(k)/P'(k)) over |k| <= 13 S."""

DELTA_PER_COORDINATE = 2.0**-111
"""Total variation between a drawn integer and the exact discrete Gaussian, plus what either Gaussian has past 13 S."""

# X = A²·X1 + A·X2 + X3, each Xi of parameter s with s²(A⁴ + A² + 1) = S². It is smooth because s is about 2A.
_STRETCH = 2**9
_LEVELS = 3
_COLUMN_BITS = 15  # columns hold x = column - _CENTRE, so they reach to 16 s
_CENTRE = 2 ** (_COLUMN_BITS - 1)
_WORD_BITS = 32
_REFINING_BYTES = 16
_REFINING_BITS = 8 * _REFINING_BYTES
_HEIGHT_BITS = _WORD_BITS + _REFINING_BITS - _COLUMN_BITS  # a column is 2**_HEIGHT_BITS high

_WORD = np.dtype("<u4")
_COIN = np.dtype("<u8")
_CHUNK = 2**16  # words at a time: few enough for the cache, enough that threads seldom meet at the interpreter's lock
_ZEROS = memoryview(bytes(_CHUNK * _COIN.itemsize))
_MOST_DRAWS = 2**32  # 32 GiB of key stream, far from the 256 GiB after which a 32-bit block counter would wrap


class Noise:
    """A source of noise, to be used by one process for one purpose and then dropped.

    The key comes from the operating system, is never stored, and cannot be read, copied or pickled. Each (label, index)
    has a key stream of its own, so draws do not depend on each other's order and threads may share the object.

    Args:
        noise_seed: research only. The same seed gives the same noise, and whoever knows it can take the noise off
            again: a result made with it carries no guarantee.
    """

    __slots__ = ("_drawn", "_lock", "_process", "_root", "_seeded")

    def __init__(self, noise_seed: int | None = None) -> None:
        if noise_seed is None:
            key = secrets.token_bytes(32)
        else:
            key = hashlib.sha256(b"dpmf noise_seed %d" % operator.index(noise_seed)).digest()
        # A hash that has absorbed the key can derive others from it, and does not give it back.
        self._root = hashlib.blake2b(key=key, digest_size=32, person=b"dpmf noise")
        self._seeded = noise_seed is not None
        self._drawn: set[tuple[str, int]] = set()
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def seeded(self) -> bool:
        """Whether a seed was given, so that nothing drawn here may be called certified."""
        return self._seeded

    def integers(self, shape: int | tuple[int, ...], label: str, index: int) -> NDArray[np.int64]:
        """Return independent integers X with P(X = k) proportional to exp(-k² / (2·STEPS_PER_SD²)).

        Args:
            shape: of the result.
            label: what the noise is for; public.
            index: tells apart draws with the same label, such as rounds or blocks; public.

        Raises:
            InvalidArgument: if something was drawn for this label and index before.
        """
        size = math.prod(shape) if isinstance(shape, tuple) else shape
        key = self._key(size, label, index)
        drawn = np.empty(size, np.int64)
        levels = [(_key_stream(key, 2 * level), _key_stream(key, 2 * level + 1)) for level in range(_LEVELS)]
        scratch = _Scratch.of(min(size, _CHUNK))
        for start in range(0, size, _CHUNK):
            part = drawn[start : start + _CHUNK]
            if len(part) < len(scratch.words):
                scratch = _Scratch.of(len(part))
            part[:] = 0
            for stream, refining in levels:
                stream.update_into(_ZEROS[: scratch.words.nbytes], scratch.words.data.cast("B"))
                part *= _STRETCH
                part += _columns(scratch, refining.update)
            part -= _CENTRE * (_STRETCH**2 + _STRETCH + 1)
        return drawn.reshape(shape)

    def coins(self, n: int, probability: float, label: str, index: int) -> NDArray[np.bool_]:
        """Return n independent coins that are True with the given probability, for Poisson sampling.

        The probability is rounded down to a multiple of 2⁻⁶⁴ (which changes none from 2⁻¹² on), and the coins are exact
        for what it is rounded to. Sampling less often is at least as private, so no slack is due.
        """
        if not 0 <= probability <= 1:
            raise InvalidArgument(f"probability is {probability}: it must lie between 0 and 1")
        key = self._key(n, label, index)
        threshold = math.floor(math.ldexp(probability, 64))
        if threshold == 2**64:
            return np.ones(n, np.bool_)
        stream = _key_stream(key, 0)
        coins = np.empty(n, np.bool_)
        for start in range(0, n, _CHUNK):
            part = coins[start : start + _CHUNK]
            words = np.frombuffer(stream.update(_ZEROS[: len(part) * _COIN.itemsize]), _COIN)
            np.less(words, np.uint64(threshold), out=part)
        return coins

    def words(self, shape: int | tuple[int, ...], label: str, index: int) -> NDArray[np.uint64]:
        """Return independent words of 64 uniform bits, for other samplers."""
        size = math.prod(shape) if isinstance(shape, tuple) else shape
        stream = _key_stream(self._key(size, label, index), 0)
        words = np.empty(size, _COIN)
        for start in range(0, size, _CHUNK):
            part = words[start : start + _CHUNK]
            stream.update_into(_ZEROS[: part.nbytes], part.data.cast("B"))
        return words.reshape(shape)

    def _key(self, size: int, label: str, index: int) -> bytes:
        """Return the key of one draw, once."""
        if not 0 <= size <= _MOST_DRAWS:
            raise InvalidArgument(f"{size} draws at once: draw at most {_MOST_DRAWS}, and more under another index")
        if not 0 <= index < 2**63:
            raise InvalidArgument(f"index is {index}: it must be at least 0 and have 63 bits")
        if os.getpid() != self._process:
            raise InvalidArgument("noise was made in another process: make a new Noise(), or both would draw the same")
        with self._lock:
            if (label, index) in self._drawn:
                raise InvalidArgument(
                    f"noise for label {label!r}, index {index} was drawn before: use a new index for every draw"
                )
            self._drawn.add((label, int(index)))
        branch = self._root.copy()
        branch.update(int(index).to_bytes(8, "little") + label.encode())
        return branch.digest()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("noise cannot be copied or pickled, or it would be drawn twice: make a new Noise()")


def slack(coordinates: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Return (extra epsilon, extra delta) for using this noise in place of real Gaussian noise.

    Take any mechanism that adds real noise N(0, S²) to integers, `coordinates` of them in all its rounds together, and
    rounds. If it is (epsilon, delta)-private, the same mechanism with `Noise.integers` is private with
    epsilon + d·e and exp(d·e)·delta + d·t·(1 + exp(epsilon + d·e)), where d = coordinates, e = EPSILON_PER_COORDINATE
    and t = DELTA_PER_COORDINATE. Theorem 1 of docs/proofs/noise.md.

    >>> slack(10_000_000, 20.0, 1e-6)[0] < 2e-9
    True
    """
    if coordinates < 0 or not epsilon >= 0 or not 0 <= delta <= 1:
        raise InvalidArgument(
            f"coordinates {coordinates}, epsilon {epsilon}, delta {delta}: none is negative, and delta is at most 1"
        )
    upward = 1 + 1e-12  # more than these few operations can lose to rounding
    extra_epsilon = coordinates * EPSILON_PER_COORDINATE * upward
    # From epsilon 80 on the bound says nothing, long before the exponential overflows.
    growth = math.exp(epsilon + extra_epsilon) if epsilon + extra_epsilon < 100 else math.inf
    missed = coordinates * DELTA_PER_COORDINATE * (1 + growth) if coordinates else 0.0
    return extra_epsilon, min(1.0, (delta * math.expm1(extra_epsilon) + missed) * upward)


class _Table(NamedTuple):
    """The base distribution, for Walker's alias method.

    A uniform point picks a column by its highest bits and a height in it by the others. Below the column's threshold it
    stands for that column, from there on for the column that is `moves` away.
    """

    thresholds: NDArray[np.uint32]  # the words at which the columns' thresholds lie; compared with whole words
    refined: list[int]  # the bits of each threshold that follow those
    moves: NDArray[np.int32]


@cache
def _table() -> _Table:
    """Build the table; no probability is off by more than rounding to a multiple of 2⁻¹⁶⁰."""
    heights = _weights()
    full = 2**_HEIGHT_BITS
    thresholds, aliases = [0] * len(heights), list(range(len(heights)))
    small = [column for column, height in enumerate(heights) if height < full]
    large = [column for column, height in enumerate(heights) if height >= full]
    while small:  # heights average exactly `full`, so `large` is not empty before `small` is
        column, donor = small.pop(), large[-1]
        thresholds[column], aliases[column] = heights[column], donor
        heights[donor] -= full - heights[column]
        if heights[donor] < full:
            small.append(large.pop())
    first = [(column << (_WORD_BITS - _COLUMN_BITS)) + (t >> _REFINING_BITS) for column, t in enumerate(thresholds)]
    return _Table(
        thresholds=np.array(first, np.uint32),
        refined=[threshold % 2**_REFINING_BITS for threshold in thresholds],
        moves=np.array([alias - column for column, alias in enumerate(aliases)], np.int32),
    )


def _weights() -> list[int]:
    """Return, for each column, its probability in units of 2⁻¹⁶⁰; they sum to 2¹⁶⁰ exactly.

    The probability of x is that of a discrete Gaussian with s² = S² / (A⁴ + A² + 1), for |x| < _CENTRE.
    """
    with localcontext(Context(prec=100)):
        # exp(-(x+1)²/2s²) = exp(-x²/2s²)·exp(-(2x+1)/2s²): a running product of a running product, 1e-90 off at most.
        rate = Decimal(_STRETCH**4 + _STRETCH**2 + 1) / Decimal(STEPS_PER_SD**2)
        ratio, step = (-rate / 2).exp(), (-rate).exp()
        densities = [Decimal(1)]
        for _ in range(1, _CENTRE):
            densities.append(densities[-1] * ratio)
            ratio *= step
        scale = Decimal(2 ** (_COLUMN_BITS + _HEIGHT_BITS)) / (2 * sum(densities) - 1)
        half = [int(density * scale) for density in densities[1:]]
    centre = 2 ** (_COLUMN_BITS + _HEIGHT_BITS) - 2 * sum(half)
    return [0, *reversed(half), centre, *half]


class _Scratch(NamedTuple):
    """Room for one chunk, used again and again: fresh memory would cost more than the arithmetic."""

    words: NDArray[np.uint32]
    columns: NDArray[np.intp]
    thresholds: NDArray[np.uint32]
    moves: NDArray[np.int32]
    moved: NDArray[np.bool_]
    undecided: NDArray[np.bool_]

    @classmethod
    def of(cls, size: int) -> _Scratch:
        """Return room for as many words."""
        dtypes = (_WORD, np.intp, np.uint32, np.int32, np.bool_, np.bool_)
        return cls(*(np.empty(size, dtype) for dtype in dtypes))


def _columns(scratch: _Scratch, refine: Callable[[memoryview], bytes]) -> NDArray[np.intp]:
    """Return the column that each uniform word stands for: one level of the convolution, plus _CENTRE.

    Args:
        scratch: its `words` hold 32 uniform bits each; the rest is overwritten, and `columns` returned.
        refine: gives as many uniform bytes as it is given; called where 32 bits do not decide, once in 2¹⁷ words.
    """
    table = _table()
    words, columns, thresholds, moves, moved, undecided = scratch
    np.right_shift(words, np.uint32(_WORD_BITS - _COLUMN_BITS), out=columns)
    table.thresholds.take(columns, out=thresholds, mode="wrap")  # no index is out of range; "wrap" checks fastest
    np.greater_equal(words, thresholds, out=moved)
    if np.equal(words, thresholds, out=undecided).any():
        for place in np.flatnonzero(undecided):
            more = int.from_bytes(refine(_ZEROS[:_REFINING_BYTES]), "little")
            moved[place] = more >= table.refined[columns[place]]
    table.moves.take(columns, out=moves, mode="wrap")
    moves *= moved
    columns += moves
    return columns


def _key_stream(key: bytes, number: int) -> CipherContext:
    """Return one of the key streams of a key: ChaCha20 with a block counter from zero and `number` as nonce."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    nonce = bytes(8) + number.to_bytes(8, "little")
    return Cipher(algorithms.ChaCha20(key, nonce), mode=None).encryptor()
