"""Reading CSV-like text and Parquet with DuckDB, in the order of the file, within a memory limit.

Text columns of ids are coded inside DuckDB, which spills to the disk; a Python object per rating would not fit.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "ratings.csv"
>>> _ = path.write_text("userId,movieId,rating\\n007,10,4.5\\n008,10,3\\n")
>>> columns = scan_text(path)
>>> list(columns.user_ids), list(columns.item_ids), columns.values.tolist()
(['007', '008'], [10], [4.5, 3.0])
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.ratings.columns import Columns
from dpmf.ratings.ids import Ids

ROLES = ("user", "item", "rating", "timestamp")
_USUAL_NAMES = {
    "user": ("user", "userid", "user_id", "uid"),
    "item": ("item", "itemid", "item_id", "movieid", "movie_id", "movie", "bookid", "book_id", "animeid", "anime_id"),
    "rating": ("rating", "score", "stars", "value"),
    "timestamp": ("timestamp", "time", "date", "ts"),
}
_DELIMITERS = ("::", "\t", ";", ",", "|")
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")


def scan_text(
    path: Path,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    columns: Mapping[str, str | int] | None = None,
    memory: str | None = None,
) -> Columns:
    """Read a delimited text file.

    Args:
        path: the file; `.gz` is unpacked on the way.
        delimiter: found in the first line if not given.
        header: whether the first line names the columns; found by looking at it if not given.
        columns: where user, item, rating and (optional) timestamp are: names, or positions from 0. By default the
            usual names, or without a header the order user, item, rating, timestamp.
        memory: DuckDB's limit, such as "2GB".
    """
    first = first_line(path)
    delimiter = delimiter or _find_delimiter(path, first)
    fields = [field.strip().strip('"').lstrip("\ufeff") for field in first.split(delimiter)]
    if header is None:
        header = _looks_like_header(fields, columns)
    places = find_columns(path, fields if header else None, len(fields), columns)
    names = [f"c{place}" for place in range(len(fields))]
    typed = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    chosen = ", ".join(f"{names[place]} AS {role}" for role, place in places.items())
    with _connection(memory) as connection:
        try:
            connection.execute(
                f"CREATE TEMP TABLE staged AS SELECT {chosen} FROM read_csv($path, delim=$delimiter, header=false, "
                f"skip=$skip, auto_detect=false, quote='\"', escape='\"', columns={{{typed}}})",
                {"path": str(path), "delimiter": delimiter, "skip": int(header)},
            )
        except Exception as error:
            raise _readable(path, error) from None
        return _collect(_Source(connection, "staged", {}), first_row=2 if header else 1)


def scan_parquet(path: Path, *, columns: Mapping[str, str | int] | None = None, memory: str | None = None) -> Columns:
    """Read a Parquet file; arguments as in `scan_text`."""
    with _connection(memory) as connection:
        source = _Source(connection, "read_parquet($path)", {"path": str(path)})
        try:
            names = list(source.kinds())
        except Exception as error:
            raise _readable(path, error) from None
        places = find_columns(path, names, len(names), columns)
        quoted = [name.replace('"', '""') for name in names]
        chosen = ", ".join(f'"{quoted[place]}" AS {role}' for role, place in places.items())
        return _collect(replace(source, relation=f"(SELECT {chosen} FROM read_parquet($path))"), first_row=1)


def first_line(path: Path) -> str:
    """Return the first line of a text file, unpacked if need be."""
    import gzip

    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", errors="replace") as file:
            line: str = file.readline(1 << 20)
    except (OSError, EOFError) as error:
        raise InvalidRatings(f"cannot read {path}: {error}") from None
    if not line.strip():
        raise InvalidRatings(f"{path} is empty: it should hold one rating per line")
    return line.rstrip("\r\n")


def find_columns(
    path: Path | str, names: list[str] | None, count: int, wanted: Mapping[str, str | int] | None
) -> dict[str, int]:
    """Return the position of each role's column; the timestamp's is optional."""
    wanted = wanted or {}
    if unknown := set(wanted) - set(ROLES):
        raise InvalidArgument(f"columns has no role {sorted(unknown)[0]!r}: the roles are {', '.join(ROLES)}")
    places: dict[str, int] = {}
    for role in ROLES:
        place = _find_column(role, names, wanted.get(role), usual=not wanted or role in wanted or names is not None)
        if place is None or place >= count:
            if role == "timestamp" and role not in wanted:
                continue
            have = ", ".join(names) if names is not None else f"{count} unnamed columns"
            asked = f"column {wanted[role]!r}" if role in wanted else f"column for the {role}"
            raise InvalidRatings(f"{path} has no {asked}: it has {have}; name it with columns={{{role!r}: …}}")
        places[role] = place
    return places


def _find_column(role: str, names: list[str] | None, wanted: str | int | None, usual: bool) -> int | None:
    if isinstance(wanted, int):
        return wanted
    if names is None:
        return ROLES.index(role) if usual and wanted is None else None
    if wanted is not None:
        return names.index(wanted) if wanted in names else None
    lowered = [name.lower() for name in names]
    return next((lowered.index(name) for name in _USUAL_NAMES[role] if name in lowered), None)


def _find_delimiter(path: Path, line: str) -> str:
    for delimiter in _DELIMITERS:
        if line.count(delimiter) >= 2:
            return delimiter
    raise InvalidRatings(f"{path} is not a table of ratings: its first line has fewer than three columns")


def _looks_like_header(fields: list[str], columns: Mapping[str, str | int] | None) -> bool:
    """A header has a wanted or usual name in it, or no number where the rating should be."""
    wanted = set(columns.values()) if columns else set()
    usual = {name for names in _USUAL_NAMES.values() for name in names}
    if any(field in wanted or field.lower() in usual for field in fields):
        return True
    place = (columns or {}).get("rating", 2)
    try:
        float(fields[place if isinstance(place, int) else 2])
    except (ValueError, IndexError):
        return True
    return False


@contextlib.contextmanager
def _connection(memory: str | None) -> Iterator[Any]:
    import duckdb

    with tempfile.TemporaryDirectory(prefix="dpmf-scan-") as spill, duckdb.connect(":memory:") as connection:
        connection.execute("SET temp_directory = $folder", {"folder": spill})
        connection.execute("SET enable_progress_bar = false")
        if memory is not None:
            connection.execute("SET memory_limit = $limit", {"limit": memory})
        yield connection


def _readable(path: Path, error: Exception) -> InvalidRatings:
    """Return DuckDB's complaint as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return InvalidRatings(f"cannot read {path}: {' '.join(lines[:2])}")


@dataclass(frozen=True)
class _Source:
    """A relation that DuckDB can read from, with the parameters its text needs."""

    connection: Any
    relation: str
    parameters: Mapping[str, Any]

    def query(self, select: str, after: str = "") -> Any:
        return self.connection.execute(f"{select} FROM {self.relation} {after}", dict(self.parameters))

    def kinds(self) -> dict[str, str]:
        """Return the type of every column."""
        return {row[0]: row[1] for row in self.query("DESCRIBE SELECT *").fetchall()}


def _collect(source: _Source, first_row: int) -> Columns:
    """Fetch a relation that has the columns user, item, rating and perhaps timestamp."""
    kinds = source.kinds()
    for role in ("user", "item"):
        _refuse_missing_ids(source, role, first_row)
    users, user = _coding(source, "user", kinds["user"])
    items, item = _coding(source, "item", kinds["item"])
    time = f", {_seconds(kinds['timestamp'])} AS timestamp" if "timestamp" in kinds else ""
    table = source.query(
        f"SELECT {user} AS user, {item} AS item, TRY_CAST(rating AS FLOAT) AS rating{time}"
    ).fetchnumpy()
    values = np.ma.filled(table["rating"], np.nan).astype(np.float32, copy=False)
    times = table.get("timestamp")
    timestamps = None if times is None or np.ma.is_masked(times) else np.ma.getdata(times).astype(np.int64, copy=False)
    return Columns(*_coded(users, table["user"]), *_coded(items, table["item"]), values, timestamps, first_row)


def _refuse_missing_ids(source: _Source, role: str, first_row: int) -> None:
    if source.query("SELECT 1", f"WHERE {role} IS NULL LIMIT 1").fetchone() is None:
        return
    numbered = replace(source, relation=f"(SELECT {role}, row_number() OVER () AS row FROM {source.relation})")
    row = numbered.query("SELECT min(row)", f"WHERE {role} IS NULL").fetchone()[0]
    raise InvalidRatings(f"the {role} in row {row + first_row - 1} is missing: give every rating a {role}")


def _coding(source: _Source, role: str, kind: str) -> tuple[Ids | None, str]:
    """Return the ids and the SQL that codes them, or None and the SQL that fetches them as integers."""
    if kind in _INTEGERS:
        return None, role
    spelt_otherwise = f"WHERE CAST(TRY_CAST({role} AS BIGINT) AS VARCHAR) IS DISTINCT FROM {role} LIMIT 1"
    if kind == "VARCHAR" and source.query("SELECT 1", spelt_otherwise).fetchone() is None:
        return None, f"CAST({role} AS BIGINT)"
    distinct = source.query(f"SELECT DISTINCT CAST({role} AS VARCHAR) AS id", "ORDER BY id").fetchnumpy()["id"]
    # An enumeration turns texts into positions without a join, so rows keep the order of the file.
    source.connection.register(f"{role}_ids", {"id": np.ma.getdata(distinct)})
    source.connection.execute(f"CREATE TYPE {role}_code AS ENUM (SELECT id FROM {role}_ids)")
    return Ids(
        np.array(np.ma.getdata(distinct).tolist(), object)
    ), f"enum_code(CAST(CAST({role} AS VARCHAR) AS {role}_code))"


def _coded(ids: Ids | None, column: NDArray[Any]) -> tuple[Ids, NDArray[np.int32]]:
    plain = np.ma.getdata(column)
    return Ids.factorize(plain) if ids is None else (ids, plain.astype(np.int32, copy=False))


def _seconds(kind: str) -> str:
    """Return the SQL that makes an integer of a timestamp column of this type."""
    if kind.startswith(("TIMESTAMP", "DATE")):
        return "CAST(epoch(CAST(timestamp AS TIMESTAMP)) AS BIGINT)"
    if kind == "VARCHAR":
        moment = "CAST(epoch(TRY_CAST(timestamp AS TIMESTAMP)) AS BIGINT)"
        return f"coalesce(TRY_CAST(timestamp AS BIGINT), {moment})"
    return "TRY_CAST(timestamp AS BIGINT)"
