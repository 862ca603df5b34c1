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
import mmap
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.errors import InvalidRatings
from dpmf.ratings.formats import Format
from dpmf.ratings.formats.database import open_file
from dpmf.ratings.formats.relation import Relation, read_scan, select_roles
from dpmf.ratings.formats.roles import find_columns, has_usual_names
from dpmf.ratings.formats.text import estimate_sizes, first_line, is_packed
from dpmf.ratings.store.external import stream_scan

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.options import ReadOptions

_DELIMITERS = ("::", "\t", ";", ",", "|")
_WITHOUT_HEADER = (".dat", ".data")  # as MovieLens calls them


@contextlib.contextmanager
def scan(location: Location, memory: str | None = None) -> Iterator[Relation]:
    """Open a delimited text file; a delimiter and columns that are not given are found in its first line."""
    path, options = location.path, location.options
    first = first_line(path)
    delimiters = [options.delimiter] if options.delimiter else _delimiters_in(path, first, 2 if options.unrated else 3)
    fields = _split_fields(path, first, delimiters[0])
    header = _has_header(path, fields, options)
    if not header and len(delimiters) > 1:
        raise InvalidRatings(
            f"{path} may be separated by {delimiters[0]!r} or {delimiters[1]!r}: say which with delimiter=…"
        )
    places = find_columns(path, fields if header else None, len(fields), options.columns, unrated=options.unrated)
    names = [f"c{place}" for place in range(len(fields))]
    typed = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    quote, one_line = ('"', f"WHERE CASE WHEN {_spans_lines(names)}") if _may_have_quotes(path) else ("", "")
    chosen, counts = select_roles(places, names, nothing="'1'")
    with open_file(path, memory) as connection:
        connection.execute(
            f"CREATE TEMP TABLE staged AS SELECT {chosen} FROM read_csv($path, delim=$delimiter, header=false, "
            "skip=$skip, auto_detect=false, quote=$quote, escape=$quote, compression=$compression, "
            f"columns={{{typed}}}) {one_line}",
            {
                "path": glob.escape(str(path)),
                "delimiter": delimiters[0],
                "quote": quote,
                "skip": int(header),
                "compression": "gzip" if is_packed(path) else "none",
            },
        )
        yield Relation(connection, "staged", {}, typed=False, row="rowid", first_row=2 if header else 1, counts=counts)


def _split_fields(path: Path, line: str, delimiter: str) -> list[str]:
    """Return the fields of a line; quotes around a field go with a delimiter of one character only."""
    if len(delimiter) > 1:
        return [field.strip() for field in line.split(delimiter)]
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=delimiter))]
    except (csv.Error, TypeError, ValueError) as error:
        raise InvalidRatings(f"the first line of {path} is not a row of fields: {error}") from None


def _delimiters_in(path: Path, line: str, least: int) -> list[str]:
    """Return what may separate the columns, of which there are `least` at the least; the likeliest comes first."""
    if found := [delimiter for delimiter in _DELIMITERS if line.count(delimiter) >= least - 1]:
        return found
    few = {2: "one column", 3: "fewer than three columns; without ratings, take feedback as implicit"}[least]
    raise InvalidRatings(f"{path} is not a table of ratings: its first line has {few}")


def _has_header(path: Path, fields: list[str], options: ReadOptions) -> bool:
    """Tell whether the first line names the columns, by what is declared or by the name of the file.

    The line itself decides nothing, because it may be somebody's: if it does not fit, the file is refused.
    """
    columns = options.columns or {}
    if options.header is not None:
        return options.header
    if any(isinstance(place, str) for place in columns.values()):
        return True
    header = Path(path.name.lower().removesuffix(".gz")).suffix not in _WITHOUT_HEADER
    place = columns.get("rating", columns.get("count", 2))
    if isinstance(place, int) and place < len(fields):
        fits = _is_number(fields[place]) != header
    else:
        fits = not options.unrated or has_usual_names(fields) == header
    if not fits:
        told = "should name the columns" if header else "should be a rating"
        raise InvalidRatings(f"the first line of {path} {told}, and does not: say header=True or header=False")
    return header


def _may_have_quotes(path: Path) -> bool:
    """Tell whether there is a quote in a file; in a packed one there may be."""
    if is_packed(path):
        return True
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b'"') >= 0


def _spans_lines(names: list[str]) -> str:
    """Return the end of a condition in SQL that refuses a field of several lines: a quote may hide the rows in it."""
    spans = " OR ".join(f"contains({name}, chr({code}))" for name in names for code in (10, 13))
    return f"{spans} THEN error('a quoted field spans several lines: put every rating on one line') ELSE true END"


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
