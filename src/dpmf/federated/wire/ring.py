"""Integers modulo P, a power of 256: what is added up behind masks.

An element of the ring takes 4 or 8 bytes in memory, and on the wire as many bytes as P has. Signed numbers below P/2 in
magnitude are represented exactly; a sum is right whenever the true sum is below P/2, however often it wrapped around.

>>> ring = Ring(5)
>>> elements = ring.elements(np.array([-3, 2**38]))
>>> ring.signed(elements - ring.elements(np.array([1, 1]))).tolist()
[-4, 274877906943]
>>> len(ring.packed(elements)), ring.signed(ring.unpacked(ring.packed(elements))).tolist()
(10, [-3, 274877906944])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument

_MOST_BYTES = 8

Elements = NDArray[Any]
"""Ring elements in memory: unsigned integers, of `Ring.dtype`."""


@dataclass(frozen=True)
class Ring:
    """The integers modulo P = 256^n_bytes.

    Attributes:
        n_bytes: of an element on the wire, from 1 to 8.
    """

    n_bytes: int

    def __post_init__(self) -> None:
        if not 1 <= self.n_bytes <= _MOST_BYTES:
            raise InvalidArgument(f"n_bytes={self.n_bytes} should be from 1 to {_MOST_BYTES}")

    @classmethod
    def holding(cls, largest: float) -> Ring:
        """Return the smallest ring for sums of at most this magnitude."""
        for n_bytes in range(1, _MOST_BYTES + 1):
            if largest < cls(n_bytes).half:
                return cls(n_bytes)
        raise InvalidArgument(f"sums of up to {largest:.3g} steps do not fit into {_MOST_BYTES} bytes: add less noise")

    @cached_property
    def half(self) -> int:
        """P/2: signed numbers range from -P/2 to just below it."""
        return 1 << (8 * self.n_bytes - 1)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of elements in memory; bits above P are arbitrary."""
        return np.dtype("<u4" if self.n_bytes <= 4 else "<u8")

    def elements(self, numbers: NDArray[np.int64]) -> Elements:
        """Return signed numbers as ring elements."""
        return np.ascontiguousarray(numbers, np.int64).view(np.uint64).astype(self.dtype, copy=False)

    def signed(self, elements: Elements) -> NDArray[np.int64]:
        """Return the signed numbers that elements represent."""
        size = self.dtype.itemsize
        kind = np.dtype(f"<i{size}")
        spare = kind.type(8 * (size - self.n_bytes))
        shifted = np.left_shift(elements.astype(self.dtype, copy=False).view(kind), spare)
        return np.asarray(shifted >> spare, np.int64)

    def packed(self, elements: Elements) -> bytes:
        """Return elements as bytes, n_bytes each, little-endian."""
        flat = np.ascontiguousarray(elements, self.dtype).reshape(-1)
        if self.n_bytes == self.dtype.itemsize:
            return flat.tobytes()
        return flat.view(np.uint8).reshape(-1, self.dtype.itemsize)[:, : self.n_bytes].tobytes()

    def unpacked(self, content: bytes | memoryview) -> Elements:
        """Return the elements that `packed` turned into bytes."""
        parts = np.frombuffer(content, np.uint8)
        if self.n_bytes == self.dtype.itemsize:
            return parts.view(self.dtype)
        full = np.zeros((len(parts) // self.n_bytes, self.dtype.itemsize), np.uint8)
        full[:, : self.n_bytes] = parts.reshape(-1, self.n_bytes)
        return full.reshape(-1).view(self.dtype)
