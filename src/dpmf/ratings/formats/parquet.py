"""Parquet files, whose columns have types: a text stays a text.

>>> FORMAT.recognises(Path("ratings.pq")), FORMAT.recognises(Path("ratings.csv"))
(True, False)
"""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmf.ratings.formats import Format, Sizes
from dpmf.ratings.formats.database import open_file
from dpmf.ratings.formats.relation import Relation, read_scan, select_roles
from dpmf.ratings.formats.roles import find_columns
from dpmf.ratings.store.external import stream_scan

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.options import ReadOptions


@contextlib.contextmanager
def scan(location: Location, memory: str | None = None) -> Iterator[Relation]:
    """Open Parquet files; columns that are not given are found by their usual names."""
    with scan_files(location.paths, location.options, memory) as relation:
        yield relation


@contextlib.contextmanager
def scan_files(
    paths: Sequence[Path], options: ReadOptions, memory: str | None = None, starts: Sequence[int] | None = None
) -> Iterator[Relation]:
    """Open Parquet files as one, row after row in the order of the files.

    Args:
        paths: of the files.
        options: how to read them.
        memory: how much DuckDB may take.
        starts: the number of the first row of each file; rows are counted from 0 unless given.
    """
    several = len(paths) > 1 or starts is not None
    with open_file(paths[0].parent if several else paths[0], memory) as connection:
        parameters: dict[str, Any] = {"path": _escaped(paths)}
        relation = Relation(connection, "read_parquet($path)", parameters, typed=True, row="row", first_row=1)
        names = list(relation.kinds())
        places = find_columns(paths[0], names, len(names), options.columns, unrated=options.unrated)
        quoted = ['"{}"'.format(name.replace('"', '""')) for name in names]
        chosen, counts = select_roles(places, quoted, nothing="1")
        row, numbered = "file_row_number", "read_parquet($path, file_row_number=true)"
        if several:
            parameters["starts"] = rows_before(paths) if starts is None else list(starts)
            connection.register("files", {"name": np.array([str(path) for path in paths], object)})
            connection.execute("CREATE TYPE file_code AS ENUM (SELECT name FROM files)")
            numbered = "read_parquet($path, file_row_number=true, filename=true)"
            row = "$starts[enum_code(CAST(filename AS file_code)) + 1] + file_row_number"
        yield replace(relation, relation=f"(SELECT {chosen}, {row} AS row FROM {numbered})", counts=counts)


def rows_before(paths: Sequence[Path]) -> list[int]:
    """Return how many rows come before those of each Parquet file."""
    with open_file(paths[0].parent, None) as connection:
        sizes = connection.execute("SELECT num_rows FROM parquet_file_metadata($path)", {"path": _escaped(paths)})
        counts = [int(count) for (count,) in sizes.fetchall()]
    return [0, *accumulate(counts[:-1])]


def _escaped(paths: Sequence[Path]) -> list[str]:
    return [glob.escape(str(path)) for path in paths]


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
