"""One door for all sources: a catalogue name, a file of any known layout, or a folder.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "u.data"
>>> _ = path.write_text("196\\t242\\t3\\t881250949\\n186\\t302\\t3\\t891717742\\n")
>>> read(path, scale=(1, 5))
Ratings(2 ratings, 2 users, 2 items, scale 1:5)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmf.errors import InvalidArgument
from dpmf.ratings.assembly import assemble
from dpmf.ratings.formats.collect import collect
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.formats.grouped import read_grouped
from dpmf.ratings.items import Items
from dpmf.ratings.location import Located, located
from dpmf.ratings.store.columns import RatingsOnDisk, is_store
from dpmf.ratings.table import Ratings, Scale


def read(
    source: str | Path,
    *,
    scale: Scale | tuple[float, float] | None = None,
    items: Items | str | Path | None = None,
    duplicates: str = "last",
    missing: float | None = None,
    memory: str | None = None,
    format: str | None = None,  # noqa: A002  (the word users know)
    delimiter: str | None = None,
    header: bool | None = None,
    columns: Mapping[str, str | int] | None = None,
) -> Ratings:
    """Read ratings.

    Args:
        source: a catalogue name such as "movielens-1m" or "synthetic"; a file (CSV, TSV, Parquet, `.dat`, `u.data`,
            Netflix Prize or Yahoo Music layout); or a folder that holds one, perhaps with `items.csv` (the public
            catalogue) and `dataset.json` (public facts: name, scale); or a folder that `dpmf data ingest` wrote.
        scale: lowest and highest possible rating, if the source does not declare them.
        items: the public catalogue or its file, if the source does not come with one.
        duplicates, missing: see `Ratings.of`.
        memory: how much DuckDB may use before it spills to the disk, such as "2GB".
        format: "csv" for any delimited text, "parquet", "netflix" or "yahoo"; found by looking if not given.
        delimiter, header, columns: see `dpmf.ratings.formats.scan.text_source`.
    """
    if str(source) == "synthetic" and not Path(source).exists():
        if any(option is not None for option in (missing, format, delimiter, header, columns)):
            raise InvalidArgument("synthetic ratings are made, not read: leave out options about files")
        return _synthetic(scale, items)
    if is_store(source):
        refuse_options({"missing": missing, "format": format, "delimiter": delimiter, "header": header,
                        "columns": columns})  # fmt: skip
        return _from_store(RatingsOnDisk.open(Path(source)), scale, items)
    found = located(
        source, scale=scale, items=items, missing=missing, format=format, delimiter=delimiter, header=header,
        columns=columns,
    )  # fmt: skip
    return assemble(
        _columns(found, memory),
        scale=found.scale,
        catalogue=found.catalogue(),
        duplicates=duplicates,
        missing=found.missing,
        name=found.name,
    )


def refuse_options(options: Mapping[str, Any]) -> None:
    """Refuse what can no longer be said about ratings that have been ingested; "duplicates" says nothing then."""
    given = [name for name, value in options.items() if value is not None and name != "duplicates"]
    if given:
        raise InvalidArgument(f"{given[0]} cannot be given for ratings that are ingested: ingest them again with it")


def _from_store(
    store: RatingsOnDisk, scale: Scale | tuple[float, float] | None, items: Items | str | Path | None
) -> Ratings:
    ratings = store.load()
    if scale is None and items is None:
        return ratings
    columns = Columns(
        ratings.user_ids, ratings.users, ratings.catalogue.ids, ratings.items, ratings.values, ratings.timestamps
    )
    catalogue = items if isinstance(items, Items) or items is None else Items.read(items)
    return assemble(
        columns, scale=ratings.scale if scale is None else scale, catalogue=catalogue or ratings.catalogue,
        name=ratings.name,
    )  # fmt: skip


def _columns(found: Located, memory: str | None) -> Columns:
    if found.is_grouped:
        return read_grouped(found.paths, found.format)
    with found.open(memory) as source:
        return collect(source)


def _synthetic(scale: Scale | tuple[float, float] | None, items: Items | str | Path | None) -> Ratings:
    """Return the built-in set, on another scale or for another catalogue if that is asked for."""
    from dpmf.ratings.synthetic import make

    ratings = make()
    if scale is None and items is None:
        return ratings
    catalogue = items if isinstance(items, Items) or items is None else Items.read(items)
    users, names = ratings.user_ids.array[ratings.users], ratings.catalogue.ids.array[ratings.items]
    columns = Columns.of_raw(users, names, ratings.values, None)
    return assemble(columns, scale=scale or ratings.scale, catalogue=catalogue or ratings.catalogue, name=ratings.name)
