"""Tensor files: the same format as the library's, written and read piece by piece, and damage is noticed."""

from __future__ import annotations

import errno
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.engine import rowfile
from dpmf.engine.rowfile import MappedRows
from dpmf.engine.tensorfile import read_tensors, write_tensors
from dpmf.errors import DamagedFile
from dpmf.files import load_tensors, save_tensors

PLAIN: dict[str, NDArray[Any]] = {
    "turned": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "empty": np.array([], np.int64),
    "flags": np.array([True, False, True]),
    "words": np.array([1, 1 << 31], np.uint32),
}


def same(ours: dict[str, NDArray[Any]], theirs: dict[str, NDArray[Any]]) -> bool:
    return ours.keys() == theirs.keys() and all(
        (one.dtype, one.shape) == (theirs[name].dtype, theirs[name].shape) and np.array_equal(one, theirs[name])
        for name, one in ours.items()
    )


def rows_on_disk(folder: Path, count: int = 1000) -> MappedRows:
    rows = MappedRows(folder, (count, 16))
    rows.array[:] = np.arange(16 * count, dtype=np.float32).reshape(count, 16)
    return rows


def test_the_library_reads_what_we_write_and_we_read_what_it_writes(tmp_path: Path) -> None:
    rows = rows_on_disk(tmp_path)
    expected = {**PLAIN, "U": rows.array.copy()}
    write_tensors(tmp_path / "ours", {**PLAIN, "U": rows})
    save_tensors(tmp_path / "theirs", expected)
    for path in (tmp_path / "ours", tmp_path / "theirs"):
        assert same(load_tensors(path, expected), expected)
        assert same(read_tensors(path, expected), expected)


def test_tensors_are_read_into_what_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowfile, "_PIECE_BYTES", 1 << 13)
    rows, target, words = rows_on_disk(tmp_path), MappedRows(tmp_path, (1000, 16)), np.zeros(2, np.uint32)
    expected = {**PLAIN, "number": np.array(7.5), "U": rows.array}
    write_tensors(tmp_path / "x", {**expected, "U": rows})
    found = read_tensors(tmp_path / "x", expected, {"U": target, "words": words, "other": np.zeros(1)})
    assert found["U"] is target.array
    assert found["words"] is words
    assert same(found, expected)


@pytest.mark.parametrize("target", [np.zeros(3, np.uint32), np.zeros(2, np.int32), np.zeros((2, 1), np.uint32)])
def test_what_does_not_fit_is_refused(tmp_path: Path, target: NDArray[Any]) -> None:
    write_tensors(tmp_path / "x", PLAIN)
    with pytest.raises(DamagedFile, match="words is uint32 of shape"):
        read_tensors(tmp_path / "x", PLAIN, {"words": target})


def test_tensors_must_be_exactly_those_expected(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x", PLAIN)
    with pytest.raises(DamagedFile, match="should hold"):
        read_tensors(tmp_path / "x", ["words"])
    with pytest.raises(DamagedFile, match="is missing"):
        read_tensors(tmp_path / "y", PLAIN)


def file_of(header: object, data: bytes = bytes(4)) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def described(**changed: object) -> dict[str, object]:
    return {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **changed}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage" * 20,
        struct.pack("<Q", 2**62) + b"{}",
        struct.pack("<Q", 9) + b"{not json",
        file_of([]),
        file_of({"a": 1}),
        file_of(described(shape=[9])),
        file_of(described(shape=[float("inf")])),
        file_of(described(shape=[-1], data_offsets=[4, 0])),
        file_of(described(data_offsets=[-4, 0])),
        file_of(described(data_offsets=[1, 5])),
        file_of(described(data_offsets=[0])),
        file_of(described(shape=None)),
        file_of(described(), bytes(3)),
        file_of(described(dtype="BF16", shape=[2])),
        file_of(described(dtype=["F32"])),
    ],
)
def test_a_damaged_header_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DamagedFile, match="x is damaged") as caught:
        read_tensors(tmp_path / "x", ["a"])
    assert len(str(caught.value).splitlines()) == 1


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pieces(rows: MappedRows) -> Iterator[NDArray[np.float32]]:
        yield rows.array[:1]
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(MappedRows, "pieces", pieces)
    with pytest.raises(OSError, match=r"No space left on device: '.*x'"):
        write_tensors(tmp_path / "x", {"U": rows_on_disk(tmp_path)})
