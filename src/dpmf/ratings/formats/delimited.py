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
import glob
import mmap
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.errors import InvalidArgument
from dpmf.ratings.formats import Format
from dpmf.ratings.formats.database import open_file
from dpmf.ratings.formats.fields import (
    check_delimiters,
    check_header,
    delimiters_in,
    has_header_by_name,
    is_number,
    split_fields,
)
from dpmf.ratings.formats.lines import (
    TextLayout,
    check_line_options,
    is_read_by_line,
    long_judge,
    names_of,
    open_rewritten,
    rewritten,
)
from dpmf.ratings.formats.relation import Relation, read_scan, select_roles
from dpmf.ratings.formats.roles import check_unnamed, find_columns, has_usual_names
from dpmf.ratings.formats.text import estimate_sizes, first_line, is_packed
from dpmf.ratings.formats.wide import scan_wide, with_columns_as_items
from dpmf.ratings.options import TEXT_OPTIONS
from dpmf.ratings.store.external import stream_scan

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.options import ReadOptions
    from dpmf.ratings.store.columns import Source
    from dpmf.ratings.table import Ratings


@contextlib.contextmanager
def scan(location: Location, memory: str | None = None) -> Iterator[Relation]:
    """Open a delimited text file; a delimiter and columns that are not given are found in its first line."""
    path, options = location.path, location.options
    if options.layout == "wide":
        with scan_wide(location, memory) as relation:
            yield relation
        return
    first = first_line(path, options.encoding or "utf-8")
    delimiters = [options.delimiter] if options.delimiter else delimiters_in(path, first, 2 if options.unrated else 3)
    fields = split_fields(path, first, delimiters[0], options.escape, options.quotes)
    header = _has_header(path, fields, options)
    check_delimiters(path, delimiters, header=header)
    places = find_columns(path, fields if header else None, len(fields), options.columns, unrated=options.unrated)
    if not is_read_by_line(options):
        with _scan_plain(location, memory, delimiters[0], places, len(fields), header=header) as relation:
            yield relation
        return
    count = _declared_count(path, places, len(fields), options, header=header)
    layout = TextLayout(
        *(delimiters[0], count, options.encoding or "utf-8", options.escape),
        exact=count == len(fields),
        quotes=options.quotes is not False,
    )
    skip = options.bad_rows == "skip"
    with rewritten(path, layout, long_judge(places, options), header=header, skip=skip) as plain:
        written = {role: place for place, role in enumerate(places)}
        chosen, counts = select_roles(written, names_of(len(places)), nothing="'1'")
        with open_rewritten(plain, memory, chosen, len(places)) as connection:
            yield Relation(connection, "staged", {}, typed=False, row="rowid", first_row=1 + int(header), counts=counts)


@contextlib.contextmanager
def _scan_plain(
    location: Location, memory: str | None, delimiter: str, places: Mapping[str, int], count: int, *, header: bool
) -> Iterator[Relation]:
    path, names = location.path, names_of(count)
    typed = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    quote, one_line = ('"', f"WHERE CASE WHEN {_spans_lines(names)}") if _may_have_quotes(location) else ("", "")
    chosen, counts = select_roles(places, names, nothing="'1'")
    with open_file(path, memory) as connection:
        connection.execute(
            f"CREATE TEMP TABLE staged AS SELECT {chosen} FROM read_csv($path, delim=$delimiter, header=false, "
            "skip=$skip, auto_detect=false, quote=$quote, escape=$quote, compression=$compression, "
            f"columns={{{typed}}}) {one_line}",
            {
                "path": glob.escape(str(path)),
                "delimiter": delimiter,
                "quote": quote,
                "skip": int(header),
                "compression": "gzip" if is_packed(path) else "none",
            },
        )
        yield Relation(connection, "staged", {}, typed=False, row="rowid", first_row=2 if header else 1, counts=counts)


def _declared_count(path: Path, places: Mapping[str, int], count: int, options: ReadOptions, *, header: bool) -> int:
    """Return how many fields a line has, or at least needs: not as somebody's does, where bad lines are skipped."""
    if header or options.bad_rows != "skip":
        return count
    if options.delimiter is None or not options.columns:
        raise InvalidArgument(
            f"{path} has no header, so that its first line may be a bad one: with bad_rows='skip', name "
            "columns={'user': …}, … and delimiter=…"
        )
    return max(places.values()) + 1


def _has_header(path: Path, fields: list[str], options: ReadOptions) -> bool:
    """Tell whether the first line names the columns, by what is declared or by the name of the file.

    The line itself decides nothing, because it may be somebody's: if it does not fit, the file is refused.
    """
    columns = options.columns or {}
    if options.header is not None:
        return options.header
    if any(isinstance(place, str) for place in columns.values()):
        return True
    header = has_header_by_name(path)
    place = columns.get("rating", columns.get("count", 2))
    if isinstance(place, int) and place < len(fields):
        fits = is_number(fields[place]) != header
    else:
        fits = not options.unrated or has_usual_names(fields) == header
    if not fits and not columns:
        check_unnamed(path, len(fields))
    check_header(path, header=header, fits=fits)
    return header


def _may_have_quotes(location: Location) -> bool:
    """Tell whether there is a quote around a field of a file, which there may be in a packed one."""
    path = location.path
    if location.options.quotes is False:
        return False
    if is_packed(path):
        return True
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b'"') >= 0


def _spans_lines(names: list[str]) -> str:
    """Return the end of a condition in SQL that refuses a field of several lines: a quote may hide the rows in it."""
    spans = " OR ".join(f"contains({name}, chr({code}))" for name in names for code in (10, 13))
    return f"{spans} THEN error('a quoted field spans several lines: put every rating on one line') ELSE true END"


def _read(location: Location) -> Ratings:
    check_line_options(location.options)
    return read_scan(scan, with_columns_as_items(location))


def _stream(location: Location, memory: int, scratch: Path) -> AbstractContextManager[Source]:
    check_line_options(location.options)
    return stream_scan(scan, with_columns_as_items(location), memory, scratch)


FORMAT = Format(
    name="csv",
    recognises=lambda path: False,  # any text may be: it is what files without another mark are taken for
    read=_read,
    sizes=estimate_sizes,
    stream=_stream,
    file_names=(
        *("ratings.csv", "ratings.dat", "u.data", "BX-Book-Ratings.csv", "user_artists.dat"),
        *("user_ratedmovies-timestamps.dat", "user_ratedmovies.dat", "jester_ratings.dat"),
        *("ydata-ymusic-rating-study-*-train.txt", "usersha1-artmbid-artname-plays.tsv"),
        "userid-timestamp-artid-artname-traid-traname.tsv",
    ),
    text_options=TEXT_OPTIONS,
)
