"""Parquet files, whose columns have types: a text stays a text.

>>> FORMAT.recognises(Path("ratings.pq")), FORMAT.recognises(Path("ratings.csv"))
(True, False)
"""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.ratings.formats import Format, Sizes
from dpmf.ratings.formats.database import open_file
from dpmf.ratings.formats.relation import Relation, read_scan, select_roles
from dpmf.ratings.formats.roles import find_columns
from dpmf.ratings.store.external import stream_scan

if TYPE_CHECKING:
    from dpmf.ratings.location import Location


@contextlib.contextmanager
def scan(location: Location, memory: str | None = None) -> Iterator[Relation]:
    """Open a Parquet file; columns that are not given are found by their usual names."""
    path = location.path
    with open_file(path, memory) as connection:
        parameters = {"path": glob.escape(str(path))}
        relation = Relation(
            connection, "read_parquet($path)", parameters, typed=True, row="file_row_number", first_row=1
        )
        names = list(relation.kinds())
        options = location.options
        places = find_columns(path, names, len(names), options.columns, unrated=options.unrated)
        quoted = ['"{}"'.format(name.replace('"', '""')) for name in names]
        chosen, counts = select_roles(places, quoted, nothing="1")
        numbered = "read_parquet($path, file_row_number=true)"
        yield replace(relation, relation=f"(SELECT {chosen}, file_row_number FROM {numbered})", counts=counts)


def _recognises(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq") and not path.is_dir()


def _sizes(location: Location) -> Sizes:
    with scan(location) as relation:
        return Sizes(int(relation.first("SELECT count(*)")[0]))


FORMAT = Format(
    name="parquet",
    recognises=_recognises,
    read=partial(read_scan, scan),
    sizes=_sizes,
    stream=partial(stream_scan, scan),
    file_names=("ratings.parquet",),
)
