"""Fetching the ratings of a source, with ids coded.

Text columns of ids are coded inside DuckDB, which spills to the disk; a Python object per rating would not fit.

>>> import tempfile
>>> from pathlib import Path
>>> from dpmf.ratings.formats.scan import text_source
>>> path = Path(tempfile.mkdtemp()) / "ratings.csv"
>>> _ = path.write_text("userId,movieId,rating\\n007,10,4.5\\n008,10,3\\n")
>>> with text_source(path) as source:
...     columns = collect(source)
>>> list(columns.user_ids), list(columns.item_ids), columns.values.tolist()
(['007', '008'], [10], [4.5, 3.0])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.ratings.formats.columns import Columns, code, whole_times
from dpmf.ratings.formats.scan import Source
from dpmf.ratings.ids import Ids

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_FLOATS = ("FLOAT", "DOUBLE")


def collect(source: Source) -> Columns:
    """Fetch all ratings of a source, in the order of the file."""
    first_row = source.first_row
    kinds = source.kinds()
    for role in ("user", "item"):
        refuse_missing_ids(source, role)
    user_ids, user = coding(source, "user", kinds["user"])
    item_ids, item = coding(source, "item", kinds["item"])
    time = f", {seconds(kinds['timestamp'])} AS timestamp" if "timestamp" in kinds else ""
    table = source.query(
        f"SELECT {user} AS user, {item} AS item, TRY_CAST(rating AS FLOAT) AS rating{time}"
    ).fetchnumpy()
    values = np.ma.filled(table["rating"], np.nan).astype(np.float32, copy=False)
    times = table.get("timestamp")
    if times is not None and times.dtype.kind == "f":
        times = np.ma.filled(times, np.nan)
    elif np.ma.is_masked(times):
        times = np.ma.filled(times.astype(np.float64), np.nan)  # some are missing: only that counts now
    timestamps, partly = (None, False) if times is None else whole_times(np.ma.getdata(times), first_row)
    users, items = _coded("user", user_ids, table["user"]), _coded("item", item_ids, table["item"])
    return Columns(*users, *items, values, timestamps, first_row, partly)


def refuse_missing_ids(source: Source, role: str) -> None:
    """Raise `InvalidRatings` with the number of the first row that has no user, or no item."""
    if source.first("SELECT 1", f"WHERE {role} IS NULL LIMIT 1") is None:
        return
    row = source.first(f"SELECT min({source.row})", f"WHERE {role} IS NULL")[0] + source.first_row
    raise InvalidRatings(f"the {role} in row {row} is missing: give every rating a {role}")


def coding(source: Source, role: str, kind: str) -> tuple[Ids | None, str]:
    """Return the ids and the SQL that codes them, or None and the SQL that fetches them as numbers."""
    if kind in _INTEGERS + _FLOATS:
        return None, role
    text = f"CAST({role} AS VARCHAR)"
    spelt_otherwise = f"WHERE CAST(TRY_CAST({role} AS BIGINT) AS VARCHAR) IS DISTINCT FROM {text} LIMIT 1"
    may_be_integers = not (source.typed and kind == "VARCHAR")
    if may_be_integers and source.first("SELECT 1", spelt_otherwise) is None:
        return None, f"CAST({role} AS BIGINT)"
    distinct = source.query(f"SELECT DISTINCT {text} AS id", "ORDER BY id").fetchnumpy()["id"]
    # An enumeration turns texts into positions without a join, so rows keep the order of the file.
    source.connection.register(f"{role}_ids", {"id": np.ma.getdata(distinct)})
    source.connection.execute(f"CREATE TYPE {role}_code AS ENUM (SELECT id FROM {role}_ids)")
    ids = Ids(np.array(np.ma.getdata(distinct).tolist(), object))
    return ids, f"enum_code(CAST({text} AS {role}_code))"


def _coded(role: str, ids: Ids | None, column: NDArray[Any]) -> tuple[Ids, NDArray[np.int32]]:
    plain = np.ma.getdata(column)
    return code(role, plain) if ids is None else (ids, plain.astype(np.int32, copy=False))


def seconds(kind: str) -> str:
    """Return the SQL that makes a number of a timestamp column of this type."""
    moment = "epoch(TRY_CAST(timestamp AS TIMESTAMPTZ))"  # with fractions of a second
    if kind.startswith(("TIMESTAMP", "DATE")):
        return moment
    if kind == "VARCHAR":
        return f"coalesce(TRY_CAST(timestamp AS DOUBLE), {moment})"
    return "timestamp" if kind in _INTEGERS else "TRY_CAST(timestamp AS DOUBLE)"
