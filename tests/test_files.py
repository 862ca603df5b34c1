"""Files are whole or not there, folders are replaced in one step, and damage is noticed and named."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf import files
from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.files import (
    check_replaceable,
    dump_json,
    is_sealed,
    load_tensors,
    new_folder,
    read_json,
    save_tensors,
    sealed,
    sha256_of,
    write_at,
    write_text,
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def content_of(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_text_is_written_whole_as_utf8_and_replaces_what_was_there(tmp_path: Path) -> None:
    write_text(tmp_path / "note.txt", "old")
    write_text(tmp_path / "note.txt", "né\n七\n")
    assert (tmp_path / "note.txt").read_bytes() == "né\n七\n".encode()
    assert content_of(tmp_path).keys() == {"note.txt"}


def test_text_has_the_permissions_of_an_ordinary_file(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "note.txt", "x")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(old)
    assert mode_of(tmp_path / "note.txt") == 0o640


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_text_and_nothing_else(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / "note.txt", "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if failing == "fsync" else Path, failing, fail)
    with pytest.raises(OSError, match="No space"):
        write_text(tmp_path / "note.txt", "new")
    assert content_of(tmp_path) == {"note.txt": "old"}


def test_text_that_cannot_be_encoded_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "note.txt", "\ud800")
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_is_private_until_it_is_whole(tmp_path: Path) -> None:
    for mode, expected in ((0o666, 0o666 & ~files._umask()), (0o600, 0o600)):
        with files.new_file(tmp_path / "table", mode=mode) as temporary:
            temporary.write_text("1")
            assert mode_of(temporary) == 0o600
            assert temporary.parent == tmp_path
        assert mode_of(tmp_path / "table") == expected
    assert content_of(tmp_path) == {"table": "1"}


def test_a_new_file_vanishes_when_the_block_fails(tmp_path: Path) -> None:
    write_text(tmp_path / "table", "old")

    def break_off() -> None:
        with files.new_file(tmp_path / "table") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert content_of(tmp_path) == {"table": "old"}


def test_a_new_folder_appears_when_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "out"
    with new_folder(target) as work:
        (work / "x").write_text("1")
        assert not target.exists()
        assert mode_of(work) == 0o700
    assert content_of(tmp_path) == {"a/b/out/x": "1"}
    assert mode_of(target) == 0o755
    assert [path.name for path in target.parent.iterdir()] == ["out"]


def test_a_sensitive_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    with new_folder(tmp_path / "out", mode=0o700):
        pass
    assert mode_of(tmp_path / "out") == 0o700


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_block_leaves_what_was_there_and_nothing_else(error: type[BaseException], tmp_path: Path) -> None:
    def attempt() -> None:
        with new_folder(tmp_path / "out", may_replace=["x"]) as work:
            (work / "x").write_text("new")
            raise error

    with pytest.raises(error):
        attempt()
    assert list(tmp_path.iterdir()) == []
    with new_folder(tmp_path / "out") as work:
        (work / "x").write_text("old")
    with pytest.raises(error):
        attempt()
    assert content_of(tmp_path) == {"out/x": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_replacing_removes_what_was_there_as_a_whole(tmp_path: Path) -> None:
    for name in ("x", "y"):
        with new_folder(tmp_path / "out", may_replace=["x", "y"]) as work:
            (work / name).write_text("1")
    assert content_of(tmp_path) == {"out/y": "1"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_old_folder_comes_back_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_folder(tmp_path / "out") as work:
        (work / "x").write_text("old")
    rename = Path.replace

    def fail_for_new(path: Path, target: Path) -> Path:
        if (path / "x").exists() and (path / "x").read_text() == "new":
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(files, "_swap", lambda *_: False)
    monkeypatch.setattr(Path, "replace", fail_for_new)
    with pytest.raises(OSError, match="Input/output"), new_folder(tmp_path / "out", may_replace=["x"]) as work:
        (work / "x").write_text("new")
    assert content_of(tmp_path) == {"out/x": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("swaps", [True, False])
def test_what_is_replaced_is_never_missing_for_good(
    swaps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in ("1", "2"):
        with new_folder(tmp_path / "out", may_replace=["x"]) as work:
            (work / "x").write_text(content)
    if not swaps:
        monkeypatch.setattr(files, "_swap", lambda *_: False)
    killed = RuntimeError("as if killed here")

    def remove(path: Path, **_: object) -> None:
        raise killed

    monkeypatch.setattr(shutil, "rmtree", remove)
    if not swaps:
        rename = Path.replace
        monkeypatch.setattr(Path, "replace", lambda path, to: rename(path, to) if path.name == "out" else remove(path))
    with pytest.raises(RuntimeError), new_folder(tmp_path / "out", may_replace=["x"]) as work:
        (work / "x").write_text("3")
    monkeypatch.undo()
    if swaps:  # one step: the new folder is there, and what is left of the old one is hidden
        assert (tmp_path / "out" / "x").read_text() == "3"
    else:  # two steps: the old folder is back as soon as anybody writes there
        with pytest.raises(KeyError), new_folder(tmp_path / "out", may_replace=["x"]):
            raise KeyError
        assert (tmp_path / "out" / "x").read_text() == "2"
    with new_folder(tmp_path / "out", may_replace=["x"]) as work:
        (work / "x").write_text("4")
    assert content_of(tmp_path) == {"out/x": "4"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_foreign_files_are_never_deleted(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").write_text("1")
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidArgument, match=r"thesis\.tex"), new_folder(tmp_path / "out", may_replace=["x"]):
        pytest.fail("the block must not begin")  # pragma: no cover
    assert content_of(tmp_path).keys() == {"out/x", "out/thesis.tex"}


def test_only_a_folder_of_our_own_or_nothing_is_replaceable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link", "dangling"):
        with pytest.raises(InvalidArgument, match=name):
            check_replaceable(tmp_path / name, [])
    for name in ("folder", "absent"):
        check_replaceable(tmp_path / name, [])


def test_a_relative_folder_is_made_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with new_folder(Path("out")) as work:
        (work / "x").write_text("1")
    assert content_of(tmp_path) == {"out/x": "1"}


def test_checksums_are_sha256_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_CHUNK", 7)
    (tmp_path / "x").write_bytes(bytes(range(100)))
    assert sha256_of(tmp_path / "x") == hashlib.sha256(bytes(range(100))).hexdigest()


def test_json_comes_back_and_has_no_nan(tmp_path: Path) -> None:
    content = {"é": [1, 2.5, None, True], "long": 0.1}
    write_text(tmp_path / "x.json", dump_json(content))
    assert read_json(tmp_path / "x.json") == content
    assert "é" in (tmp_path / "x.json").read_text()
    with pytest.raises(ValueError, match="JSON"):
        dump_json(float("nan"))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe{}", b"[" * 100_000, b"nonsense\nin two lines"])
def test_damaged_json_is_named_in_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(DamagedFile, match=r"x\.json is damaged") as caught:
        read_json(tmp_path / "x.json")
    assert len(str(caught.value).splitlines()) == 1


def test_absent_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile, match=r"x\.json is missing"):
        read_json(tmp_path / "x.json")
    with pytest.raises(DamagedFile, match="cannot read"):
        read_json(tmp_path)


def test_tensors_come_back_whatever_their_layout(tmp_path: Path) -> None:
    tensors: dict[str, NDArray[Any]] = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "b": np.array([], np.int64),
    }
    save_tensors(tmp_path / "x.safetensors", tensors)
    again = load_tensors(tmp_path / "x.safetensors", ["b", "a"])
    assert again.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert again[name].dtype == tensor.dtype
        assert np.array_equal(again[name], tensor)


def safetensors(header: object, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage" * 20,
        struct.pack("<Q", 2**62) + b"{}",
        struct.pack("<Q", 9) + b"{not json",
        safetensors({"a": {"dtype": "F32", "shape": [9], "data_offsets": [0, 4]}}, bytes(4)),
        safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(3)),
        safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(5)),
        safetensors({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, bytes(4)),
        safetensors({"a": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}, bytes(4)),
    ],
)
def test_damaged_tensors_are_named_in_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(DamagedFile, match=r"x\.safetensors is damaged") as caught:
        load_tensors(tmp_path / "x.safetensors", ["a"])
    assert len(str(caught.value).splitlines()) == 1


def test_tensors_must_be_exactly_those_expected(tmp_path: Path) -> None:
    save_tensors(tmp_path / "x.safetensors", {"a": np.zeros(1), "b": np.zeros(1)})
    for expected in (["a"], ["a", "b", "c"], ["a", "B"]):
        with pytest.raises(DamagedFile, match=r"should hold .* and holds \['a', 'b'\]"):
            load_tensors(tmp_path / "x.safetensors", expected)
    with pytest.raises(DamagedFile, match="is missing"):
        load_tensors(tmp_path / "y.safetensors", ["a"])


def test_a_number_that_json_does_not_have_breaks_a_seal() -> None:
    assert not is_sealed({**sealed({"a": 1}), "a": float("nan")})


def test_all_bytes_are_written_if_the_system_takes_only_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda handle, content, offset: whole(handle, content[:3], offset))
    with (tmp_path / "x").open("w+b") as file:
        write_at(file.fileno(), memoryview(b"0123456789"), 2)
    assert (tmp_path / "x").read_bytes() == b"\0\x000123456789"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(DamagedFile, match=r"pipe\.json: it is not a file"):
        read_json(tmp_path / "pipe.json")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '{"a": [{"b": 1, "c": 2, "b": 3}]}'])
def test_a_field_that_is_there_twice_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "twice.json").write_text(text)
    with pytest.raises(DamagedFile, match="a field is there twice"):
        read_json(tmp_path / "twice.json")


def test_a_missing_folder_is_named_and_not_the_temporary_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such folder") as caught:
        write_text(tmp_path / "nowhere" / "file", "1")
    assert caught.value.filename == str(tmp_path / "nowhere")
