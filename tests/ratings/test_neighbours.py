"""Whoever joins, with whatever values, changes nothing that is read of others; at most the run is refused.

Two neighbouring worlds are read, with and without one hostile row, from every source. Ids, items, values, times and
the duplicates kept of everybody else are the same in both, or the second is refused.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import logging
import math
import tempfile
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dpmf.errors import DpmfError
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.location import locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import RatingsOnDisk
from dpmf.ratings.times import UNKNOWN

Row = tuple[Any, Any, Any, Any]  # user, item, rating, time
SCALE = (-(2.0**62), 2.0**62)
LARGE = 2**60  # from 2**53 on, fractions of 64 bits skip whole numbers
ROUNDED_TWICE = LARGE + 2**36 + 1  # another number if it goes through 64 bits on its way to 32
NAMES = ("user", "item", "rating", "timestamp")
NOON = datetime.datetime(2020, 1, 1, 12)

USERS: dict[str, list[Any]] = {
    "small": [0, 1, 7, 10, 1000],
    "large": [LARGE + place for place in range(5)],
    "text": ["7", "007", "1e3", "True", "-0", "ann"],
}
TIMES: dict[str, Callable[[int], Any]] = {
    "small": lambda place: 100 + place,
    "large": lambda place: LARGE + place,
    "fractions": lambda place: 100 + place / 8,
    "text": lambda place: f"2020-01-01 00:00:00.{place + 1}",
    "digits": lambda place: str(LARGE + place),
    "dates": lambda place: NOON + datetime.timedelta(microseconds=place),
}
NUMBERS = [7.0, 12.5, 1e3, -0.0, 0, 1, 7, -1, 2**53, 2**53 + 1, 2.0**53, LARGE, 2.0**60, 2**63, 2**64 - 1, 2**80, 1e300]
TEXTS = [
    *("", "7", "007", " 7", "7 ", "7.0", "1e3", "+7", "-0", "True", "nan", "NULL", "inf", "12.5", "2020-01-01", "soon"),
    *('"', '""', '"7', '7"', 'a"b', '"a"b', "a\0", "\0", "é", "\ufeff", "x" * 5000, ",", ";", "\t", "::", "|", "7:"),
    *("user", "item", "rating", "timestamp", "#7", "\\", "'", "1152921504606846976", "9223372036854775808", "1_000"),
]
OBJECTS = [
    *(None, True, False, np.True_, math.nan, math.inf, -math.inf, pd.NA, pd.NaT, NOON, NOON.date(), 1j, (1, 2), b"7"),
    *(decimal.Decimal(7), decimal.Decimal("7.5"), np.float32(7), np.int8(7), np.uint64(2**63), uuid.UUID(int=7)),
    *(np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01 00:00:00.000000001"), NOON.replace(tzinfo=datetime.UTC)),
]
hostile_texts = st.one_of(st.sampled_from(TEXTS), st.text("7\"',;|\t: .-e0\0é", max_size=6))
hostile_values = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(OBJECTS), hostile_texts, st.integers(-(2**65), 2**65), st.floats()
)


@dataclass(frozen=True)
class Joined:
    """Two neighbouring worlds: those who were there, and with one more row among theirs, and perhaps one at the end."""

    crowd: list[Row]
    row: Row
    place: int
    last: tuple[Row, ...] = ()

    @property
    def both(self) -> list[Row]:
        return [*self.crowd[: self.place], self.row, *self.crowd[self.place :], *self.last]


def crowd_of(users: str, times: str) -> list[Row]:
    """Return ratings of which everybody repeats some; by time the first of each two is the later one."""
    return [
        (user, item, value, TIMES[times](later))
        for user in USERS[users]
        for item in (3, 5)
        for value, later in ((ROUNDED_TWICE, 1), (2, 0))
    ]


def as_texts(rows: list[Row]) -> list[Row]:
    return [tuple(one if isinstance(one, str) else str(one) for one in row) for row in rows]  # type: ignore[misc]


@st.composite
def neighbours(draw: st.DrawFn, values: st.SearchStrategy[Any], users: Any = None, times: Any = None) -> Joined:
    """Draw two worlds; a field of the row that joins is hostile or one as all others have."""
    named, timed = draw(st.sampled_from(users or sorted(USERS))), draw(st.sampled_from(times or sorted(TIMES)))
    crowd = crowd_of(named, timed)
    usual = ("newcomer" if named == "text" else LARGE - 1 if named == "large" else 99, 3, 4, TIMES[timed](2))
    hostile = draw(st.sets(st.integers(0, 3), max_size=2))
    row = tuple(draw(values) if place in hostile else one for place, one in enumerate(usual))
    return Joined(crowd, row, draw(st.integers(0, len(crowd))))


def people(ratings: Ratings) -> dict[str, list[tuple[str, float, int | None]]]:
    """Return what is known of everybody, by the text of their id: item, rating and time."""
    known = [UNKNOWN] * len(ratings) if ratings.timestamps is None else ratings.timestamps.tolist()
    times = [None if time == UNKNOWN else time for time in known]
    items = [str(ratings.catalogue.ids[item]) for item in ratings.items.tolist()]
    rows = list(zip(items, ratings.values.tolist(), times, strict=True))
    starts = ratings.indptr.tolist()
    return {str(user): sorted(rows[starts[place] : starts[place + 1]]) for place, user in enumerate(ratings.user_ids)}


def is_same(user: str, other: Any) -> bool:
    """Tell whether an id in a hostile row is that user's own: 7.0 is 7 in a column of numbers, and True is not 1."""
    if isinstance(other, bool | np.bool_):
        return False
    try:
        return user in (str(other), str(int(other)) if not isinstance(other, str) and other == int(other) else "")
    except (TypeError, ValueError, OverflowError):
        return False


@pytest.fixture(autouse=True, scope="module")
def _silent() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


READ: dict[str, Ratings] = {}  # of worlds before anybody joined, which are few


def check(read: Callable[[list[Row]], Ratings], worlds: Joined, source: object) -> bool:
    """Read both worlds and compare them; return whether the second was read at all."""
    name = f"{source} {worlds.crowd}"
    before = READ[name] = READ.get(name) or read(worlds.crowd)
    try:
        after = read(worlds.both)
    except DpmfError:
        return False
    known, told = people(before), people(after)
    others = [user for user in known if not is_same(user, worlds.row[0])]
    assert {user: told.get(user) for user in others} == {user: known[user] for user in others}
    if before.user_ids.array.dtype == after.user_ids.array.dtype:
        orders = [[one for one in map(str, world.user_ids) if one in others] for world in (before, after)]
        assert orders[0] == orders[1]
    return True


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    return dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))


def built(make: Callable[[dict[str, list[Any]]], Any], rows: list[Row]) -> Any:
    """Make a table as a user would, with all that the library guesses; what it does not take is no case."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(columns_of(rows))
    except Exception:
        assume(False)


def array(column: list[Any]) -> Any:
    """Return a NumPy array; what NumPy makes of True, b"7" and "7\\0", which are 1 and "7" to it, is not dpmf's."""
    odd = (isinstance(one, bool | np.bool_ | tuple | bytes) or str(one).endswith("\0") for one in column)
    if any(odd):
        raise TypeError("not what NumPy makes of it")
    return np.array(column)


def without_bools(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return columns without a True, of which some libraries make 1 before dpmf sees it."""
    if any(isinstance(one, bool | np.bool_) for column in columns.values() for one in column):
        raise TypeError("not what the library makes of it")
    return columns


def kind_of(column: list[Any]) -> type:
    """Return the type of most values, which is that of the crowd's."""
    return Counter(map(type, column)).most_common(1)[0][0]


def strict(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return columns of one type each: some libraries make 7 of 7.5 or 1 of True before dpmf sees it."""
    if any(type(one) not in (kind_of(column), type(None)) for column in columns.values() for one in column):
        raise TypeError("not what the library makes of it")
    return columns


def typed(columns: dict[str, list[Any]], kinds: dict[type, Any]) -> pd.DataFrame:
    """Return a table whose columns have types beforehand."""
    return pd.DataFrame({name: pd.Series(one, dtype=kinds.get(kind_of(one))) for name, one in strict(columns).items()})


ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string(), datetime.datetime: pa.timestamp("us")}
IN_MEMORY: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas objects": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas nullable": lambda columns: typed(columns, {int: "Int64", float: "Float64", str: "string"}),
    "pandas arrow": lambda columns: typed(columns, {kind: pd.ArrowDtype(one) for kind, one in ARROW.items()}),
    "pandas category": lambda columns: pd.DataFrame(without_bools(columns)).astype(
        {"user": "category", "item": "category"}
    ),
    "pandas concatenated": lambda columns: pd.concat(
        [pd.DataFrame([row], columns=NAMES) for row in zip(*without_bools(columns).values(), strict=True)]
    ),
    "polars": lambda columns: pl.DataFrame(strict(columns)),
    "polars lazy": lambda columns: pl.LazyFrame(strict(columns)),
    "polars objects": lambda columns: pl.DataFrame(
        {name: pl.Series(one, dtype=pl.Object) for name, one in columns.items()}
    ),
    "arrow": lambda columns: pa.table(without_bools(columns)),
    "arrow typed": lambda columns: pa.table(
        {name: pa.array(one, ARROW[kind_of(one)]) for name, one in strict(columns).items()}
    ),
}


def of_lists(rows: list[Row]) -> Ratings:
    return Ratings.of(*columns_of(rows).values(), scale=SCALE)


@given(worlds=neighbours(hostile_values))
@example(Joined(crowd_of("small", "large"), (99, 3, 4, 12.5), 0))
@example(Joined(crowd_of("large", "large"), (7.0, 3, 4, 5), 20))
@example(Joined(crowd_of("small", "small"), (99, 3, 2.5, 5), 1))
@example(Joined(crowd_of("small", "small"), (True, 3, 4, 5), 1))
@settings(max_examples=700)
def test_lists(worlds: Joined) -> None:
    check(of_lists, worlds, "lists")


@given(worlds=neighbours(hostile_values))
@example(Joined(crowd_of("small", "large"), (99, 3, 1e300, 12.5), 0))
@example(Joined(crowd_of("small", "small"), (99, 3, 2**80, 5), 1))
@settings(max_examples=200)
def test_counts_that_add_up(worlds: Joined) -> None:
    check(lambda rows: Ratings.of(*columns_of(rows).values(), counts=True), worlds, "counts")


@given(worlds=neighbours(hostile_values))
@example(Joined(crowd_of("small", "large"), (99, 3, 4, 12.5), 0))
@example(Joined(crowd_of("large", "large"), (7.0, 3, 4, 5), 20))
@settings(max_examples=400)
def test_arrays(worlds: Joined) -> None:
    def read(rows: list[Row]) -> Ratings:
        return Ratings.of(*built(lambda columns: [array(one) for one in columns.values()], rows), scale=SCALE)

    check(read, worlds, "arrays")


@pytest.mark.parametrize("kind", sorted(IN_MEMORY))
@given(worlds=neighbours(hostile_values))
@example(Joined(crowd_of("small", "large"), (99, 3, 4, 12.5), 0))
@example(Joined(crowd_of("large", "large"), (7.0, 3, 4, 5), 20))
@example(Joined(crowd_of("small", "small"), (99, 3, 2.5, 5), 1))
@settings(max_examples=100)
def test_tables(kind: str, worlds: Joined) -> None:
    check(lambda rows: Ratings.of(built(IN_MEMORY[kind], rows), scale=SCALE), worlds, kind)


hostile_numbers = st.one_of(st.sampled_from(NUMBERS), st.floats(), st.integers(0, 9))


@given(
    worlds=neighbours(hostile_numbers, users=["small"], times=["small"]), layout=st.sampled_from(["coo", "csr", "csc"])
)
@settings(max_examples=300)
def test_sparse_matrices(worlds: Joined, layout: str) -> None:
    assume(all(isinstance(one, int) for one in worlds.row[:2]))  # SciPy makes 7 of 7.5

    def read(rows: list[Row]) -> Ratings:
        matrix = built(
            lambda columns: scipy.sparse.coo_array(
                (np.array(columns["rating"]), (columns["user"], columns["item"])), shape=(2000, 9)
            ).asformat(layout),
            rows,
        )
        return Ratings.of(matrix, scale=SCALE)

    check(read, worlds, layout)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def stored(path: Path, options: ReadOptions) -> Ratings:
    """Return ratings that were sorted on the disk, written to a store and read again, as `dpmf data ingest` does."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        sorted_there, store = Path(scratch) / "sorted", Path(scratch) / "store"
        sorted_there.mkdir()
        store.mkdir()
        with locate(path, options).stream(memory=1, scratch=sorted_there) as source:
            return RatingsOnDisk.write(source, store).load()


def read_file(path: Path, how: str) -> Ratings:
    return Ratings.read(path, scale=SCALE) if how == "memory" else stored(path, ReadOptions(scale=Scale(*SCALE)))


def written(rows: list[Row], quoting: bool, ending: str) -> str:
    """Return rows as text, quoted as they should be or not at all."""
    if not quoting:
        return "".join(",".join(row) + ending for row in rows)
    text = io.StringIO()
    csv.writer(text, lineterminator=ending).writerows(rows)
    return text.getvalue()


TEXT = as_texts(crowd_of("large", "large"))
FILES = {"ratings.csv": True, "ratings.dat": False, "ratings.csv.gz": True}  # and whether they have a header
quoted_lines = st.sampled_from(["a\nb", "a\rb", "\n", 'a"\n"b', "x\n7,3,4,5"])


@st.composite
def texts(draw: st.DrawFn) -> tuple[Joined, str, bool, str]:
    """Draw two worlds of text, the name of their file, whether fields are quoted, and what ends a line."""
    quoting = draw(st.booleans())
    worlds = draw(neighbours(st.one_of(hostile_texts, quoted_lines if quoting else st.just("a\rb"))))
    worlds = Joined(as_texts(worlds.crowd), as_texts([worlds.row])[0], worlds.place)
    return worlds, draw(st.sampled_from(sorted(FILES))), quoting, draw(st.sampled_from(["\n", "\r\n"]))


def check_text(drawn: tuple[Joined, str, bool, str], how: str, folder: Path) -> None:
    worlds, name, quoting, ending = drawn

    def read(rows: list[Row]) -> Ratings:
        content = written([NAMES, *rows] if FILES[name] else rows, quoting, ending).encode()
        (folder / name).write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
        return read_file(folder / name, how)

    check(read, worlds, (how, *drawn[1:]))


@given(drawn=texts())
@settings(max_examples=30)
def test_delimited_text(drawn: tuple[Joined, str, bool, str], folder: Path) -> None:
    check_text(drawn, "memory", folder)


@given(drawn=texts())
@settings(max_examples=8)
def test_delimited_text_through_a_store(drawn: tuple[Joined, str, bool, str], folder: Path) -> None:
    check_text(drawn, "store", folder)


@pytest.mark.parametrize("how", ["memory", "store"])
@pytest.mark.parametrize(
    "worlds",
    [
        Joined(TEXT, ("99", "3", "4", "12.5"), 0),
        Joined(TEXT, ("99", "3", "4", "2020-01-01"), 7),
        Joined(TEXT, ("99", "3", "4", ""), 9),
        Joined(TEXT, ("7.0", "3", "4", "5"), 0),
        Joined(TEXT, ("item", "user", "rating", "timestamp"), 0),
        Joined(TEXT, ("a;b;c;d", "3", "4", "5"), 0),
        Joined(TEXT, ('"99', "3", "4", "5"), 2),
        Joined(TEXT, ('"99', "3", "4", "5"), 2, (('99"', "3", "4", "5"),)),
        Joined(TEXT, ("99", "3", "4", '"5'), 0, (("99", "3", "4", '5"'),)),
    ],
)
def test_single_rows_of_text(how: str, worlds: Joined, folder: Path) -> None:
    check_text((worlds, "ratings.dat", False, "\n"), how, folder)


def check_parquet(worlds: Joined, how: str, folder: Path) -> None:
    def read(rows: list[Row]) -> Ratings:
        table = built(lambda columns: pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False), rows)
        pyarrow.parquet.write_table(table, folder / "ratings.parquet")
        return read_file(folder / "ratings.parquet", how)

    check(read, worlds, (how, "parquet"))


@given(worlds=neighbours(hostile_values))
@settings(max_examples=30)
def test_parquet(worlds: Joined, folder: Path) -> None:
    check_parquet(worlds, "memory", folder)


@given(worlds=neighbours(hostile_values))
@settings(max_examples=8)
def test_parquet_through_a_store(worlds: Joined, folder: Path) -> None:
    check_parquet(worlds, "store", folder)


@pytest.mark.parametrize("how", ["memory", "store"])
@pytest.mark.parametrize(
    ("users", "times", "row"),
    [
        ("small", "large", (99, 3, 4, 12.5)),
        ("large", "large", (7.0, 3, 4, 5)),
        ("small", "small", (99, 3, 2.5, 5)),
        ("small", "small", (99, 3, 4, None)),
    ],
)
def test_single_rows_of_parquet(how: str, users: str, times: str, row: Row, folder: Path) -> None:
    check_parquet(Joined(crowd_of(users, times), row, 0), how, folder)


@pytest.mark.parametrize("layout", ["netflix", "yahoo"])
@given(data=st.data())
@settings(max_examples=300)
def test_grouped_text(layout: str, folder: Path, data: st.DataObject) -> None:
    """Items are groups in the one and people in the other; the row that joins is a line of a group, or a group."""
    odd = st.sampled_from(["7", "1:", "7|", "3811", "2005-09-06", "20050906" * 3, "a\rb", "07"])
    hostile = data.draw(st.sets(st.integers(0, 3), max_size=2))
    usual = ("99", "3", "4", "2005")
    row: Any = tuple(data.draw(hostile_texts | odd) if place in hostile else usual[place] for place in range(4))
    pairs = [(user, item) for user in ("1", "7", "10") for item in ("3", "5")]
    crowd: list[Row] = [(*pair, value, time) for pair in pairs for value, time in (("4", "2004"), ("2", "2003"))]
    group, member, mark, separator = (1, 0, ":", ",") if layout == "netflix" else (0, 1, "|", "\t")

    def read(rows: list[Row]) -> Ratings:
        lines = []
        for head in dict.fromkeys(row[group] for row in rows):
            lines += [f"{head}{mark}"]
            lines += [separator.join((row[member], *row[2:])) for row in rows if row[group] == head]
        (folder / layout).write_bytes(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
        return Ratings.read(folder / layout, scale=SCALE, format=layout)

    check(read, Joined(crowd, row, data.draw(st.integers(0, len(crowd)))), layout)


@pytest.mark.parametrize("users", sorted(USERS))
@pytest.mark.parametrize("times", sorted(TIMES))
def test_an_ordinary_newcomer_is_read_from_memory(users: str, times: str) -> None:
    """Else the tests above could pass by refusing everything."""
    worlds = Joined(crowd_of(users, times), ("newcomer" if users == "text" else 99, 3, 4, TIMES[times](2)), 3)
    assert check(of_lists, worlds, "lists")
    for kind, make in IN_MEMORY.items():
        assert check(lambda rows, make=make: Ratings.of(make(columns_of(rows)), scale=SCALE), worlds, kind)  # type: ignore[misc]


@pytest.mark.parametrize("how", ["memory", "store"])
@pytest.mark.parametrize("users", sorted(USERS))
def test_an_ordinary_newcomer_is_read_from_files(users: str, how: str, folder: Path) -> None:
    worlds = Joined(crowd_of(users, "large"), ("newcomer" if users == "text" else 99, 3, 4, 5), 3)
    tables = [pd.DataFrame(columns_of(rows)) for rows in (worlds.crowd, worlds.both)]
    for name, write in (("ratings.csv", pd.DataFrame.to_csv), ("ratings.parquet", pd.DataFrame.to_parquet)):
        both = []
        for table in tables:
            write(table, folder / name, index=False)
            both.append(people(read_file(folder / name, how)))
        assert both[1] == both[0] | {str(worlds.row[0]): [("3", 4.0, 5)]}
