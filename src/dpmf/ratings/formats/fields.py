"""The fields of the first line of delimited text, and what may separate them.

>>> delimiters_in(Path("u.data"), "196\\t242\\t3", 3), split_fields(Path("u.data"), "196\\t242\\t3", "\\t")
(['\\t'], ['196', '242', '3'])
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from dpmf.errors import InvalidRatings

_DELIMITERS = ("::", "\t", ";", ",", "|")
_WITHOUT_HEADER = (".dat", ".data")  # as MovieLens calls them


def split_fields(
    path: Path, line: str, delimiter: str, escape: str | None = None, quotes: bool | None = None
) -> list[str]:
    """Return the fields of a line; quotes around a field go with a delimiter of one character only."""
    if len(delimiter) > 1 or quotes is False:
        return [field.strip() for field in line.split(delimiter)]
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=delimiter, escapechar=escape))]
    except (csv.Error, TypeError, ValueError) as error:
        raise InvalidRatings(f"the first line of {path} is not a row of fields: {error}") from None


def delimiters_in(path: Path, line: str, least: int) -> list[str]:
    """Return what may separate the columns, of which there are `least` at the least; the likeliest comes first."""
    if found := [delimiter for delimiter in _DELIMITERS if line.count(delimiter) >= least - 1]:
        return found
    few = {2: "one column", 3: "fewer than three columns; without ratings, say feedback='implicit'"}[least]
    raise InvalidRatings(f"{path} is not a table of ratings: its first line has {few}")


def check_delimiters(path: Path, delimiters: Sequence[str], *, header: bool) -> None:
    """Refuse a first line that allows several delimiters, unless it is a header, which is nobody's."""
    if not header and len(delimiters) > 1:
        raise InvalidRatings(
            f"{path} may be separated by {delimiters[0]!r} or {delimiters[1]!r}: say which with delimiter=…"
        )


def has_header_by_name(path: Path) -> bool:
    """Tell whether the first line of a file names its columns, by how the file is called."""
    return Path(path.name.lower().removesuffix(".gz")).suffix not in _WITHOUT_HEADER


def check_header(path: Path, *, header: bool, fits: bool) -> None:
    """Refuse a first line that does not look like what it should be."""
    if not fits:
        told = "should name the columns, and does not" if header else "should be a rating, and is not"
        raise InvalidRatings(f"the first line of {path} {told}: say header=True or header=False")


def is_number(text: str) -> bool:
    """Tell whether a text is a number to Python."""
    try:
        float(text)
    except ValueError:
        return False
    return True
