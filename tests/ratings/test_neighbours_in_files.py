"""Whoever joins, with whatever values, changes nothing that is read of others from files; at most it is refused."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.errors import DpmfError
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.location import locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import RatingsOnDisk
from ratings.neighbours import (
    NAMES,
    SCALE,
    USERS,
    Joined,
    Row,
    as_texts,
    built,
    check,
    columns_of,
    crowd_of,
    hostile_texts,
    hostile_values,
    neighbours,
    people,
)


@pytest.fixture(autouse=True, scope="module")
def _silent() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


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


LINE_BY_LINE: dict[str, dict[str, Any]] = {
    "encoding": {"encoding": "latin-1"},
    "escape": {"escape": "\\"},
    "no quotes": {"quotes": False},
    "skip": {"bad_rows": "skip"},
    "skip without header": {
        "bad_rows": "skip",
        "delimiter": ",",
        "header": False,
        "columns": {"user": 0, "item": 1, "rating": 2, "timestamp": 3},
    },
}


@pytest.mark.parametrize("how", LINE_BY_LINE)
@given(drawn=texts())
@settings(max_examples=25)
def test_text_that_is_read_line_by_line(how: str, drawn: tuple[Joined, str, bool, str], folder: Path) -> None:
    worlds, _, quoting, ending = drawn
    options, name = LINE_BY_LINE[how], "ratings.csv"

    def read(rows: list[Row]) -> Ratings:
        text = written(rows if options.get("header") is False else [NAMES, *rows], quoting, ending)
        (folder / name).write_bytes(text.encode(options.get("encoding", "utf-8"), "replace"))
        return Ratings.read(folder / name, scale=SCALE, **options)

    check(read, worlds, (how, quoting, ending))


PERSONS = [("ann", "1", "", "5"), ("bob", "2", "3", ""), ("carl", "", "", "4")]
cells = st.one_of(st.sampled_from(["", "4", "99", "x", '"', "1,2", "a\nb", "1e999", "nan", "-0"]), hostile_texts)


@pytest.mark.parametrize("how", ["users are named", "and bad rows skipped", "lines are counted"])
@given(data=st.data())
@settings(max_examples=40)
def test_a_person_a_line(how: str, folder: Path, data: st.DataObject) -> None:
    """Without a column of users a line is somebody's place: who joins takes one that was empty."""
    named, options = how != "lines are counted", {"bad_rows": "skip"} if "skipped" in how else {}
    hostile, place = data.draw(st.tuples(cells, cells, cells)), data.draw(st.integers(0, len(PERSONS)))
    quoting = data.draw(st.booleans()) or not named

    def people_of(newcomer: tuple[str, ...] | None) -> dict[str, list[tuple[str, float, int | None]]]:
        lines = [",".join(one if named else one[1:]) + "\n" for one in PERSONS]
        text = io.StringIO()
        if newcomer is not None:
            row = ("newcomer", *newcomer) if named else newcomer
            csv.writer(text, lineterminator="").writerow(row) if quoting else text.write(",".join(row))
        lines.insert(place, text.getvalue() + "\n")
        head = ("user,a,b,c" if named else "a,b,c") + "\n"
        (folder / "wide.csv").write_bytes((head + "".join(lines)).encode("utf-8", "surrogatepass"))
        return people(Ratings.read(folder / "wide.csv", layout="wide", missing=99, scale=SCALE, **options))  # type: ignore[arg-type]

    before, newcomer = people_of(None), "newcomer" if named else str(place + 1)
    with contextlib.suppress(DpmfError):
        after = people_of(hostile)
        assert {user: rows for user, rows in after.items() if user != newcomer} == before
