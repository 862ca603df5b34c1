"""Ratings that do not fit in memory: sorted by DuckDB on the disk, and read back piece by piece.

A piece holds all ratings of some users, in the order of a hash of their ids, and is an ordinary `Ratings`: checked,
merged and sorted like any other.

>>> import tempfile
>>> from dpmf.ratings.location import locate
>>> from dpmf.ratings.options import ReadOptions
>>> path = Path(tempfile.mkdtemp()) / "ratings.csv"
>>> _ = path.write_text("user,item,rating\\nann,1,5\\nbob,1,4\\nann,2,3\\n")
>>> location = locate(path, ReadOptions(scale=Scale(1, 5)))
>>> with location.stream(memory=1 << 30, scratch=Path(tempfile.mkdtemp())) as ratings:
...     len(ratings.user_ids), sum(len(piece) for piece in ratings.pieces())
(2, 3)
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.ratings.assembly import assemble
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.formats.relation import (
    RATING,
    MomentSql,
    Relation,
    Scan,
    check_ids,
    encode_ids,
    fetched_times,
    moment_sql,
)
from dpmf.ratings.ids import Ids
from dpmf.ratings.items import Items
from dpmf.ratings.table import Ratings, Scale
from dpmf.ratings.times import UNKNOWN, check_all_or_none

if TYPE_CHECKING:
    from dpmf.ratings.location import Location

logger = logging.getLogger(__name__)
BYTES_PER_RATING = 64  # of a piece, while it is fetched and sorted
NO_RATINGS = "there are no ratings: the source is empty, or nothing in it is in the catalogue"
SMALLEST_LIMIT = 125 << 20  # what DuckDB needs to sort at all


@dataclass(frozen=True, eq=False)
class ExternalRatings:
    """Ratings sorted on disk.

    Attributes:
        user_ids, catalogue, scale, name, users_about: as in `Ratings`.
        n_rows: how many ratings there are, duplicates included.
    """

    user_ids: Ids
    catalogue: Items
    scale: Scale
    name: str
    n_rows: int
    _connection: Any
    _rows_per_piece: int
    _duplicates: str | None
    _with_time: bool
    users_about: int | None = None

    def pieces(self) -> Iterator[Ratings]:
        """Yield all ratings, some users at a time, in the order of `user_ids.hash_order`."""
        return self.between(0, len(self.user_ids))

    def between(self, begin: int, end: int) -> Iterator[Ratings]:
        """Yield the ratings of users begin..end-1 in that order, which are all that were sorted."""
        step = max(1, (end - begin) * self._rows_per_piece // max(self.n_rows, 1))
        time = ", whole, fraction" if self._with_time else ""
        for first in range(begin, end, step):
            last = min(first + step, end)
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
            fetched_times(table) if self._with_time else None,
        )
        return assemble(
            columns, scale=self.scale, items=self.catalogue, duplicates=self._duplicates, name=self.name, quiet=True
        )


@contextlib.contextmanager
def stream_scan(scan: Scan, location: Location, memory: int, scratch: Path) -> Iterator[ExternalRatings]:
    """Sort the ratings at a location on the disk, within a memory limit, and yield them as a source of pieces.

    Args:
        scan: opens the ratings.
        location: where they are, and what is declared about them.
        memory: bytes that may be used, roughly.
        scratch: a folder for the sorted ratings.
    """
    limit = f"{max(memory * 2 // 5, SMALLEST_LIMIT)}B"
    with scan(location, limit) as relation:
        database = str(scratch / "sorted.duckdb").replace("'", "''")
        relation.connection.execute(f"ATTACH '{database}' AS store")
        relation.connection.execute("SET preserve_insertion_order = true")
        yield _sort(relation, location, memory)


def _sort(relation: Relation, location: Location, memory: int) -> ExternalRatings:
    scale, catalogue, missing = location.options.scale, location.read_items(), location.options.missing
    if relation.counts:
        scale = Scale.of_counts(scale)
    kinds = relation.kinds()
    for role in ("user", "item"):
        check_ids(relation, role)
    user, item = (distinct_ids(relation, role, kinds[role]) for role in ("user", "item"))
    users, seen_items = user.ids, item.ids
    if catalogue is None:
        catalogue = Items.of(seen_items, declared=False)
    if scale is None:
        known = f"WHERE isfinite({RATING}) AND NOT {_absent(RATING, missing)}"
        lo, hi = relation.first(f"SELECT coalesce(min({RATING}), 1), coalesce(max({RATING}), 5)", known)
        raise InvalidArgument(
            f"streaming needs to know the rating scale beforehand: if {lo:g} and {hi:g} are the lowest and the highest "
            f"rating that there can be, give scale=({lo:g}, {hi:g})"
        )
    check_values(relation, scale, missing)
    moment = moment_of(relation, kinds.get("timestamp"))
    placed = place_rows(relation, user, item, users, catalogue, moment, missing)
    relation.connection.execute(
        f"CREATE TABLE store.sorted AS SELECT * EXCLUDE (row) FROM ({placed.sql}) ORDER BY place, item, row",
        dict(relation.parameters),
    )
    n_rows = relation.connection.execute("SELECT count(*) FROM store.sorted").fetchall()[0][0]
    if not n_rows:
        raise InvalidRatings(NO_RATINGS)
    warn_of(placed.left_out)
    relation.connection.execute("USE store")  # last, because codes of text ids are not known there
    return ExternalRatings(
        user_ids=users,
        catalogue=catalogue,
        scale=scale,
        name=location.name,
        n_rows=n_rows,
        _connection=relation.connection,
        _rows_per_piece=max(memory // 5 // BYTES_PER_RATING, 1000),
        _duplicates=location.options.duplicates,
        _with_time=moment is not None,
        users_about=location.options.users_about,
    )


class Placed(NamedTuple):
    """Rows with users and items by number.

    Attributes:
        sql: selects place, item, rating, row, and whole and fraction if there are times.
        left_out: how many rows are of items outside the catalogue.
    """

    sql: str
    left_out: int


def place_rows(
    relation: Relation,
    user: Distinct,
    item: Distinct,
    users: Ids,
    catalogue: Items,
    moment: MomentSql | None,
    missing: float | None,
) -> Placed:
    """Return the rows of a relation with the place of each user in the order of the hash, and items by position.

    Args:
        relation: the rows.
        user, item: the distinct ids in them.
        users: all users, perhaps more.
        catalogue: of items.
        moment: the SQL of the time.
        missing: the value that means "no rating"; such rows are left out.
    """
    places = np.empty(len(users), np.int64)
    places[users.hash_order] = np.arange(len(users))
    _register(relation, "places", user.keys, "place", places[users.encode(user.ids.array)])
    positions = catalogue.ids.encode(item.ids.array).astype(np.int64)
    _register(relation, "positions", item.keys[positions >= 0], "position", positions[positions >= 0])
    time = "" if moment is None else f", {moment.whole} AS whole, {moment.fraction} AS fraction"
    rows = (
        f"SELECT {user.sql} AS user_key, {item.sql} AS item_key, {RATING} AS rating, "
        f"{relation.row} AS row{time} FROM {relation.relation}"
    )
    chosen = "place, position AS item, rating, row" + (", whole, fraction" if time else "")
    sql = (
        f"SELECT {chosen} FROM ({rows}) JOIN places ON user_key = places.key "
        f"JOIN positions ON item_key = positions.key WHERE NOT {_absent('rating', missing)}"
    )
    left_out = 0
    if (positions < 0).any():
        listed = f"SELECT count(*) FROM ({rows}) JOIN positions ON item_key = positions.key"
        n_all = relation.first("SELECT count(*)")[0]
        left_out = n_all - relation.connection.execute(listed, dict(relation.parameters)).fetchall()[0][0]
    return Placed(sql, left_out)


def warn_of(left_out: int) -> None:
    """Say how many ratings are of items outside the catalogue."""
    if left_out:
        logger.warning("%d ratings of items outside the catalogue are left out", left_out)


def moment_of(relation: Relation, kind: str | None) -> MomentSql | None:
    """Return the SQL of the time, None if no rating has one."""
    if kind is None:
        return None
    moment = moment_sql(kind)
    nothing, row = f"{moment.whole} IS NULL", relation.row
    wrong, absent, some = relation.first(
        f"SELECT min({row}) FILTER ({nothing} AND NOT ({moment.missing})), min({row}) FILTER ({nothing}), "
        f"count({moment.whole}) > 0"
    )
    if wrong is None and some:
        unknown = f"CAST('{UNKNOWN}' AS BIGINT)"
        return MomentSql(f"coalesce({moment.whole}, {unknown})", f"coalesce({moment.fraction}, 0)")
    check_all_or_none((wrong if some else absent) + relation.first_row, some=some)
    return None


class Distinct(NamedTuple):
    """The distinct ids of a column, ascending; the SQL of the key that stands for one, and the keys of all."""

    ids: Ids
    sql: str
    keys: NDArray[Any]


def distinct_ids(relation: Relation, role: str, kind: str) -> Distinct:
    """Return the distinct ids of a column."""
    encoding = encode_ids(relation, role, kind)
    if encoding.ids is not None:
        return Distinct(encoding.ids, encoding.sql, np.arange(len(encoding.ids)))
    distinct = relation.query(f"SELECT DISTINCT {encoding.sql} AS id", "ORDER BY id").fetchnumpy()["id"]
    ids, _ = encoding.encoded(role, distinct)
    return Distinct(ids, encoding.sql, np.ma.getdata(distinct))


def _register(relation: Relation, table: str, keys: Any, name: str, numbers: Any) -> None:
    relation.connection.register(f"{table}_given", {"key": keys, name: numbers})
    relation.connection.execute(f"CREATE TEMP TABLE {table} AS SELECT key, {name} FROM {table}_given")


def _absent(value: str, missing: float | None) -> str:
    """Return the SQL that tells whether a value means "no rating"."""
    if missing is None:
        return "false"
    return (
        f"({value} IS NULL OR isnan({value}))"
        if np.isnan(missing)
        else f"({value} = CAST({float(missing)!r} AS FLOAT))"
    )


def check_values(relation: Relation, scale: Scale, missing: float | None) -> None:
    """Refuse values that are off the scale or no ratings at all, with the number of the first row that has one."""
    off = f"{RATING} IS NULL OR NOT isfinite({RATING})"
    if scale.counts:
        off += f" OR {RATING} <= 0"
    if scale != Scale.of_counts():
        off += f" OR {RATING} < {scale.lo!r} OR {RATING} > {scale.hi!r}"
    bad = f"WHERE NOT coalesce({_absent(RATING, missing)}, false) AND ({off})"
    row = relation.first(f"SELECT min({relation.row})", bad)[0]
    if row is not None:
        what, where = ("count", "not above 0") if scale == Scale.of_counts() else ("rating", f"off the scale {scale}")
        wrong = f"missing, infinite, not a number or {where}"
        raise InvalidRatings(f"the {what} in row {row + relation.first_row} is {wrong}: fix or remove it")
