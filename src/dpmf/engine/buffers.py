"""A pool of reusable buffers.

Asking the operating system for fresh memory for every block costs more than reading the block: pages are cleared and
mapped one by one, and all threads are stopped to unmap them.

>>> pool = BufferPool()
>>> first = pool.acquire(1000)
>>> pool.release(first)
>>> pool.acquire(980).base is first.base, pool.n_bytes
(True, 1024)
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


class BufferPool:
    """Hands out buffers and reuses them once released; it never holds more than was ever in use at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spare: list[Bytes] = []
        self._in_use = self._peak = 0

    @property
    def n_bytes(self) -> int:
        """The bytes of all buffers, in use or not."""
        with self._lock:
            return self._in_use + sum(map(len, self._spare))

    def acquire(self, size: int) -> Bytes:
        """Return a buffer of `size` bytes, uninitialised."""
        length = _rounded(size)
        with self._lock:
            place = next((place for place, one in enumerate(self._spare) if len(one) == length), None)
            found = None if place is None else self._spare.pop(place)
            self._in_use += length
            self._peak = max(self._peak, self._in_use)
            while self._spare and self._in_use + sum(map(len, self._spare)) > self._peak:
                self._spare.pop(0)
        return (np.empty(length, np.uint8) if found is None else found)[:size]

    def release(self, part: NDArray[Any]) -> None:
        """Release the buffer from `acquire` that this array is a view of; nobody may use it any longer."""
        whole = part.base
        assert isinstance(whole, np.ndarray)
        with self._lock:
            self._in_use -= len(whole)
            self._spare.append(whole)


def _rounded(size: int) -> int:
    """Return a slightly larger size, so that blocks of similar sizes can share buffers."""
    step = max(1 << max(size.bit_length() - 4, 0), 1)
    return max(-(-size // step) * step, 1)
