"""Tensor files, written and read piece by piece: arrays in memory, and rows mapped from a disk.

The format is safetensors (the length of a header, the header as JSON, then the bytes of all tensors), whose own library
needs everything in memory.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "x.safetensors"
>>> write_tensors(path, {"a": np.arange(3, dtype=np.int64)})
>>> target = np.zeros(3, np.int64)
>>> read_tensors(path, ["a"], into={"a": target})["a"] is target, target.tolist()
(True, [0, 1, 2])
"""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.rowfile import MappedRows
from dpmf.errors import DamagedFile

Tensor = NDArray[Any] | MappedRows
_LENGTH = struct.Struct("<Q")
_MOST_HEADER_BYTES = 100_000_000  # as in safetensors
_TYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"), "I32": np.dtype("<i4"), "I16": np.dtype("<i2"), "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"), "U32": np.dtype("<u4"), "U16": np.dtype("<u2"), "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}  # fmt: skip
_NAMES = {kind: name for name, kind in _TYPES.items()}


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors to a new file, with one piece of mapped rows in memory at a time."""
    # Wide types first, as the library does, so that every tensor is aligned for its type.
    names = sorted(tensors, key=lambda name: (-_array(tensors[name]).itemsize, name))
    header, end = {}, 0
    for name in names:
        array = _array(tensors[name])
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [end, end + array.nbytes],
        }
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    try:
        with path.open("wb") as file:
            file.write(_LENGTH.pack(len(text)) + text)
            for name in names:
                for piece in _pieces(tensors[name]):
                    file.write(_bytes_of(np.ascontiguousarray(piece)))
    except OSError as error:
        # The call that notices a full disk does not know the file's name.
        raise OSError(error.errno, error.strerror, str(path)) from None


def read_tensors(
    path: Path, expected: Collection[str], into: Mapping[str, Tensor] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the tensors of a file.

    Args:
        path: the file.
        expected: the names of all its tensors.
        into: arrays to read some of them into, by name, without a copy; the rest are read into new arrays.

    Raises:
        DamagedFile: the file has another format, holds other tensors, or tensors that do not fit the given arrays.
    """
    if not path.is_file():
        raise DamagedFile(f"{path} is missing")
    with path.open("rb") as file:
        try:
            header, start = _read_header(file, path.stat().st_size)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
            raise DamagedFile(f"{path} is damaged: its header does not describe it ({error})") from None
        if set(header) != set(expected):
            raise DamagedFile(f"{path} should hold {sorted(expected)} and holds {sorted(header)}")
        found = {}
        for name, (kind, shape, offset) in header.items():
            target = (into or {}).get(name)
            if target is None:
                target = np.empty(shape, kind)
            array = _array(target)
            if (array.dtype, array.shape) != (kind, shape):
                raise DamagedFile(
                    f"{path} is damaged: {name} is {kind} of shape {shape}, not {array.dtype} of {array.shape}"
                )
            file.seek(start + offset)
            for piece in _pieces(target):
                if file.readinto(_bytes_of(piece)) != piece.nbytes:
                    raise DamagedFile(f"{path} is damaged: it is too short")
            found[name] = array
    return found


def _read_header(file: IO[bytes], size: int) -> tuple[dict[str, tuple[np.dtype[Any], tuple[int, ...], int]], int]:
    """Return type, shape and offset of every tensor, and the start of the data."""
    start = file.read(_LENGTH.size)
    length = _LENGTH.unpack(start)[0] if len(start) == _LENGTH.size else size
    room = size - _LENGTH.size - length
    if room < 0 or length > _MOST_HEADER_BYTES:
        raise ValueError(f"a header of {length} bytes in a file of {size}")
    header: dict[str, tuple[np.dtype[Any], tuple[int, ...], int]] = {}
    for name, facts in json.loads(file.read(length)).items():
        if name == "__metadata__":
            continue
        kind, shape = _TYPES[facts["dtype"]], tuple(map(int, facts["shape"]))
        begin, end = map(int, facts["data_offsets"])
        taken = kind.itemsize
        for count in shape:
            taken *= count
        if not 0 <= begin <= end <= room or end - begin != taken or min(shape, default=0) < 0:
            raise ValueError(f"{name} cannot be at {begin}:{end} of {room} bytes")
        header[name] = kind, shape, begin
    return header, _LENGTH.size + length


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.array if isinstance(tensor, MappedRows) else tensor


def _pieces(tensor: Tensor) -> Iterable[NDArray[Any]]:
    return tensor.pieces() if isinstance(tensor, MappedRows) else (tensor,)


def _bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the memory of a contiguous array, for reading or writing."""
    assert array.flags.c_contiguous  # or this would be a copy, and reading into it would be lost
    return array.reshape(-1).view(np.uint8).data
