"""How messages are written as bytes and read back, refused unless they are exactly what they should be.

Numbers are little-endian. Every message begins with the version of the wire, its kind and the number of the round.
Lists of items and of users ascend, so that nothing can appear in them twice.

>>> content = encode_header(7, 3) + encode_list(np.array([2, 5], np.uint32))
>>> reader = Reader(content, kind=7)
>>> reader.round, reader.indices(below=6).tolist()
(3, [2, 5])
>>> Reader(content[:-1], kind=7).indices(below=6)
Traceback (most recent call last):
dpmf.federated.wire.refusals.Refused: the message has the wrong length
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.federated.wire.refusals import Refused

VERSION = 1
"""Of the wire, unless another is asked for: see `dpmf.federated.wire.suites`."""

COUNT = struct.Struct("<I")
_HEADER = struct.Struct("<BBI")
_U4 = np.dtype("<u4")

Handles = NDArray[np.uint32]
"""Numbers of users, ascending."""


def kind_of(content: bytes, version: int = VERSION) -> tuple[int, int]:
    """Return the kind and the round of a message."""
    if len(content) < _HEADER.size:
        raise Refused("the message is too short")
    found, kind, number = _HEADER.unpack_from(content)
    if found != version:
        raise Refused("the message has another version of the wire")
    return kind, number


def encode_header(kind: int, number: int, version: int = VERSION) -> bytes:
    """Return the first bytes of a message of this kind in this round."""
    return _HEADER.pack(version, kind, number)


def encode_list(indices: NDArray[np.uint32]) -> bytes:
    """Return an ascending list of indices as bytes, for `Reader.indices`."""
    return COUNT.pack(len(indices)) + np.ascontiguousarray(indices, _U4).tobytes()


class Reader:
    """Reads the fields of a message from front to back."""

    def __init__(self, content: bytes, kind: int, version: int = VERSION) -> None:
        found, self.round = kind_of(content, version)
        if found != kind:
            raise Refused("the message is of another kind")
        self._content, self._at = memoryview(content), _HEADER.size

    def take(self, n_bytes: int) -> memoryview:
        """Read a number of bytes."""
        part = self._content[self._at : self._at + n_bytes]
        if len(part) < n_bytes:
            raise Refused("the message has the wrong length")
        self._at += n_bytes
        return part

    def struct(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Read the numbers of a layout."""
        return layout.unpack(self.take(layout.size))

    def array(self, dtype: np.dtype[Any], *shape: int) -> NDArray[Any]:
        """Read an array."""
        count = 1
        for length in shape:
            count *= length  # Python integers do not overflow
        return np.frombuffer(self.take(count * dtype.itemsize), dtype).reshape(shape)

    def indices(self, below: int) -> NDArray[np.uint32]:
        """Read an ascending list of indices, all of them below a number."""
        (count,) = self.struct(COUNT)
        if count > below:
            raise Refused("a list is longer than it can be")
        found = self.array(_U4, count)
        if count and (int(found[-1]) >= below or not (found[1:] > found[:-1]).all()):
            raise Refused("a list does not ascend, or has an index that does not exist")
        return found

    def end(self) -> None:
        """Refuse leftover bytes."""
        if self._at != len(self._content):
            raise Refused("the message has the wrong length")
