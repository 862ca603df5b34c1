"""Text whose ratings stand in groups below header lines, as the Netflix Prize and Yahoo Music publish them."""

from __future__ import annotations

import codecs
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.kernels.text import count_grouped, parse_grouped
from dpmf.ratings.formats.text import is_packed

if TYPE_CHECKING:
    from dpmf.ratings.location import Location


class Groups(NamedTuple):
    """The ratings of grouped files, shape (n,) each.

    Attributes:
        headers: the id in the header line above each rating.
        members: the id in the line of each rating.
        values: the ratings.
        dates: a number that grows with the date; 0 where there is none.
    """

    headers: NDArray[np.int64]
    members: NDArray[np.int64]
    values: NDArray[np.float32]
    dates: NDArray[np.int64]

    @property
    def times(self) -> NDArray[np.int64] | None:
        """The dates, None if no rating has one."""
        if self.dates.any() and not self.dates.all():
            raise InvalidRatings("some ratings have a date and others have none: complete the dates, or remove them")
        return self.dates if self.dates.any() else None


def parse_groups(location: Location, mark: str) -> Groups:
    """Read files as one set of ratings; `mark` is the character that tells header lines from others."""
    parts = []
    for path in location.paths:
        text = _read_bytes(path)
        count, above = count_grouped(text, ord(mark))
        part = Groups(
            np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.float32), np.empty(count, np.int64)
        )
        line = above or parse_grouped(text, ord(mark), *part)
        if line:
            name = location.format.name
            raise InvalidRatings(f"{path} line {line} is neither a header nor a rating of the {name} format")
        parts.append(part)
    return Groups(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _read_bytes(path: Path) -> NDArray[np.uint8]:
    """Return the content of a file, unpacked if need be, without a byte order mark."""
    text: NDArray[np.uint8]
    if is_packed(path):
        try:
            text = np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8)
        except (OSError, EOFError) as error:
            raise InvalidRatings(f"cannot read {path}: {error}") from None
    else:
        text = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    return text[3:] if text[:3].tobytes() == codecs.BOM_UTF8 else text
