"""Files that are either whole or not there: atomic writes, checksums, JSON and tensors.

Everything is written under a temporary name in the same folder, flushed to the disk and renamed, so that a crash, a
full disk or Ctrl-C leaves the old file or none, never half of one. Temporary names that a kill left behind are removed
by whoever writes the same file next.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> write_text(folder / "note.json", '{"a": 1}')
>>> read_json(folder / "note.json")
{'a': 1}
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.temporary import claimed_file, claimed_folder, remove_leftovers

_CHUNK = 1 << 20
_DISPLACED = ".replaced"  # ends the name of a folder whose place is being taken, where folders cannot be swapped


def write_text(path: Path, text: str) -> None:
    """Write a whole text file atomically, as UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file atomically."""
    with new_file(path) as temporary:
        temporary.write_bytes(content)


@contextlib.contextmanager
def new_file(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """Yield an empty file that becomes `path` when the block ends well, and vanishes otherwise.

    Args:
        path: the file to make, or to replace.
        mode: its permissions; 0o600 for what is sensitive. Until it is complete, it is for its owner alone.
    """
    if not path.parent.is_dir():  # or the message would name a temporary file
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(path.parent))
    remove_partial(path)
    with claimed_file(path.parent, f".{path.name}.") as (temporary, _):
        try:
            yield temporary
            _flush(temporary)
            temporary.chmod(mode & ~_umask())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    _flush_folder(path.parent)


@contextlib.contextmanager
def new_folder(path: Path, *, may_replace: Collection[str] = (), mode: int = 0o755) -> Iterator[Path]:
    """Yield an empty folder that becomes `path` when the block ends well, and vanishes otherwise.

    Args:
        path: the folder to make. Its parents are made too.
        may_replace: file names that an existing folder may hold and still be replaced; with any other file inside,
            the folder is not ours to delete and the call is refused.
        mode: permissions of the folder; 0o700 for what is sensitive.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100  (resolve() would follow a link and replace its target)
    check_replaceable(path, may_replace)
    path.parent.mkdir(parents=True, exist_ok=True)
    _restore_displaced(path)
    remove_partial(path)
    with claimed_folder(path.parent, f".{path.name}.") as work:
        try:
            yield work
            for file in work.rglob("*"):
                if file.is_file():
                    _flush(file)
            work.chmod(mode & ~_umask())
            if path.exists():
                _exchange(work, path)
            else:
                work.replace(path)
            _flush_folder(path.parent)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise


def remove_partial(path: Path) -> None:
    """Remove what runs that were killed have left of writing a file or folder; writing it does so by itself."""
    remove_leftovers(path.parent, re.escape(f".{path.name}."))


def _exchange(new: Path, path: Path) -> None:
    """Put a folder in the place of another, which is removed; there is one under that name at any moment."""
    if _swap(new, path):
        shutil.rmtree(new)
        return
    old = path.with_name(f".{path.name}{_DISPLACED}")
    path.replace(old)
    try:
        new.replace(path)
    except BaseException:
        old.replace(path)
        raise
    shutil.rmtree(old)


def _restore_displaced(path: Path) -> None:
    """Finish what a kill has cut short where folders cannot be swapped: the old one is back, or removed."""
    old = path.with_name(f".{path.name}{_DISPLACED}")
    if old.is_dir() and path.exists():
        shutil.rmtree(old, ignore_errors=True)
    elif old.is_dir():
        old.replace(path)


def _swap(one: Path, other: Path) -> bool:
    """Let two folders change names in one step; return False where the system, or the file system, cannot."""
    import ctypes

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    here, swapping = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), swapping) == 0)


@contextlib.contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """Yield a new folder among the temporary files, for its owner alone, that is removed when the block ends.

    Ctrl-C while it is being removed does not leave the rest behind: the removal then starts over.
    """
    remove_leftovers(Path(tempfile.gettempdir()), "dpmf-[a-z]+-")
    with claimed_folder(Path(tempfile.gettempdir()), f"dpmf-{purpose}-") as folder:
        try:
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            if folder.exists():
                shutil.rmtree(folder)


def scratch_file(folder: Path) -> IO[bytes]:
    """Return a file without a name, on the disk of a folder; elsewhere if that may only be read.

    It vanishes when it is closed and no array is mapped to it any more.
    """
    try:
        return tempfile.TemporaryFile(dir=folder, buffering=_CHUNK)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise
        return tempfile.TemporaryFile(buffering=_CHUNK)


def reserve(file: IO[bytes], size: int) -> None:
    """Give a file its size on the disk, so that a full disk is an error now, and not a crash where it is mapped."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)


def write_at(handle: int, content: memoryview, offset: int) -> None:
    """Write all bytes at a place of a file: the system may write some of them only, as where a disk is nearly full."""
    done = 0
    while done < len(content):
        done += os.pwrite(handle, content[done:], offset + done)


def check_replaceable(path: Path, may_replace: Collection[str]) -> None:
    """Raise `InvalidArgument` unless `path` can be made, or is a folder of nothing but the files named."""
    above = Path(os.path.abspath(path)).parents  # noqa: PTH100
    parent = next((folder for folder in above if folder.exists()), Path(os.sep))
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InvalidArgument(f"{path} cannot be made: {parent} is not a folder that can be written to")
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise InvalidArgument(f"{path} exists and is not a folder: choose another name")
    if path.is_dir():
        foreign = sorted(file.name for file in path.iterdir() if file.name not in may_replace)
        if foreign:
            raise InvalidArgument(f"{path} holds other files ({foreign[0]}): choose an empty or new folder")


def sha256_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def digest_of(content: Mapping[str, Any]) -> str:
    """Return the hexadecimal SHA-256 of JSON content, whatever the order of its fields and the spaces in its file.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def sealed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON content with a digest of it in one more field."""
    return {**facts, "digest": digest_of(facts)}


def is_sealed(facts: Mapping[str, Any]) -> bool:
    """Tell whether content is as `sealed` left it.

    >>> is_sealed(sealed({"a": 1})), is_sealed({**sealed({"a": 1}), "a": 2})
    (True, False)
    """
    try:
        return facts.get("digest") == digest_of({name: value for name, value in facts.items() if name != "digest"})
    except ValueError:  # a number that JSON does not have
        return False


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, or raise `DamagedFile`; a field that is there twice is refused, too."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # reading a pipe or a device might never end
            raise DamagedFile(f"cannot read {path}: it is not a file")
        text = path.read_text(encoding="utf-8-sig")  # some editors put a byte order mark first
        return json.loads(text, object_pairs_hook=_fields_once)
    except FileNotFoundError:
        raise DamagedFile(f"{path} is missing") from None
    except OSError as error:
        raise DamagedFile(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{path} is damaged: it is not JSON ({error})") from None


def _fields_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object; of two with one name, readers would not agree which counts."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field is there twice")
    return fields


def dump_json(content: Any) -> str:
    """Return JSON text that ends in a newline; NaN and infinities are refused."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def save_tensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, str(path))
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from None
    path.chmod(0o666 & ~_umask())  # the library writes for the owner alone; the folder decides who may read


def load_tensors(path: Path, expected: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a safetensors file, or raise `DamagedFile` if any of the expected ones is not there."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not path.is_file():
        raise DamagedFile(f"{path} is missing")
    try:
        tensors: dict[str, NDArray[Any]] = load_file(str(path))
    except (SafetensorError, TypeError, AttributeError) as error:  # the last two: a type that NumPy does not have
        raise DamagedFile(f"{path} is damaged: {error}") from None
    if set(tensors) != set(expected):
        raise DamagedFile(f"{path} should hold {sorted(expected)} and holds {sorted(tensors)}")
    return tensors


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _flush_folder(path: Path) -> None:
    """Make a rename durable; Windows has no such call, and needs none."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
