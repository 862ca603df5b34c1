"""Writing ratings in dpmf's own form: a folder with `ratings.parquet`, `items.csv` and `dataset.json`.

>>> import tempfile
>>> from dpmf.ratings import Ratings
>>> folder = Path(tempfile.mkdtemp()) / "mine"
>>> ingest(Ratings.of(["ann"], ["Heat"], [4], scale=(1, 5)), folder)
>>> Ratings.read(folder)
Ratings(1 ratings, 1 users, 1 items, scale 1:5)
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from dpmf.files import dump_json, new_folder, write_text
from dpmf.ratings.ids import Ids
from dpmf.ratings.scan import open_database
from dpmf.ratings.table import Ratings

FILES = ("ratings.parquet", "items.csv", "dataset.json")


def ingest(ratings: Ratings, folder: Path) -> None:
    """Write ratings to a folder, in one step: the folder appears whole or not at all.

    A scale or a catalogue that was not declared is not written: reading the folder must not turn what was seen in
    the data into a public fact. `items.csv` has no types: item ids that all spell integers come back as integers.
    """
    with new_folder(folder, may_replace=FILES) as work:
        _write_ratings(ratings, work / "ratings.parquet")
        if ratings.catalogue.declared:
            write_text(work / "items.csv", _items_text(ratings))
        facts: dict[str, object] = {"name": ratings.name or folder.name}
        if ratings.scale.declared:
            facts["scale"] = [ratings.scale.lo, ratings.scale.hi]
        write_text(work / "dataset.json", dump_json(facts))


def _write_ratings(ratings: Ratings, path: Path) -> None:
    columns: dict[str, Any] = {"user": ratings.users, "item": ratings.items, "rating": ratings.values}
    if ratings.timestamps is not None:
        columns["timestamp"] = ratings.timestamps
    kept = ", ".join(("rating", "timestamp") if "timestamp" in columns else ("rating",))
    with open_database() as connection:
        connection.register("columns", columns)
        user = _decoding(connection, "user", ratings.user_ids)
        item = _decoding(connection, "item", ratings.catalogue.ids)
        target = str(path).replace("'", "''")
        connection.execute(
            f"COPY (SELECT {user} AS user, {item} AS item, {kept} FROM columns) "
            f"TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
        )


def _decoding(connection: Any, role: str, ids: Ids) -> str:
    """Register the ids as one list value, and return the SQL that turns a position into its id."""
    connection.register(f"{role}_ids", {"id": ids.array})
    connection.execute(f"CREATE TEMP TABLE {role}_list AS SELECT list(id) AS ids FROM {role}_ids")
    return f"list_extract((SELECT ids FROM {role}_list), {role} + 1)"


def _items_text(ratings: Ratings) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("item", "title", "genres"))
    writer.writerows(zip(ratings.catalogue.ids, ratings.catalogue.titles, ratings.catalogue.genres, strict=True))
    return text.getvalue()
