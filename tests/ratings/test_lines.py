"""Text that is read line by line: encodings, escapes, bad rows, and a user a line, in the forms that are published."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.location import locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import RatingsOnDisk

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

BOOK_RATINGS = (
    b'"User-ID";"ISBN";"Book-Rating"\r\n"276725";"034545104X";"0"\r\n"276726";"0155061224";"5"\r\n'
    b'"276727";"\\"0446520802";"10"\r\n"276729";"05\xe9";"3"\r\n'
)
BOOKS = {("276726", "0155061224"): 5.0, ("276727", '"0446520802'): 10.0, ("276729", "05é"): 3.0}
BOOKS_GIVEN: dict[str, Any] = {"encoding": "latin-1", "escape": "\\", "missing": 0, "scale": (1, 10)}
JOKES = "2,-7.82,99,9.5\n0,99,99,99\n1,99,0.5,99\n"
JOKES_GIVEN: dict[str, Any] = {"layout": "wide", "header": False, "leading": 1, "missing": 99, "scale": (-10, 10)}
JOKES_READ = {("1", "1"): -7.82, ("1", "3"): 9.5, ("3", "2"): 0.5}


def ingested(path: Path, **given: Any) -> Ratings:
    """Return ratings that went through the disk, as `dpmf data ingest` reads them."""
    scratch, store = path.parent / "sorted", path.parent / "store"
    scratch.mkdir()
    store.mkdir()
    with locate(path, ReadOptions(**given | {"scale": Scale(*given["scale"])})).stream(
        memory=1, scratch=scratch
    ) as source:
        return RatingsOnDisk.write(source, store).load()


@pytest.mark.parametrize("read", [Ratings.read, ingested])
@pytest.mark.parametrize("name", ["BX-Book-Ratings.csv", "ratings.csv.gz"])
def test_book_crossing_is_read_as_published(name: str, read: Any, tmp_path: Path, table: Table) -> None:
    (tmp_path / name).write_bytes(gzip.compress(BOOK_RATINGS) if name.endswith("gz") else BOOK_RATINGS)
    assert table(read(tmp_path / name, **BOOKS_GIVEN)) == BOOKS


@pytest.mark.parametrize("read", [Ratings.read, ingested])
def test_jester_is_read_as_published(read: Any, tmp_path: Path, table: Table) -> None:
    (tmp_path / "jester-data-1.csv").write_text(JOKES)
    ratings = read(tmp_path / "jester-data-1.csv", **JOKES_GIVEN)
    assert table(ratings) == pytest.approx(JOKES_READ)
    assert list(ratings.catalogue.ids) == ["1", "2", "3"]
    assert not ratings.catalogue.declared


def test_a_wide_file_may_name_users_and_items(tmp_path: Path, table: Table) -> None:
    (tmp_path / "m.csv").write_text("user,Heat,Up\nann,4,\nbob,,2\n\nann,5,1\n")
    ratings = Ratings.read(tmp_path / "m.csv", layout="wide", scale=(1, 5))
    assert table(ratings) == {("ann", "Heat"): 5, ("ann", "Up"): 1, ("bob", "Up"): 2}
    chosen = Ratings.read(tmp_path / "m.csv", layout="wide", columns={"user": 0}, items=Items.of(["Up"]), scale=(1, 5))
    assert table(chosen) == {("ann", "Up"): 1, ("bob", "Up"): 2}


@pytest.mark.parametrize(
    ("text", "given", "words"),
    [
        (JOKES, {"header": None}, ["should name the columns", "header"]),
        (JOKES, {"missing": None}, ["line 1", "off the scale -10:10", "missing"]),
        (JOKES, {"bad_rows": "skip"}, ["no header", "bad_rows='skip'"]),
        (JOKES, {"columns": {"item": 1}}, ["only a user"]),
        (JOKES, {"columns": {"user": 9}}, ["no column 9"]),
        (JOKES, {"leading": 4}, ["none of which is left"]),
        (JOKES, {"leading": -1}, ["leading=-1"]),
        (JOKES, {"layout": "long"}, ["leading", "layout='wide'"]),
        (JOKES, {"layout": "high", "leading": None}, ["layout='high'", "long, wide"]),
        (JOKES, {"escape": "ab"}, ["escape='ab'"]),
        (JOKES, {"encoding": "utf-16"}, ["encoding='utf-16'", "latin-1"]),
        ("1,1,1,1\n1,2\n", {}, ["line 2", "2 columns instead of 4"]),
        ("1,2,x,3\n", {}, ["line 1", "not a number"]),
        ("a,b\n1,2\n", {"header": None, "leading": None, "bad_rows": "skip"}, ["lines are counted", "bad_rows='skip'"]),
        ("user,a,a\nann,1,2\n", {"header": None, "leading": None}, ["every item once"]),
        ("1;2,3;4,5\n", {"leading": None}, ["';' or ','"]),
    ],
)
def test_what_a_wide_file_leaves_open_is_asked(
    text: str, given: dict[str, Any], words: list[str], tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / "m.csv").write_text(text)
    with refused(*words):
        Ratings.read(tmp_path / "m.csv", **JOKES_GIVEN | given)


def test_many_columns_without_names_are_a_question(tmp_path: Path, table: Table, refused: Refused) -> None:
    (tmp_path / "m.csv").write_text("1,2,3,4,5\n")
    for header in (None, False):
        with refused("5 unnamed columns", "layout='wide'", "columns={'user': …}"):
            Ratings.read(tmp_path / "m.csv", header=header)
    named = Ratings.read(tmp_path / "m.csv", header=False, columns={"user": 4, "item": 0, "rating": 1})
    assert table(named) == {("5", "1"): 2}


BAD = 'ann,1,5\nbob,1\ncarl,1,x\ndora,1,9\nemil,,3\n,1,3\nfred,1,4\ngerd,"1,4\nhans,1,1e999\nina,1,\n'


@pytest.mark.parametrize("read", [Ratings.read, ingested])
def test_bad_rows_are_skipped_and_told(
    read: Any, tmp_path: Path, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "r.csv").write_text("user,item,rating\n" + BAD + 'gerd,"1",2\n')
    with caplog.at_level(logging.WARNING):
        ratings = read(tmp_path / "r.csv", bad_rows="skip", scale=(1, 5))
    assert table(ratings) == {("ann", "1"): 5, ("fred", "1"): 4, ("gerd", "1"): 2}
    assert "8 bad rows" in caplog.text
    assert "line 3 has 2 columns instead of 3; line 4 has a rating that is not a number; line 5 has" in caplog.text
    assert "ann" not in caplog.messages[0]
    assert "dora" not in caplog.messages[0]


def test_bad_rows_of_a_file_without_header_are_not_told_by_its_first(
    tmp_path: Path, table: Table, refused: Refused
) -> None:
    (tmp_path / "r.dat").write_text("x,y,z\n" + BAD)
    given: dict[str, Any] = {"bad_rows": "skip", "scale": (1, 5)}
    for left_out in ("delimiter", "columns"):
        full = given | {"delimiter": ",", "columns": {"user": 0, "item": 1, "rating": 2}, "header": False}
        del full[left_out]
        with refused("r.dat"):
            Ratings.read(tmp_path / "r.dat", **full)
    read = Ratings.read(
        tmp_path / "r.dat", header=False, delimiter=",", columns={"user": 0, "item": 1, "rating": 2}, **given
    )
    assert table(read) == {("ann", "1"): 5, ("fred", "1"): 4}


def test_a_bad_row_is_refused_otherwise(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "r.csv").write_bytes(b"user,item,rating\nann,1,5\n\x81,1,4\n")
    with refused("line 3", "not cp1252 text", "bad_rows='skip'"):
        Ratings.read(tmp_path / "r.csv", encoding="cp1252")
    with refused("encoding", "parquet format"):
        Ratings.read(tmp_path / "r.csv", encoding="cp1252", format="parquet")
