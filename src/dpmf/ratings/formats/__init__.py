"""The formats that ratings come in: one module each, and the registry that lists them.

To add a format, write a module with a `FORMAT` and add its line to `_FILE_FORMATS`.

>>> FORMAT_NAMES
('csv', 'excel', 'json', 'matlab', 'netflix', 'parquet', 'yahoo')
>>> format_named("parquet").file_names
('ratings.parquet',)
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.store.columns import Source
    from dpmf.ratings.table import Ratings

# Names and modules. The order is that in which a folder is searched for files.
_FILE_FORMATS = {
    "parquet": "parquet",
    "matlab": "matlab",
    "csv": "delimited",
    "excel": "excel",
    "json": "json_lines",
    "yahoo": "yahoo",
    "netflix": "netflix",
}
_OWN_FORMATS = {"store": "block_store", "synthetic": "built_in", "zip": "archived"}  # never named in `format=`

FALLBACK = "csv"
"""What a file is taken for if it bears the mark of no other format."""

FORMAT_NAMES = tuple(sorted(_FILE_FORMATS))
"""What `format=` and `--format` accept. Modules are imported when a format is first used."""


class Sizes(NamedTuple):
    """How large a set of ratings is; 0 for what is not known before it is read.

    Attributes:
        ratings: their number, or an upper estimate.
        users, items: their numbers.
    """

    ratings: int
    users: int = 0
    items: int = 0


@dataclass(frozen=True)
class Format:
    """One format: how it is recognised, and how it is read.

    Attributes:
        name: its key in the registry.
        recognises: whether a file, or a folder, is in this format.
        read: reads the ratings at a location into memory. Most formats make `Columns` and leave checks, duplicates and
            the catalogue to `Location.assemble`.
        sizes: estimates the sizes without reading the ratings; None if they are not known beforehand.
        stream: yields the ratings in pieces, within `memory` bytes and with `scratch` as a folder for temporary files;
            None if they can only be read into memory.
        file_names: glob patterns of its files in a folder, in the order in which they are looked for.
        text_options: which of `ratings.options.TEXT_OPTIONS` mean something in it.
    """

    name: str
    recognises: Callable[[Path], bool]
    read: Callable[[Location], Ratings]
    sizes: Callable[[Location], Sizes] | None = None
    stream: Callable[[Location, int, Path], AbstractContextManager[Source]] | None = None
    file_names: tuple[str, ...] = ()
    text_options: tuple[str, ...] = ()


def format_named(name: str) -> Format:
    """Return the format of this name."""
    module = (_FILE_FORMATS | _OWN_FORMATS)[name]
    found: Format = importlib.import_module(f"{__name__}.{module}").FORMAT
    return found


def file_formats() -> Iterator[Format]:
    """Yield the formats of files, in the order in which a folder is searched for them."""
    return map(format_named, _FILE_FORMATS)


def recognise(path: Path) -> Format | None:
    """Return the format of which a file, or a folder, bears the mark, or None.

    Raises:
        InvalidRatings: the file is empty, or cannot be read.
    """
    return next((one for one in map(format_named, _OWN_FORMATS | _FILE_FORMATS) if one.recognises(path)), None)
