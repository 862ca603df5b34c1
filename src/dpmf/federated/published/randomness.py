"""A party's own random numbers, from a stream cipher keyed by the operating system.

Normal numbers are generated for speed here (float32, at most 5.9 standard deviations): the published claim assumes
nothing finer. The noise of certified guarantees comes from `dpmf.privacy.noise`.

>>> Draws().normals(5).shape
(5,)
"""

from __future__ import annotations

import os
import secrets
from typing import Any, NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.kernels.normals import normals_of_words

_AT_ONCE = 1 << 16


class Draws:
    """A source of random numbers for one party, or for all parties simulated in one process.

    Args:
        seed: research only: the same numbers every time, so that anyone who knows it can subtract the noise.
    """

    __slots__ = ("_left", "_process", "_stream")

    def __init__(self, seed: int | None = None) -> None:
        key = secrets.token_bytes(32) if seed is None else seed.to_bytes(32, "little")
        self._stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._left, self._process = np.empty(0, np.float32), os.getpid()

    def integers(self, count: int) -> NDArray[np.uint32]:
        """Return uniform 32-bit integers."""
        if os.getpid() != self._process:
            raise InvalidArgument(
                "random numbers belong to another process: make new Draws(), or both would draw the same"
            )
        return np.frombuffer(self._stream.update(bytes(4 * count)), "<u4")

    def normals(self, count: int) -> NDArray[np.float32]:
        """Return standard normal numbers."""
        if count > len(self._left):
            more = np.empty(-(-max(count, _AT_ONCE) // 32) * 32, np.float32)
            normals_of_words(self.integers(len(more)).view(np.float32), more)
            self._left = more  # leftovers are dropped: one call returns one contiguous array
        drawn, self._left = self._left[:count], self._left[count:]
        return drawn

    def exponentials(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return Exp(1) numbers."""
        uniform = (self.integers(int(np.prod(shape))) + 0.5) * 2.0**-32
        return np.asarray(-np.log(uniform), np.float32).reshape(shape)

    def __repr__(self) -> str:
        return "Draws(…)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("random numbers cannot be copied or pickled: make new Draws()")
