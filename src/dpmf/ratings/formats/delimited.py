"""Delimited text: CSV, TSV, MovieLens `ratings.dat` and `u.data`, packed by gzip or not.

>>> import tempfile
>>> from dpmf.ratings.location import locate
>>> path = Path(tempfile.mkdtemp()) / "ratings.csv"
>>> _ = path.write_text("userId,movieId,rating\\n007,10,4.5\\n008,10,3\\n")
>>> with scan(locate(path)) as relation:
...     relation.query("SELECT user, item").fetchall()
[('007', '10'), ('008', '10')]
"""

from __future__ import annotations

import contextlib
import csv
import glob
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.errors import InvalidRatings
from dpmf.ratings.formats import Format
from dpmf.ratings.formats.database import open_file
from dpmf.ratings.formats.relation import Relation, read_scan
from dpmf.ratings.formats.roles import find_columns, has_usual_names
from dpmf.ratings.formats.text import estimate_sizes, first_line, is_packed
from dpmf.ratings.store.external import stream_scan

if TYPE_CHECKING:
    from dpmf.ratings.location import Location

_DELIMITERS = ("::", "\t", ";", ",", "|")


@contextlib.contextmanager
def scan(location: Location, memory: str | None = None) -> Iterator[Relation]:
    """Open a delimited text file; delimiter, header and columns that are not given are found in its first line."""
    path, options = location.path, location.options
    first = first_line(path)
    delimiter = options.delimiter or _find_delimiter(path, first, least=2 if options.unrated else 3)
    fields = _split_fields(path, first, delimiter)
    header = _looks_like_header(path, fields, options.columns) if options.header is None else options.header
    places = find_columns(path, fields if header else None, len(fields), options.columns, unrated=options.unrated)
    names = [f"c{place}" for place in range(len(fields))]
    typed = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    chosen = ", ".join(f"{names[place]} AS {role}" for role, place in places.items())
    if "rating" not in places:
        chosen += ", '1' AS rating"
    with open_file(path, memory) as connection:
        connection.execute(
            f"CREATE TEMP TABLE staged AS SELECT {chosen} FROM read_csv($path, delim=$delimiter, header=false, "
            f"skip=$skip, auto_detect=false, quote='\"', escape='\"', compression=$compression, columns={{{typed}}})",
            {
                "path": glob.escape(str(path)),
                "delimiter": delimiter,
                "skip": int(header),
                "compression": "gzip" if is_packed(path) else "none",
            },
        )
        yield Relation(connection, "staged", {}, typed=False, row="rowid", first_row=2 if header else 1)


def _split_fields(path: Path, line: str, delimiter: str) -> list[str]:
    """Return the fields of a line; quotes around a field go with a delimiter of one character only."""
    if len(delimiter) > 1:
        return [field.strip() for field in line.split(delimiter)]
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=delimiter))]
    except (csv.Error, TypeError, ValueError) as error:
        raise InvalidRatings(f"the first line of {path} is not a row of fields: {error}") from None


def _find_delimiter(path: Path, line: str, least: int) -> str:
    """Return what separates the columns, of which there are `least` at the least."""
    for delimiter in _DELIMITERS:
        if line.count(delimiter) >= least - 1:
            return delimiter
    few = {2: "one column", 3: "fewer than three columns; without ratings, take feedback as implicit"}[least]
    raise InvalidRatings(f"{path} is not a table of ratings: its first line has {few}")


def _looks_like_header(path: Path, fields: list[str], columns: Mapping[str, str | int] | None) -> bool:
    """There is a header if columns are wanted by name, or if no number stands where the rating should be.

    Without a rating, there is one if it has the usual names. If it has neither those nor a number, nobody can tell: no
    other line is looked at, because it is somebody's.
    """
    wanted = columns or {}
    if any(isinstance(place, str) for place in wanted.values()):
        return True
    if len(fields) == 2:
        if has_usual_names(fields):
            return True
        if not any(map(_is_number, fields)):
            raise InvalidRatings(
                f"{path} may begin with names of columns or with somebody's item: name the columns, or say that "
                "there is no header"
            )
        return False
    place = int(wanted.get("rating", 2))
    return not (place < len(fields) and _is_number(fields[place]))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


FORMAT = Format(
    name="csv",
    recognises=lambda path: False,  # any text may be: it is what files without another mark are taken for
    read=partial(read_scan, scan),
    sizes=estimate_sizes,
    stream=partial(stream_scan, scan),
    file_names=("ratings.csv", "ratings.dat", "u.data"),
)
