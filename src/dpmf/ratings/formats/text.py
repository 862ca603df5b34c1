"""Text files, packed or not: their first line, and about how many ratings they hold."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmf.errors import InvalidRatings
from dpmf.ratings.formats import Sizes

if TYPE_CHECKING:
    from dpmf.ratings.location import Location

_BYTES_PER_LINE = 6  # at least
_PACKING = 10  # how much smaller a packed file may be
_TAR_MARK = 257, b"ustar"
_NO_TEXT = {  # by how they begin: what they are, and what to do with them
    b"\xd0\xcf\x11\xe0": "a workbook of Excel: call it .xls, or save it as CSV",
    b"PK\x03\x04": "a workbook or a zip archive: call the one .xlsx, and the other .zip",
    b"\x89HDF": "an HDF5 file: save its table as CSV or Parquet",
    b"7z\xbc\xaf": "an archive of 7-Zip: unpack it, or make it a .zip",
    b"Rar!\x1a": "an archive of RAR: unpack it, or make it a .zip",
    b"BZh91AY&": "packed by bzip2: unpack it, or pack it as .gz",
    b"\xfd7zXZ": "packed by xz: unpack it, or pack it as .gz",
}


def is_packed(path: Path) -> bool:
    """Tell whether a file is packed by gzip, by its name."""
    return path.suffix.lower() == ".gz"


def first_line(path: Path, encoding: str = "utf-8") -> str:
    """Return the first line of a text file, unpacked if need be."""
    refuse_binary(path)
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    opener: Any = gzip.open if is_packed(path) else open
    try:
        with opener(path, "rt", encoding=codec, errors="replace") as file:
            line: str = file.readline(1 << 20)
    except (OSError, EOFError) as error:
        raise InvalidRatings(f"cannot read {path}: {error}") from None
    if not line.strip():
        raise InvalidRatings(f"{path} is empty or begins with an empty line: it should hold one rating per line")
    if "\0" in line:
        raise InvalidRatings(f"{path} is not UTF-8 text: save it as such, or name its format")
    return line.rstrip("\r\n")


def refuse_binary(path: Path) -> None:
    """Refuse files of a few kinds that are no text, whose columns would otherwise be looked for."""
    try:
        with path.open("rb") as file:
            begins = file.read(8)
    except OSError as error:
        raise InvalidRatings(f"cannot read {path}: {error}") from None
    if begins.startswith(b"\x1f\x8b") or path.suffix.lower() == ".tar":
        _refuse_tar(path)
    for mark, kind in _NO_TEXT.items():
        if begins.startswith(mark):
            raise InvalidRatings(f"{path} is {kind}")


def _refuse_tar(path: Path) -> None:
    opener: Any = gzip.open if is_packed(path) else open
    with contextlib.suppress(OSError, EOFError), opener(path, "rb") as file:
        if file.read(_TAR_MARK[0] + 5)[_TAR_MARK[0] :] == _TAR_MARK[1]:
            raise InvalidRatings(f"{path} is a tar archive: unpack it, or make it a .zip")


def estimate_sizes(location: Location) -> Sizes:
    """Return how many ratings text files hold at most, judged by their size on the disk."""
    packing = _PACKING if is_packed(location.paths[0]) else 1
    return Sizes(sum(path.stat().st_size for path in location.paths) * packing // _BYTES_PER_LINE)
