"""Text files, packed or not: their first line, and about how many ratings they hold."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmf.errors import InvalidRatings
from dpmf.ratings.formats import Sizes

if TYPE_CHECKING:
    from dpmf.ratings.location import Location

_BYTES_PER_LINE = 6  # at least
_PACKING = 10  # how much smaller a packed file may be


def is_packed(path: Path) -> bool:
    """Tell whether a file is packed by gzip, by its name."""
    return path.suffix.lower() == ".gz"


def first_line(path: Path, encoding: str = "utf-8") -> str:
    """Return the first line of a text file, unpacked if need be."""
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


def estimate_sizes(location: Location) -> Sizes:
    """Return how many ratings text files hold at most, judged by their size on the disk."""
    packing = _PACKING if is_packed(location.paths[0]) else 1
    return Sizes(sum(path.stat().st_size for path in location.paths) * packing // _BYTES_PER_LINE)
