"""Ratings as a relation that DuckDB queries, and how they are fetched from it with their ids encoded.

Text columns of ids are encoded inside DuckDB, which spills to the disk; a Python object per rating would not fit.

>>> import tempfile
>>> from pathlib import Path
>>> from dpmf.ratings.formats.delimited import scan
>>> from dpmf.ratings.location import locate
>>> path = Path(tempfile.mkdtemp()) / "ratings.csv"
>>> _ = path.write_text("userId,movieId,rating\\n007,10,4.5\\n008,10,3\\n")
>>> with scan(locate(path)) as relation:
...     columns = fetch_columns(relation)
>>> list(columns.user_ids), list(columns.item_ids), columns.values.tolist()
(['007', '008'], [10], [4.5, 3.0])
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.ratings.formats.columns import Columns, encode_column, whole_times
from dpmf.ratings.ids import Ids

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.table import Ratings

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_FLOATS = ("FLOAT", "DOUBLE")


class Scan(Protocol):
    """Opens the ratings at a location for DuckDB, within a memory limit such as "2GB"."""

    def __call__(self, location: Location, memory: str | None = None) -> AbstractContextManager[Relation]:
        """Return a context with the relation."""


@dataclass(frozen=True)
class Relation:
    """Ratings that DuckDB can query, in the order of the file.

    Attributes:
        connection, relation, parameters: what DuckDB needs; the columns are user, item, rating and perhaps timestamp.
        typed: whether columns have types, so that a text is a text; elsewhere all are texts, and one that spells an
            integer is an integer.
        row: the column that numbers the rows, from 0.
        first_row: the number a person would give the first rating: 1, or 2 below a header line.
    """

    connection: Any
    relation: str
    parameters: Mapping[str, Any]
    typed: bool
    row: str
    first_row: int

    def query(self, select: str, after: str = "") -> Any:
        """Run a selection from the relation, with what follows it."""
        return self.connection.execute(f"{select} FROM {self.relation} {after}", dict(self.parameters))

    def first(self, select: str, after: str = "") -> Any:
        """Return the first row of a selection, or None; the rest must not be left unfetched on the connection."""
        return next(iter(self.query(select, after).fetchall()), None)

    def kinds(self) -> dict[str, str]:
        """Return the type of every column."""
        return {row[0]: row[1] for row in self.query("DESCRIBE SELECT *").fetchall()}


def read_scan(scan: Scan, location: Location) -> Ratings:
    """Read the ratings at a location into memory."""
    with scan(location, location.options.memory) as relation:
        columns = fetch_columns(relation)
    return location.assemble(columns)


def fetch_columns(relation: Relation) -> Columns:
    """Fetch all ratings, in the order of the file, with ids encoded."""
    first_row = relation.first_row
    kinds = relation.kinds()
    for role in ("user", "item"):
        check_ids(relation, role)
    user_ids, user = encode_ids(relation, "user", kinds["user"])
    item_ids, item = encode_ids(relation, "item", kinds["item"])
    time = f", {seconds_sql(kinds['timestamp'])} AS timestamp" if "timestamp" in kinds else ""
    table = relation.query(
        f"SELECT {user} AS user, {item} AS item, TRY_CAST(rating AS FLOAT) AS rating{time}"
    ).fetchnumpy()
    values = np.ma.filled(table["rating"], np.nan).astype(np.float32, copy=False)
    times = table.get("timestamp")
    if times is not None and times.dtype.kind == "f":
        times = np.ma.filled(times, np.nan)
    elif np.ma.is_masked(times):
        times = np.ma.filled(times.astype(np.float64), np.nan)  # some are missing: only that counts now
    timestamps, partly = (None, False) if times is None else whole_times(np.ma.getdata(times), first_row)
    users, items = _encoded("user", user_ids, table["user"]), _encoded("item", item_ids, table["item"])
    return Columns(*users, *items, values, timestamps, first_row, partly)


def check_ids(relation: Relation, role: str) -> None:
    """Raise `InvalidRatings` with the number of the first row that has no user, or no item."""
    if relation.first("SELECT 1", f"WHERE {role} IS NULL LIMIT 1") is None:
        return
    row = relation.first(f"SELECT min({relation.row})", f"WHERE {role} IS NULL")[0] + relation.first_row
    raise InvalidRatings(f"the {role} in row {row} is missing: give every rating a {role}")


def encode_ids(relation: Relation, role: str, kind: str) -> tuple[Ids | None, str]:
    """Return the ids and the SQL that encodes them, or None and the SQL that fetches them as numbers."""
    if kind in _INTEGERS + _FLOATS:
        return None, role
    text = f"CAST({role} AS VARCHAR)"
    spelt_otherwise = f"WHERE CAST(TRY_CAST({role} AS BIGINT) AS VARCHAR) IS DISTINCT FROM {text} LIMIT 1"
    may_be_integers = not (relation.typed and kind == "VARCHAR")
    if may_be_integers and relation.first("SELECT 1", spelt_otherwise) is None:
        return None, f"CAST({role} AS BIGINT)"
    distinct = relation.query(f"SELECT DISTINCT {text} AS id", "ORDER BY id").fetchnumpy()["id"]
    # An enumeration turns texts into positions without a join, so rows keep the order of the file.
    relation.connection.register(f"{role}_ids", {"id": np.ma.getdata(distinct)})
    relation.connection.execute(f"CREATE TYPE {role}_code AS ENUM (SELECT id FROM {role}_ids)")
    ids = Ids(np.array(np.ma.getdata(distinct).tolist(), object))
    return ids, f"enum_code(CAST({text} AS {role}_code))"


def _encoded(role: str, ids: Ids | None, column: NDArray[Any]) -> tuple[Ids, NDArray[np.int32]]:
    plain = np.ma.getdata(column)
    return encode_column(role, plain) if ids is None else (ids, plain.astype(np.int32, copy=False))


def seconds_sql(kind: str) -> str:
    """Return the SQL that makes a number of a timestamp column of this type."""
    moment = "epoch(TRY_CAST(timestamp AS TIMESTAMPTZ))"  # with fractions of a second
    if kind.startswith(("TIMESTAMP", "DATE")):
        return moment
    if kind == "VARCHAR":
        return f"coalesce(TRY_CAST(timestamp AS DOUBLE), {moment})"
    return "timestamp" if kind in _INTEGERS else "TRY_CAST(timestamp AS DOUBLE)"
