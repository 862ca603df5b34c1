"""Workbooks of Excel, as Jester is published: made CSV text of, which is read by the rules of delimited text.

>>> FORMAT.recognises(Path("jester-data-1.xls")), FORMAT.recognises(Path("ratings.csv"))
(True, False)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.files import scratch_folder
from dpmf.ratings.formats import Format, Sizes, format_named
from dpmf.ratings.workbook import csv_of, is_workbook, rows_of

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.store.columns import Source
    from dpmf.ratings.table import Ratings

_BYTES_PER_RATING = 4  # at least, if cells are numbers, packed or not


@contextlib.contextmanager
def as_text(location: Location) -> Iterator[Location]:
    """Yield the ratings in a workbook as a location of CSV text, while that is there."""
    path = location.path
    if location.options.delimiter is not None:
        raise InvalidArgument(f"delimiter is for delimited text, and {path} is a workbook: leave it out")
    with scratch_folder("workbook") as scratch:
        plain = scratch / f"{path.stem}.csv"
        with plain.open("w", encoding="utf-8", newline="") as file:
            csv_of(rows_of(path), file)
        try:
            yield replace(
                location,
                paths=(plain,),
                format=format_named("csv"),
                options=replace(location.options, delimiter=",", format=None),
            )
        except InvalidRatings as error:  # which names a file that only this process can see
            raise InvalidRatings(str(error).replace(str(plain), str(path))) from None


def _read(location: Location) -> Ratings:
    with as_text(location) as text:
        return text.read()


@contextlib.contextmanager
def _stream(location: Location, memory: int, scratch: Path) -> Iterator[Source]:
    with as_text(location) as text, text.stream(memory=memory, scratch=scratch) as source:
        yield source


FORMAT = Format(
    name="excel",
    recognises=lambda path: is_workbook(path) and not path.is_dir(),
    read=_read,
    sizes=lambda location: Sizes(location.path.stat().st_size // _BYTES_PER_RATING),
    stream=_stream,
    file_names=("ratings.xlsx", "ratings.xls", "jester-data-*.xls"),
    text_options=("bad_rows", "layout", "leading"),
)
