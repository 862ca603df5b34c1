"""Opening CSV-like text and Parquet with DuckDB: which columns there are, and where.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "ratings.csv"
>>> _ = path.write_text("userId,movieId,rating\\n007,10,4.5\\n008,10,3\\n")
>>> with text_source(path) as source:
...     source.query("SELECT user, item").fetchall()
[('007', '10'), ('008', '10')]
"""

from __future__ import annotations

import contextlib
import csv
import glob
import gzip
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpmf.errors import InvalidArgument, InvalidRatings

ROLES = ("user", "item", "rating", "timestamp")
_USUAL_NAMES = {
    "user": ("user", "userid", "uid"),
    "item": ("item", "itemid", "movie", "movieid", "bookid", "animeid"),
    "rating": ("rating", "score", "stars", "value"),
    "timestamp": ("timestamp", "time", "date", "ts"),
}
_DELIMITERS = ("::", "\t", ";", ",", "|")


@dataclass(frozen=True)
class Source:
    """A relation that DuckDB can read from, with the parameters its text needs.

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


@contextlib.contextmanager
def text_source(
    path: Path,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    columns: Mapping[str, str | int] | None = None,
    memory: str | None = None,
) -> Iterator[Source]:
    """Open a delimited text file.

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
    fields = _fields(path, first, delimiter)
    if header is None:
        header = _looks_like_header(fields, columns)
    places = find_columns(path, fields if header else None, len(fields), columns)
    names = [f"c{place}" for place in range(len(fields))]
    typed = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    chosen = ", ".join(f"{names[place]} AS {role}" for role, place in places.items())
    with _connection(path, memory) as connection:
        connection.execute(
            f"CREATE TEMP TABLE staged AS SELECT {chosen} FROM read_csv($path, delim=$delimiter, header=false, "
            f"skip=$skip, auto_detect=false, quote='\"', escape='\"', compression=$compression, columns={{{typed}}})",
            {
                "path": glob.escape(str(path)),
                "delimiter": delimiter,
                "skip": int(header),
                "compression": "gzip" if _is_packed(path) else "none",
            },
        )
        yield Source(connection, "staged", {}, typed=False, row="rowid", first_row=2 if header else 1)


@contextlib.contextmanager
def parquet_source(
    path: Path, *, columns: Mapping[str, str | int] | None = None, memory: str | None = None
) -> Iterator[Source]:
    """Open a Parquet file; arguments as in `text_source`."""
    with _connection(path, memory) as connection:
        parameters = {"path": glob.escape(str(path))}
        source = Source(connection, "read_parquet($path)", parameters, typed=True, row="file_row_number", first_row=1)
        names = list(source.kinds())
        places = find_columns(path, names, len(names), columns)
        quoted = [name.replace('"', '""') for name in names]
        chosen = ", ".join(f'"{quoted[place]}" AS {role}' for role, place in places.items())
        numbered = "read_parquet($path, file_row_number=true)"
        yield replace(source, relation=f"(SELECT {chosen}, file_row_number FROM {numbered})")


def first_line(path: Path) -> str:
    """Return the first line of a text file, unpacked if need be."""
    opener: Any = gzip.open if _is_packed(path) else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", errors="replace") as file:
            line: str = file.readline(1 << 20)
    except (OSError, EOFError) as error:
        raise InvalidRatings(f"cannot read {path}: {error}") from None
    if not line.strip():
        raise InvalidRatings(f"{path} is empty or begins with an empty line: it should hold one rating per line")
    if "\0" in line:
        raise InvalidRatings(f"{path} is not UTF-8 text: save it as such, or name its format")
    return line.rstrip("\r\n")


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _fields(path: Path, line: str, delimiter: str) -> list[str]:
    """Return the fields of a line; quotes around a field go with a delimiter of one character only."""
    if len(delimiter) > 1:
        return [field.strip() for field in line.split(delimiter)]
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=delimiter))]
    except (csv.Error, TypeError, ValueError) as error:
        raise InvalidRatings(f"the first line of {path} is not a row of fields: {error}") from None


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
        if place is None or not 0 <= place < count:
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
    plain = [re.sub("[ _-]", "", name).lower() for name in names]
    return next((plain.index(name) for name in _USUAL_NAMES[role] if name in plain), None)


def _find_delimiter(path: Path, line: str) -> str:
    for delimiter in _DELIMITERS:
        if line.count(delimiter) >= 2:
            return delimiter
    raise InvalidRatings(f"{path} is not a table of ratings: its first line has fewer than three columns")


def _looks_like_header(fields: list[str], columns: Mapping[str, str | int] | None) -> bool:
    """There is a header if columns are wanted by name, or if no number stands where the rating should be."""
    wanted = columns or {}
    if any(isinstance(place, str) for place in wanted.values()):
        return True
    try:
        float(fields[int(wanted.get("rating", 2))])
    except (ValueError, IndexError):
        return True
    return False


@contextlib.contextmanager
def open_database(memory: str | None = None) -> Iterator[Any]:
    """Yield a DuckDB connection that spills to a folder of its own; Ctrl-C and full disks are reported as such."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="dpmf-scan-") as spill, duckdb.connect(":memory:") as connection:
        connection.execute("SET temp_directory = $folder", {"folder": spill})
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET TimeZone = 'UTC'")  # or times without a zone would depend on the machine
        if memory is not None:
            try:
                connection.execute("SET memory_limit = $limit", {"limit": memory})
            except duckdb.Error:
                raise InvalidArgument(f"memory={memory!r} is not an amount of memory: write it as '2GB'") from None
        try:
            yield connection
        except (duckdb.InterruptException, RuntimeError) as error:
            # Ctrl-C reaches DuckDB first, which reports it in one of these two ways.
            if isinstance(error, duckdb.InterruptException) or "interrupt" in str(error).lower():
                raise KeyboardInterrupt from None
            raise
        except duckdb.IOException as error:
            raise OSError(_in_one_line(str(error))) from None
        except duckdb.Error as error:
            raise InvalidRatings(_in_one_line(str(error))) from None


@contextlib.contextmanager
def _connection(path: Path, memory: str | None) -> Iterator[Any]:
    """Yield a connection whose errors, inside the block, are complaints about the file."""
    import duckdb

    with open_database(memory) as connection:
        try:
            yield connection
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise InvalidRatings(f"cannot read {path}: {_in_one_line(str(error))}") from None


def _in_one_line(complaint: str) -> str:
    """Return what DuckDB found, without its advice, which is about DuckDB; for a bad line of text, where and why."""
    if "state machine" in complaint:
        return "its lines do not all end in the same way, or a quote is not closed"
    lines = [line.strip() for line in re.split(r"\n\s*(?:Possible|LINE \d)", complaint)[0].splitlines() if line.strip()]
    place = re.search(r"CSV Error on Line: (\d+)", lines[0])
    return f"line {place[1]}: {lines[-1]}" if place else " ".join(lines)
