"""Catalogues: read from files of many layouts, searched by id and title, refused when they make no sense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpmf.ratings import Items

if TYPE_CHECKING:
    from ratings.conftest import Refused


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("item,title,genres\n1,Heat,Crime|Drama\n2,Up,\n", {}),
        ("\ufeffitem,title,genres\r\n1,Heat,Crime|Drama\r\n2,Up,\r\n\r\n", {}),
        ("genres,year,title,item\nCrime|Drama,1995,Heat,1\n,2009,Up,2\n", {}),
        (
            "movieId,name,genre\n1,Heat,Crime|Drama\n2,Up,\n",
            {"columns": {"item": "movieId", "title": "name", "genres": "genre"}},
        ),
        ("1::Heat::Crime|Drama\n2::Up::\n", {"delimiter": "::", "header": False}),
        ("\ufeff1\tHeat\tCrime|Drama\n2\tUp\t\n", {"delimiter": "\t", "header": False}),
        (
            "Heat;x;1;Crime|Drama\nUp;y;2\n",
            {"delimiter": ";", "header": False, "columns": {"item": 2, "title": 0, "genres": 3}},
        ),
    ],
)
def test_catalogues_of_many_layouts_are_read(text: str, options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(text, newline="")
    items = Items.read(tmp_path / "items.csv", **options)
    assert list(items.ids) == [1, 2]
    assert items.titles == ("Heat", "Up")
    assert items.genres == ("Crime|Drama", "")
    assert items.declared


def test_an_item_without_title_is_called_by_its_id(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,title\n007,\nx,Up\n")
    assert Items.read(tmp_path / "items.csv").titles == ("007", "Up")
    assert Items.of([7]).titles == ("7",)


def test_quotes_delimiters_and_encodings_in_titles_survive(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_bytes('item,title\n1,"Am\u00e9lie, ""le\nfilm"""\n'.encode("latin-1"))
    assert Items.read(tmp_path / "items.csv", encoding="latin-1").titles == ('Am\u00e9lie, "le\nfilm"',)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["lists no item"]),
        (b"item,title\n", ["lists no item"]),
        (b"number,title\n1,Heat\n", ["number, title", "item_columns"]),
        (b'"item\n', ["no item"]),
        (b"item,title\n1,Heat\n,Up\n", ["line 3"]),
        (b"item\n1\n2\n1\n", ["'1' in lines 2 and 4"]),
        (b'item\n"' + b"x" * 200_000 + b'"\n', ["CSV"]),
    ],
)
def test_a_bad_catalogue_is_refused_in_one_line(
    content: bytes, words: list[str], tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / "items.csv").write_bytes(content)
    with refused(*words):
        Items.read(tmp_path / "items.csv")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoding": "utf-99"}, ["utf-99"]),
        ({"encoding": "utf-16"}, ["not utf-16 text"]),
        ({"columns": {"isbn": 0}}, ["'isbn'", "item, title, genres"]),
        ({"delimiter": ""}, ["delimiter"]),
        ({"format": "xls"}, ["format='xls'"]),
        ({"columns": {"item": "movie"}}, ["'movie'", "item"]),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(
    options: dict[str, Any], words: list[str], tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / "items.csv").write_text("item\n1\n")
    with refused(*words):
        Items.read(tmp_path / "items.csv", **options)


def test_a_catalogue_that_is_not_a_file_is_refused(tmp_path: Path, refused: Refused) -> None:
    with refused("no file", "absent.csv"):
        Items.read(tmp_path / "absent.csv")
    with refused(str(tmp_path), "directory"):
        Items.read(tmp_path)


def test_an_item_is_found_by_id_first_then_by_exact_title(refused: Refused) -> None:
    items = Items.of([1, 2, 3, 4], ["2", "Heat", "Up", "Up"])
    assert items.find(1) == 0
    assert items.find("2") == 1
    assert items.find("Heat") == 1
    assert items.find("heat") is None
    assert items.close_titles("HEA") == ["Heat"]
    with refused("'Up'", "several"):
        items.find("Up")


def test_integers_and_their_texts_are_the_same_item() -> None:
    for items in (Items.of([7, 1]), Items.of(["7", "1"]), Items.of(["7", "x"])):
        assert [items.find(one) for one in (7, "7", np.int32(7), "07", " 7")] == [0, 0, 0, None, None]


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pl.Series, pa.array])
def test_ids_may_come_in_any_kind_of_column(kind: Callable[[Any], Any]) -> None:
    assert list(Items.of(kind([5, 3])).ids) == [5, 3]
    assert list(Items.of(kind(["b", "a"])).ids) == ["b", "a"]


def test_titles_must_be_as_many_as_ids(refused: Refused) -> None:
    with refused("2 items", "1 titles"):
        Items.of([1, 2], ["Heat"])


@pytest.mark.parametrize("odd", [None, 7, float("nan"), b"Heat", ["Heat"]])
def test_titles_and_genres_are_texts(odd: Any, refused: Refused) -> None:
    with refused("item 20 has the title", repr(odd), "give a text"):
        Items.of([10, 20], ["Heat", odd])
    with refused("item 10 has the genres"):
        Items.of([10, 20], genres=pd.Series([odd, "Crime"], index=[5, 6]))
    assert Items.of([10, 20], list(np.array(["Heat", "Up"]))).titles == ("Heat", "Up")
