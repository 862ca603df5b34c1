"""Random numbers of a party's own: from a stream cipher with a key of the operating system.

Normal numbers here are made for speed (float32, at most 5.9 standard deviations): what is claimed of the published
protocol rests on nothing finer. Noise that a certificate rests on comes from `dpmf.privacy.noise`.

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
    """A source of random numbers, to be used by one party, or by all that are simulated in one process.

    Args:
        seed: research only: the same numbers every time, so that whoever knows it can take the noise off again.
    """

    __slots__ = ("_left", "_process", "_stream")

    def __init__(self, seed: int | None = None) -> None:
        key = secrets.token_bytes(32) if seed is None else seed.to_bytes(32, "little")
        self._stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._left, self._process = np.empty(0, np.float32), os.getpid()

    def words(self, count: int) -> NDArray[np.uint32]:
        """Return uniform words of 32 bits."""
        if os.getpid() != self._process:
            raise InvalidArgument("random numbers were made in another process: make new Draws(), or both draw alike")
        return np.frombuffer(self._stream.update(bytes(4 * count)), "<u4")

    def normals(self, count: int) -> NDArray[np.float32]:
        """Return standard normal numbers."""
        if count > len(self._left):
            more = np.empty(-(-max(count, _AT_ONCE) // 32) * 32, np.float32)
            normals_of_words(self.words(len(more)).view(np.float32), more)
            self._left = more  # what was left is not used: numbers of one call are neighbours in memory
        drawn, self._left = self._left[:count], self._left[count:]
        return drawn

    def exponentials(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return numbers with the distribution Exp(1)."""
        uniform = (self.words(int(np.prod(shape))) + 0.5) * 2.0**-32
        return np.asarray(-np.log(uniform), np.float32).reshape(shape)

    def __repr__(self) -> str:
        return "Draws(…)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidArgument("random numbers cannot be copied or pickled: make new Draws()")
