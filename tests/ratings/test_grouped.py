"""The Netflix Prize and Yahoo Music formats, in one file or many."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dpmf.ratings import Items, Ratings
from dpmf.ratings.formats import recognise

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table


@pytest.mark.parametrize(
    "names", [("combined_data_1.txt", "combined_data_2.txt"), ("mv_0000001.txt", "mv_0000002.txt")]
)
def test_netflix_files_in_a_folder_are_one_set_of_ratings(names: tuple[str, str], tmp_path: Path, table: Table) -> None:
    (tmp_path / names[0]).write_text("1:\n30,4,2005-09-06\n7,3,2005-09-05\n")
    (tmp_path / names[1]).write_bytes(b"2:\r\n7,5,2004-01-31\r\n\r\n")
    ratings = Ratings.read(tmp_path, scale=(1, 5))
    assert table(ratings) == {(7, 1): 3, (7, 2): 5, (30, 1): 4}
    assert ratings.timestamps is not None
    assert ratings.timestamps.tolist() == [20050905, 20040131, 20050906]


def test_yahoo_groups_are_users(tmp_path: Path, table: Table) -> None:
    (tmp_path / "train.txt").write_text("0|2\n507696\t90\t3811\t13:24:00\n137915\t70.5\t3811\t13:23:00\n4|1\n5\t0\t1\n")
    assert table(Ratings.read(tmp_path / "train.txt")) == {(0, 507696): 90, (0, 137915): 70.5, (4, 5): 0}


def test_a_byte_order_mark_and_packing_do_not_hide_the_format(tmp_path: Path, table: Table) -> None:
    (tmp_path / "marked.txt").write_text("\ufeff1:\n7,4,2005-09-06\n")
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(b"1:\n7,4,2005-09-06\n"))
    for name in ("marked.txt", "packed.txt.gz"):
        assert table(Ratings.read(tmp_path / name)) == {(7, 1): 4}


def test_every_line_has_a_date_or_none_has(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "one.txt").write_text("1:\n7,4\n8,3\n")
    assert Ratings.read(tmp_path / "one.txt").timestamps is None
    (tmp_path / "one.txt").write_text("1:\n7,4,2005-09-06\n8,3\n")
    with refused("some ratings have a date"):
        Ratings.read(tmp_path / "one.txt")


@pytest.mark.parametrize("line", ["9:,4,2005-09-06", "9:x", "09:", "07,4,2005-09-06", "7,4,20050000000000000906"])
def test_what_is_nearly_a_header_takes_no_ratings_from_others(line: str, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "one.txt").write_text(f"1:\n7,4,2005-09-06\n{line}\n8,3,2005-09-07\n")
    with refused("line 3"):
        Ratings.read(tmp_path / "one.txt")


def test_netflix_titles_may_have_commas_and_no_year(tmp_path: Path) -> None:
    path = tmp_path / "movie_titles.csv"
    path.write_bytes("1,2003,Dinosaur Planet\n2,NULL,Me, Myself \u0026 Am\u00e9lie\n".encode("latin-1"))
    items = Items.read(path, format="netflix", encoding="latin-1")
    assert list(items.ids) == [1, 2]
    assert items.titles == ("Dinosaur Planet (2003)", "Me, Myself & Am\u00e9lie")


@pytest.mark.parametrize(
    "line",
    [
        *("x,4,2005", "8,x,2005", "8,nan,2005", "8,,2005", "8", "8,.,2005", "8,4abc,2005", "8,4-5,2005"),
        *("8,1.2.3", "8x4", "8,1e5", "99999999999999999999,4,2005"),
    ],
)
def test_a_malformed_line_is_named(line: str, tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "one.txt"
    path.write_text(f"1:\n7,4,2005-09-06\n\n{line}\n")
    with refused("one.txt", "line 4", "netflix"):
        Ratings.read(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [("7,4,2005\n1:\n", ["line 1"]), ("1:\n", ["no ratings"]), ("", ["no ratings"])],
)
def test_a_file_in_another_format_is_refused(text: str, words: list[str], tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "one.txt"
    path.write_text(text)
    with refused(*words):
        Ratings.read(path, format="netflix")


@pytest.mark.parametrize(
    ("line", "expected"),
    [("17:", "netflix"), ("17:\r", "netflix"), ("17|3", "yahoo"), ("17|3|5", None), ("a:", None), ("user,item", None)],
)
def test_the_first_line_tells_the_format(line: str, expected: str | None, tmp_path: Path) -> None:
    path = tmp_path / "ratings.txt"
    path.write_bytes(f"{line}\n".encode())
    found = recognise(path)
    assert (None if found is None else found.name) == expected
