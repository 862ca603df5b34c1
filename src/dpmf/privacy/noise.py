"""Integer Gaussian noise from a cryptographic generator.

Noise that is added in floating point leaks: which numbers can occur depends on the secret sum (Mironov
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

docs/proofs/noise.md bounds the distance to real Gaussian noise, and `slack` charges for it. Where nobody is trusted
with the sum, each person adds a share of the noise, drawn by `Noise.shares`: docs/proofs/shares.md and `shares_slack`.
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
import secrets
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.privacy.discrete import LEVELS, Scratch, Table, columns_of, table_of

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

MOST_SHARES = 2**20
"""The largest number of shares; the standard deviation of a share is then 2¹⁸ steps."""

_COIN = np.dtype("<u8")
_CHUNK = 2**16  # words at a time: few enough for the cache, enough that threads seldom contend for the GIL
_ZEROS = memoryview(bytes(_CHUNK * _COIN.itemsize))
_MOST_DRAWS = 2**32  # 32 GiB of key stream, far from the 256 GiB after which a 32-bit block counter would wrap


class Noise:
    """A source of noise, for use by one process for one purpose.

    The key comes from the operating system, is never stored, and cannot be read, copied or pickled. Each (label, index)
    has a key stream of its own, and threads may share the object. Should the state of a machine be cloned, and its
    randomness with it, what is drawn still differs by the time, the process, and what was absorbed: see `absorb`.

    Args:
        noise_seed: research only. The same seed gives the same noise, and whoever knows it can subtract the noise
            again: a result made with it carries no guarantee.
    """

    __slots__ = ("_absorbed", "_drawn", "_lock", "_process", "_root", "_seeded")

    def __init__(self, noise_seed: int | None = None) -> None:
        if noise_seed is None:
            key = secrets.token_bytes(32)
        else:
            key = hashlib.sha256(b"dpmf noise_seed %d" % operator.index(noise_seed)).digest()
        # A hash that has absorbed the key can derive others from it without revealing it.
        self._root = hashlib.blake2b(key=key, digest_size=32, person=b"dpmf noise")
        self._seeded = noise_seed is not None
        self._absorbed = hashlib.blake2b(person=b"dpmf absorbed")
        self._drawn: set[tuple[str, int]] = set()
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def seeded(self) -> bool:
        """Whether a seed was given, so that nothing drawn here may be called certified."""
        return self._seeded

    def absorb(self, sums: NDArray[np.int64]) -> None:
        """Mix exact sums into the keys of all draws from here on, so that a clone with other sums draws other noise.

        The key from the operating system suffices by itself: docs/proofs/noise.md. Noise from a seed stays what it is.
        """
        if self._seeded:
            return
        with self._lock:
            self._absorbed.update(sums.nbytes.to_bytes(8, "little"))
            self._absorbed.update(np.ascontiguousarray(sums).reshape(-1).view(np.uint8).data)

    def integers(self, shape: int | tuple[int, ...], label: str, index: int) -> NDArray[np.int64]:
        """Return independent integers X with P(X = k) proportional to exp(-k² / (2·STEPS_PER_SD²)).

        Args:
            shape: of the result.
            label: what the noise is for; public.
            index: distinguishes draws with the same label, such as rounds or blocks; public.

        Raises:
            InvalidArgument: if something was drawn for this label and index before.
        """
        return self.shares(shape, 1, label, index)

    def shares(self, shape: int | tuple[int, ...], n_shares: int, label: str, index: int) -> NDArray[np.int64]:
        """Return one share of noise: `n_shares` of them, from different people, add up to a draw of `integers`.

        These are independent integers X with P(X = k) proportional to exp(-k²·n_shares / (2·STEPS_PER_SD²)). A sum in
        which at least `n_shares` of them are unknown to whoever sees it is as private as with one draw of `integers`,
        up to `shares_slack`; docs/proofs/shares.md. With one share, this is `integers`.

        Args:
            shape: of the result.
            n_shares: the number of shares that are certain to be in the sum and unknown, such as all people except
                those who may drop out or collude; from 1 to MOST_SHARES; public. A smaller number is safe, and means
                more noise.
            label: what the noise is for; public.
            index: distinguishes draws with the same label, such as rounds or blocks; public.

        Raises:
            InvalidArgument: if something was drawn for this label and index before.
        """
        table = _table(_checked(n_shares))
        size = math.prod(shape) if isinstance(shape, tuple) else shape
        key = self._key(size, label, index)
        drawn = np.empty(size, np.int64)
        levels = [(_key_stream(key, 2 * level), _late_stream(key, 2 * level + 1)) for level in range(LEVELS)]
        scratch = Scratch.of(min(size, _CHUNK))
        for start in range(0, size, _CHUNK):
            part = drawn[start : start + _CHUNK]
            if len(part) < len(scratch.words):
                scratch = Scratch.of(len(part))
            part[:] = 0
            for stream, refine in levels:
                stream.update_into(_ZEROS[: scratch.words.nbytes], scratch.words.data.cast("B"))
                part *= table.stretch
                part += columns_of(table, scratch, refine)
            part -= table.centre * (table.stretch**2 + table.stretch + 1)
        return drawn.reshape(shape)

    def coins(self, n: int, probability: float, label: str, index: int) -> NDArray[np.bool_]:
        """Return n independent coins that are True with the given probability, for Poisson sampling.

        The probability is rounded down to a multiple of 2⁻⁶⁴ (which changes none from 2⁻¹² on), and the coins are exact
        for the rounded probability. Sampling less often is at least as private, so no slack is due.
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
        """Return the key of one draw; raise if it was returned before."""
        if not 0 <= size <= _MOST_DRAWS:
            raise InvalidArgument(f"{size} draws at once: draw at most {_MOST_DRAWS}, and the rest under another index")
        if not 0 <= index < 2**63:
            raise InvalidArgument(f"index is {index}: it must be at least 0 and have 63 bits")
        if os.getpid() != self._process:
            raise InvalidArgument("noise is from another process: create a new Noise(), or both would draw the same")
        with self._lock:
            if (label, index) in self._drawn:
                raise InvalidArgument(
                    f"noise for label {label!r}, index {index} was drawn before: use a new index for every draw"
                )
            self._drawn.add((label, int(index)))
            absorbed = self._absorbed.digest()
        branch = self._root.copy()
        number, name = int(index).to_bytes(8, "little"), label.encode()
        if self._seeded:
            branch.update(number + name)
        else:
            # Label and index alone make the input a new one; its other parts matter if the key is not.
            branch.update(number + len(name).to_bytes(8, "little") + name)
            branch.update(secrets.token_bytes(32) + _circumstances() + absorbed)
        return branch.digest()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("noise cannot be copied or pickled, or it would be drawn twice: create a new Noise()")


def _circumstances() -> bytes:
    """Return what tells this draw from that of a clone of the machine: the process, and two clocks."""
    numbers = os.getpid(), time.time_ns(), time.monotonic_ns()
    return b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)


def slack(coordinates: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Return (extra epsilon, extra delta) for using this noise in place of real Gaussian noise.

    Take any mechanism that adds real noise N(0, S²) to integers, `coordinates` of them over all its rounds, and
    rounds. If it is (epsilon, delta)-private, the same mechanism with `Noise.integers` is private with
    epsilon + d·e and exp(d·e)·delta + d·t·(1 + exp(epsilon + d·e)), where d = coordinates, e = EPSILON_PER_COORDINATE
    and t = DELTA_PER_COORDINATE. Theorem 1 of docs/proofs/noise.md.

    >>> slack(10_000_000, 20.0, 1e-6)[0] < 2e-9
    True
    """
    return shares_slack(coordinates, 1, epsilon, delta)


def shares_slack(coordinates: int, n_shares: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Return (extra epsilon, extra delta) for a sum of `Noise.shares` in place of real Gaussian noise.

    As `slack`, for a mechanism that adds at least `n_shares` shares, drawn for that number, to each of its
    `coordinates` integers. Where d·t stands there, n_shares·d·t stands here; the extra epsilon is the same. If rounds
    differ, use the largest n_shares. Theorem 2 of docs/proofs/shares.md.

    >>> shares_slack(10_000_000, 1000, 20.0, 1e-6)[1] < 1e-14
    True
    """
    n_shares = _checked(n_shares)
    if coordinates < 0 or not epsilon >= 0 or not 0 <= delta <= 1:
        raise InvalidArgument(
            f"coordinates {coordinates}, epsilon {epsilon}, delta {delta}: none is negative, and delta is at most 1"
        )
    upward = 1 + 1e-12  # more than the rounding error of these few operations
    extra_epsilon = coordinates * EPSILON_PER_COORDINATE * upward
    # From epsilon 80 on the bound says nothing, long before the exponential overflows.
    growth = math.exp(epsilon + extra_epsilon) if epsilon + extra_epsilon < 100 else math.inf
    missed = coordinates * n_shares * DELTA_PER_COORDINATE * (1 + growth) if coordinates else 0.0
    return extra_epsilon, min(1.0, (delta * math.expm1(extra_epsilon) + missed) * upward)


def _checked(n_shares: int) -> int:
    n_shares = operator.index(n_shares)
    if not 1 <= n_shares <= MOST_SHARES:
        raise InvalidArgument(f"n_shares is {n_shares}: it must be at least 1 and at most {MOST_SHARES}")
    return n_shares


@lru_cache(maxsize=16)
def _table(n_shares: int) -> Table:
    """Return the table for one of `n_shares` shares; it takes 40 ms to build and up to 2 MB of memory."""
    return table_of(Fraction(STEPS_PER_SD**2, n_shares))


def _late_stream(key: bytes, number: int) -> Callable[[memoryview], bytes]:
    """Return `update` of a key stream that is created on first use: few draws need further bits."""
    stream: CipherContext | None = None

    def update(zeros: memoryview) -> bytes:
        nonlocal stream
        if stream is None:
            stream = _key_stream(key, number)
        return stream.update(zeros)

    return update


def _key_stream(key: bytes, number: int) -> CipherContext:
    """Return one of the key streams of a key: ChaCha20 with a block counter from zero and `number` as nonce."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    nonce = bytes(8) + number.to_bytes(8, "little")
    return Cipher(algorithms.ChaCha20(key, nonce), mode=None).encryptor()
