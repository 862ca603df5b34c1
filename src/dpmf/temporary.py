"""Temporary files and folders that the next run removes if a run was killed: they may hold people's ratings.

Whoever writes one holds a lock on it, which the system drops when the process ends, in whatever way. What has such a
name, belongs to us, and is held by nobody is a leftover.

>>> folder = Path(tempfile.mkdtemp())
>>> with claimed_folder(folder, "dpmf-test-") as work:
...     remove_leftovers(folder, "dpmf-test-")  # by another run, say
...     work.is_dir()
True
>>> remove_leftovers(folder, "dpmf-test-")
>>> list(folder.iterdir())
[]
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".dpmf"  # tells what we made from what somebody named alike
_LETTERS = "[a-z0-9_]{8}"  # as `tempfile` chooses them


@contextlib.contextmanager
def claimed_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a new folder for its owner alone, which is held until the block ends and not removed then."""
    while True:
        path = Path(tempfile.mkdtemp(dir=parent, prefix=prefix, suffix=SUFFIX))
        try:
            handle = _hold_folder(path)
        except FileNotFoundError:  # somebody took it for a leftover before we held it
            continue
        except BaseException:
            path.rmdir()
            raise
        break
    try:
        yield path
    finally:
        if handle is not None:
            os.close(handle)


@contextlib.contextmanager
def claimed_file(parent: Path, prefix: str) -> Iterator[tuple[Path, int]]:
    """Yield a new file for its owner alone and its descriptor, held until the block ends and not removed then."""
    while True:
        handle, name = tempfile.mkstemp(dir=parent, prefix=prefix, suffix=SUFFIX)
        if _hold(handle, Path(name)):
            break
        os.close(handle)
    try:
        yield Path(name), handle
    finally:
        os.close(handle)


def remove_leftovers(parent: Path, prefix: str) -> None:
    """Remove what runs that were killed have left in a folder under names that begin so.

    Args:
        parent: the folder.
        prefix: a regular expression.
    """
    ours = re.compile(f"{prefix}{_LETTERS}{re.escape(SUFFIX)}")
    with contextlib.suppress(OSError):  # a folder may be written to and not be listed
        for path in [path for path in parent.iterdir() if ours.fullmatch(path.name)]:
            with contextlib.suppress(OSError):  # it is gone, or not ours to remove
                _remove_unheld(path)


def _remove_unheld(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid == os.geteuid() and _lock(handle, wait=False):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
    finally:
        os.close(handle)


def _hold_folder(path: Path) -> int | None:
    """Return a descriptor that locks a folder, or raise FileNotFoundError; None where folders cannot be opened."""
    if os.name != "posix":
        return None
    handle = os.open(path, os.O_RDONLY)
    try:
        if not _hold(handle, path):
            raise FileNotFoundError(path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _hold(handle: int, path: Path) -> bool:
    """Lock what was just made; tell whether it is still there: between the two, it looked like a leftover."""
    _lock(handle, wait=True)
    return path.exists()  # whoever removed it, and had it locked, is done


def _lock(handle: int, *, wait: bool) -> bool:
    """Tell whether the lock was taken; not where another has it, or where the file system has no locks."""
    if os.name != "posix":
        return False
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
