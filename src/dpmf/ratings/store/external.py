"""Ratings that do not fit in memory: sorted by DuckDB on the disk, and read back piece by piece.

A piece holds all ratings of some users, in the order of a hash of their ids, and is an ordinary `Ratings`: checked,
merged and sorted like any other.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "ratings.csv"
>>> _ = path.write_text("user,item,rating\\nann,1,5\\nbob,1,4\\nann,2,3\\n")
>>> with external_ratings(path, scratch=Path(tempfile.mkdtemp()), memory=1 << 30, scale=(1, 5)) as ratings:
...     len(ratings.user_ids), sum(len(piece) for piece in ratings.pieces())
(2, 3)
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.ratings.assembly import assemble
from dpmf.ratings.formats.collect import coding, refuse_missing_ids, seconds
from dpmf.ratings.formats.columns import Columns, whole_times
from dpmf.ratings.formats.scan import Source
from dpmf.ratings.ids import Ids
from dpmf.ratings.items import Items
from dpmf.ratings.location import located
from dpmf.ratings.table import Ratings, Scale

logger = logging.getLogger(__name__)
_BYTES_PER_RATING = 64  # of a piece, while it is fetched and sorted
_SMALLEST_LIMIT = 125 << 20  # what DuckDB needs to sort at all


@dataclass(frozen=True, eq=False)
class ExternalRatings:
    """Ratings sorted on disk.

    Attributes:
        user_ids, catalogue, scale, name: as in `Ratings`.
        n_rows: how many ratings there are, duplicates included.
    """

    user_ids: Ids
    catalogue: Items
    scale: Scale
    name: str
    n_rows: int
    _connection: Any
    _rows_per_piece: int
    _duplicates: str
    _with_time: bool
    _partly_timed: bool

    def pieces(self) -> Iterator[Ratings]:
        """Yield all ratings, some users at a time, in the order of `user_ids.hash_order`."""
        n_users = len(self.user_ids)
        step = max(1, n_users * self._rows_per_piece // max(self.n_rows, 1))
        time = ", timestamp" if self._with_time else ""
        for first in range(0, n_users, step):
            last = min(first + step, n_users)
            table = self._connection.execute(
                f"SELECT place, item, rating{time} FROM sorted WHERE place >= $first AND place < $last",
                {"first": first, "last": last},
            ).fetchnumpy()
            yield self._piece(first, last, {name: np.ma.getdata(column) for name, column in table.items()})

    def _piece(self, first: int, last: int, table: dict[str, Any]) -> Ratings:
        user_ids = Ids(self.user_ids.array[self.user_ids.hash_order[first:last]])
        if not len(table["rating"]):
            nothing = np.zeros(last - first + 1, np.int64)
            values = np.zeros(0, np.float32)
            times = np.zeros(0, np.int64) if self._with_time else None
            return Ratings(
                nothing, np.zeros(0, np.int32), values, times, user_ids, self.catalogue, self.scale, self.name
            )
        columns = Columns(
            user_ids,
            (table["place"] - first).astype(np.int32),
            self.catalogue.ids,
            table["item"].astype(np.int32),
            table["rating"].astype(np.float32),
            whole_times(table["timestamp"], first_row=1)[0] if self._with_time else None,
            partly_timed=self._partly_timed,
        )
        return assemble(
            columns, scale=self.scale, catalogue=self.catalogue, duplicates=self._duplicates, name=self.name, quiet=True
        )


@contextlib.contextmanager
def external_ratings(
    source: str | Path,
    *,
    scratch: Path,
    memory: int,
    scale: Scale | tuple[float, float] | None = None,
    items: Items | str | Path | None = None,
    duplicates: str = "last",
    missing: float | None = None,
    **layout: Any,
) -> Iterator[ExternalRatings]:
    """Sort the ratings of a file on the disk, within a memory limit.

    Args:
        source: a Parquet or delimited text file, a folder with one, or a catalogue name.
        scratch: a folder for the sorted ratings.
        memory: bytes that may be used, roughly.
        scale, items, duplicates, missing, layout: as in `dpmf.ratings.reader.read`.
    """
    found = located(source, scale=scale, items=items, missing=missing, **layout)
    limit = f"{max(memory * 2 // 5, _SMALLEST_LIMIT)}B"
    with found.open(limit) as opened:
        database = str(scratch / "sorted.duckdb").replace("'", "''")
        opened.connection.execute(f"ATTACH '{database}' AS store")
        opened.connection.execute("SET preserve_insertion_order = true")
        yield _sorted(opened, found.name, found.scale, found.catalogue(), duplicates, found.missing, memory)


def _sorted(
    source: Source,
    name: str,
    scale: Scale | None,
    catalogue: Items | None,
    duplicates: str,
    missing: float | None,
    memory: int,
) -> ExternalRatings:
    kinds = source.kinds()
    for role in ("user", "item"):
        refuse_missing_ids(source, role)
    users, user = _ids(source, "user", kinds["user"])
    seen_items, item = _ids(source, "item", kinds["item"])
    if catalogue is None:
        catalogue = Items.of(seen_items, declared=False)
    if scale is None:
        raise InvalidArgument("streaming needs to know the rating scale beforehand: give it, such as --scale 1:5")
    _check_values(source, scale, missing)
    places = np.empty(len(users), np.int64)
    places[users.hash_order] = np.arange(len(users))
    _register(source, "places", _keys(users, user), "place", places)
    positions = catalogue.ids.encode(seen_items.array).astype(np.int64)
    _register(source, "positions", _keys(seen_items, item)[positions >= 0], "position", positions[positions >= 0])
    moment = seconds(kinds["timestamp"]) if "timestamp" in kinds else None
    partly = False
    if moment is not None and source.first("SELECT 1", f"WHERE {moment} IS NULL OR NOT isfinite({moment}) LIMIT 1"):
        logger.warning("the timestamps are left out: not every rating has one")
        partly = source.first("SELECT 1", f"WHERE isfinite({moment}) LIMIT 1") is not None
        moment = None
    time = "" if moment is None else f", {moment} AS timestamp"
    plain = (
        f"SELECT {user} AS user_key, {item} AS item_key, TRY_CAST(rating AS FLOAT) AS rating, "
        f"{source.row} AS row{time} FROM {source.relation}"
    )
    chosen = "place, position AS item, rating" + (", timestamp" if time else "")
    source.connection.execute(
        f"CREATE TABLE store.sorted AS SELECT {chosen} FROM ({plain}) "
        "JOIN places ON user_key = places.key JOIN positions ON item_key = positions.key "
        f"WHERE NOT {_absent('rating', missing)} ORDER BY place, position, row",
        dict(source.parameters),
    )
    n_rows = source.connection.execute("SELECT count(*) FROM store.sorted").fetchall()[0][0]
    if not n_rows:
        raise InvalidRatings("there are no ratings: the source is empty, or nothing in it is in the catalogue")
    if (positions < 0).any():
        listed = "SELECT count(*) FROM (" + plain + ") JOIN positions ON item_key = positions.key"
        n_all = source.first("SELECT count(*)")[0]
        left_out = n_all - source.connection.execute(listed, dict(source.parameters)).fetchall()[0][0]
        logger.warning("%d ratings of items outside the catalogue are left out", left_out)
    source.connection.execute("USE store")  # last, because codes of text ids are not known there
    rows = max(memory // 5 // _BYTES_PER_RATING, 1000)
    return ExternalRatings(
        users, catalogue, scale, name, n_rows, source.connection, rows, duplicates, bool(time), partly
    )


def _ids(source: Source, role: str, kind: str) -> tuple[Ids, str]:
    """Return the distinct ids of a role, ascending, and the SQL of the key that stands for one."""
    ids, key = coding(source, role, kind)
    if ids is not None:
        return ids, key
    distinct = source.query(f"SELECT DISTINCT {key} AS id", "ORDER BY id").fetchnumpy()["id"]
    return Ids(np.ma.getdata(distinct)), key


def _keys(ids: Ids, key: str) -> Any:
    """Return what the SQL key is for each id: the id itself, or its position if ids are coded."""
    return np.arange(len(ids)) if key.startswith("enum_code") else ids.array


def _register(source: Source, table: str, keys: Any, name: str, numbers: Any) -> None:
    source.connection.register(f"{table}_given", {"key": keys, name: numbers})
    source.connection.execute(f"CREATE TEMP TABLE {table} AS SELECT key, {name} FROM {table}_given")


def _absent(value: str, missing: float | None) -> str:
    """Return the SQL that tells whether a value means "no rating"."""
    if missing is None:
        return "false"
    return (
        f"({value} IS NULL OR isnan({value}))"
        if np.isnan(missing)
        else f"({value} = CAST({float(missing)!r} AS FLOAT))"
    )


def _check_values(source: Source, scale: Scale, missing: float | None) -> None:
    """Refuse values that are off the scale or no ratings at all, with the number of the first row that has one."""
    value = "TRY_CAST(rating AS FLOAT)"
    off = f"{value} IS NULL OR NOT isfinite({value}) OR {value} < {scale.lo!r} OR {value} > {scale.hi!r}"
    bad = f"WHERE NOT coalesce({_absent(value, missing)}, false) AND ({off})"
    row = source.first(f"SELECT min({source.row})", bad)[0]
    if row is not None:
        wrong = f"missing, infinite, not a number or off the scale {scale}"
        raise InvalidRatings(f"the rating in row {row + source.first_row} is {wrong}: mend or remove it")
