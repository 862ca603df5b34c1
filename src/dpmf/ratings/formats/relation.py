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
(['007', '008'], ['10'], [4.5, 3.0])
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.ratings.formats.columns import Columns, encode_column
from dpmf.ratings.ids import Ids
from dpmf.ratings.times import WHOLE, Times, readable

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.table import Ratings

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_FLOATS = ("FLOAT", "DOUBLE")

RATING = "TRY_CAST(TRY_CAST(rating AS DOUBLE) AS FLOAT)"
"""The SQL of a rating, NULL where there is none; see `dpmf.ratings.kinds.numbers_of` for why it is rounded twice."""


class Scan(Protocol):
    """Opens the ratings at a location for DuckDB, within a memory limit such as "2GB"."""

    def __call__(self, location: Location, memory: str | None = None) -> AbstractContextManager[Relation]:
        """Return a context with the relation."""


@dataclass(frozen=True)
class Relation:
    """Ratings that DuckDB can query, in the order of the file.

    Attributes:
        connection, relation, parameters: what DuckDB needs; the columns are user, item, rating and perhaps timestamp.
        typed: whether columns have types; elsewhere all are texts, and those that spell integers are ordered as such.
        row: the column that numbers the rows, from 0.
        first_row: the number a person would give the first rating: 1, or 2 below a header line.
        counts: whether the column of ratings says how often a user had an item.
    """

    connection: Any
    relation: str
    parameters: Mapping[str, Any]
    typed: bool
    row: str
    first_row: int
    counts: bool = False

    def query(self, select: str, after: str = "") -> Any:
        """Run a selection from the relation, with what follows it."""
        return self.connection.execute(f"{select} FROM {self.relation} {after}", dict(self.parameters))

    def first(self, select: str, after: str = "") -> Any:
        """Return the first row of a selection, or None; the rest must not be left unfetched on the connection."""
        return next(iter(self.query(select, after).fetchall()), None)

    def kinds(self) -> dict[str, str]:
        """Return the type of every column."""
        return {row[0]: row[1] for row in self.query("DESCRIBE SELECT *").fetchall()}


def select_roles(places: Mapping[str, int], names: Sequence[str], nothing: str) -> tuple[str, bool]:
    """Return the SQL that selects columns by role, and whether ratings are counts.

    Args:
        places: of the columns, by role.
        names: of all columns, as SQL spells them.
        nothing: the SQL of 1, what every row counts where there is neither a rating nor a count.
    """
    columns = {"rating" if role == "count" else role: names[place] for role, place in places.items()}
    chosen = ", ".join(f"{name} AS {role}" for role, name in {"rating": nothing, **columns}.items())
    return chosen, "rating" not in places


def read_scan(scan: Scan, location: Location) -> Ratings:
    """Read the ratings at a location into memory."""
    with scan(location, location.options.memory) as relation:
        columns = fetch_columns(relation)
    return location.assemble(columns)


def fetch_columns(relation: Relation) -> Columns:
    """Fetch all ratings, in the order of the file, with ids encoded."""
    kinds = relation.kinds()
    for role in ("user", "item"):
        check_ids(relation, role)
    user, item = (encode_ids(relation, role, kinds[role]) for role in ("user", "item"))
    moment = moment_sql(kinds["timestamp"]) if "timestamp" in kinds else None
    time = ""
    if moment is not None:
        time = f", {moment.whole} AS whole, {moment.fraction} AS fraction, {moment.missing} AS lacking"
    table = relation.query(f"SELECT {user.sql} AS user, {item.sql} AS item, {RATING} AS rating{time}").fetchnumpy()
    values = np.ma.filled(table["rating"], np.nan).astype(np.float32, copy=False)
    times = None
    if moment is not None:
        read = ~np.ma.getmaskarray(table["whole"])
        times = readable(fetched_times(table), read, relation.first_row, np.ma.getdata(table["lacking"]))
    users, items = user.encoded("user", table["user"]), item.encoded("item", table["item"])
    return Columns(*users, *items, values, times, relation.first_row, relation.counts)


def fetched_times(table: Mapping[str, NDArray[Any]]) -> Times:
    """Return the times of a table that was fetched; a fraction that is nought everywhere is none."""
    whole, fraction = np.ma.getdata(table["whole"]), np.ma.filled(table["fraction"], 0)
    return Times(whole, fraction.astype(np.int32, copy=False) if fraction.any() else None)


def check_ids(relation: Relation, role: str) -> None:
    """Raise `InvalidRatings` with the number of the first row that has no user, or no item."""
    if relation.first("SELECT 1", f"WHERE {role} IS NULL LIMIT 1") is None:
        return
    row = relation.first(f"SELECT min({relation.row})", f"WHERE {role} IS NULL")[0] + relation.first_row
    raise InvalidRatings(f"the {role} in row {row} is missing: give every rating a {role}")


class Encoding(NamedTuple):
    """How a column of ids is fetched.

    Attributes:
        sql: the positions of the ids, if they are known already, or else the ids as numbers.
        ids: the ids, if they are known already.
        spelt: whether the numbers stand for their texts.
    """

    sql: str
    ids: Ids | None = None
    spelt: bool = False

    def encoded(self, role: str, column: NDArray[Any]) -> tuple[Ids, NDArray[np.int32]]:
        """Return the ids, and every row's position among them, given what was fetched."""
        plain = np.ma.getdata(column)
        if self.ids is not None:
            return self.ids, plain.astype(np.int32, copy=False)
        ids, codes = encode_column(role, plain)
        return ids.spelt() if self.spelt else ids, codes


def encode_ids(relation: Relation, role: str, kind: str) -> Encoding:
    """Return how the ids of a column of this type are fetched: as numbers, or as texts."""
    if kind in _INTEGERS + _FLOATS:
        return Encoding(role)
    if re.fullmatch(r"DECIMAL\(\d+,0\)", kind):
        return Encoding(f"CAST({role} AS BIGINT)")
    if kind not in ("VARCHAR", "UUID") and not kind.startswith("ENUM"):
        raise InvalidRatings(f"{role} ids must be integers or texts: the column is of type {kind}")
    text, number = f"CAST({role} AS VARCHAR)", f"TRY_CAST({role} AS BIGINT)"
    spelt_otherwise = f"CAST({number} AS VARCHAR) IS DISTINCT FROM {text}"
    if not relation.typed and relation.first("SELECT 1", f"WHERE {spelt_otherwise} LIMIT 1") is None:
        return Encoding(f"CAST({role} AS BIGINT)", spelt=True)  # faster, and the same texts in the same order
    # Texts that spell numbers come first, as numbers, so that no other id changes the order of two of them.
    order = "id" if relation.typed else "number, id"
    spelling = f"CASE WHEN NOT ({spelt_otherwise}) THEN {number} END"
    distinct = relation.query(
        f"SELECT id FROM (SELECT DISTINCT {text} AS id, {spelling} AS number", f") ORDER BY {order} NULLS LAST"
    ).fetchnumpy()["id"]
    # An enumeration turns texts into positions without a join, so rows keep the order of the file.
    relation.connection.register(f"{role}_ids", {"id": np.ma.getdata(distinct)})
    relation.connection.execute(f"CREATE TYPE {role}_code AS ENUM (SELECT id FROM {role}_ids)")
    ids = Ids(np.array(np.ma.getdata(distinct).tolist(), object))
    return Encoding(f"enum_code(CAST({text} AS {role}_code))", ids)


class MomentSql(NamedTuple):
    """The SQL of a time: a whole number, NULL where there is no time, billionths, and whether nothing is there."""

    whole: str
    fraction: str = "CAST(0 AS INTEGER)"
    missing: str = "timestamp IS NULL"


def moment_sql(kind: str) -> MomentSql:
    """Return the SQL of a timestamp column of this type; see `dpmf.ratings.times`."""
    number = "TRY_CAST(timestamp AS DECIMAL(28, 9))"  # exact, where a fraction of 64 bits is not
    exact = MomentSql(
        f"TRY_CAST(floor({number}) AS BIGINT)", f"CAST(({number} - floor({number})) * {10**9} AS INTEGER)"
    )
    micros = "epoch_us(TRY_CAST(timestamp AS TIMESTAMPTZ))"
    rest = f"((({micros} % {10**6}) + {10**6}) % {10**6})"  # % keeps the sign
    date = MomentSql(f"(({micros} - {rest}) // {10**6})", f"CAST({rest} * 1000 AS INTEGER)")
    if kind in _INTEGERS:
        return MomentSql("TRY_CAST(timestamp AS BIGINT)")
    if kind in _FLOATS:
        most, value = 2**24 if kind == "FLOAT" else 2**53, "CAST(timestamp AS DOUBLE)"
        refused = f"WHEN abs(timestamp) >= {most} THEN error('a time is not exact, as is none from {most} on: {WHOLE}')"
        return MomentSql(
            f"CASE WHEN NOT isfinite(timestamp) THEN NULL {refused} ELSE CAST(floor({value}) AS BIGINT) END",
            f"CASE WHEN abs(timestamp) < {most} THEN CAST(floor(({value} - floor({value})) * {10**9}) AS INTEGER) END",
            "timestamp IS NULL OR isnan(timestamp)",
        )
    if kind.startswith(("TIMESTAMP", "DATE")):
        return date
    if kind.startswith("DECIMAL"):
        return exact
    if kind != "VARCHAR":
        return MomentSql("CAST(NULL AS BIGINT)")
    whole = "CAST(TRY_CAST(timestamp AS BIGINT) AS VARCHAR) = timestamp"
    return MomentSql(
        f"CASE WHEN {whole} THEN TRY_CAST(timestamp AS BIGINT) "
        f"WHEN {number} IS NOT NULL THEN {exact.whole} ELSE {date.whole} END",
        f"CASE WHEN {whole} THEN 0 WHEN {number} IS NOT NULL THEN {exact.fraction} ELSE {date.fraction} END",
        "timestamp IS NULL OR timestamp = ''",
    )
