"""Memory that is used again and again.

To ask the operating system for fresh memory for every block that is read costs more than to read it: pages are cleared
and mapped one by one, and all threads are stopped to have them unmapped.

>>> buffers = Buffers()
>>> first = buffers.take(1000)
>>> buffers.give_back(first)
>>> buffers.take(980).base is first.base, buffers.n_bytes
(True, 1024)
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


class Buffers:
    """Takes back what it gave out, and gives it out again. It never has more than was once out at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spare: list[Bytes] = []
        self._out = self._most = 0

    @property
    def n_bytes(self) -> int:
        """How much memory it has, given out or not."""
        with self._lock:
            return self._out + sum(map(len, self._spare))

    def take(self, size: int) -> Bytes:
        """Return a buffer of so many bytes, with anything in it."""
        length = _rounded(size)
        with self._lock:
            place = next((place for place, one in enumerate(self._spare) if len(one) == length), None)
            found = None if place is None else self._spare.pop(place)
            self._out += length
            self._most = max(self._most, self._out)
            while self._spare and self._out + sum(map(len, self._spare)) > self._most:
                self._spare.pop(0)
        return (np.empty(length, np.uint8) if found is None else found)[:size]

    def give_back(self, part: NDArray[Any]) -> None:
        """Say that a buffer from `take`, of which this is a part, is done with: nobody reads or writes it any more."""
        whole = part.base
        assert isinstance(whole, np.ndarray)
        with self._lock:
            self._out -= len(whole)
            self._spare.append(whole)


def _rounded(size: int) -> int:
    """Return a size that is a little larger, so that buffers for blocks of about one size can stand for each other."""
    step = max(1 << max(size.bit_length() - 4, 0), 1)
    return max(-(-size // step) * step, 1)
