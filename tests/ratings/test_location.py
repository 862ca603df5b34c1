"""Ratings are found by file, folder or name, with what is declared about them; what is wrong is said in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from dpmf.ratings import Items, Ratings

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

HEADER = "user,item,rating\n"


def folder_with(folder: Path, **files: str | bytes) -> Path:
    """Make a folder; `ratings_csv="…"` becomes the file ratings.csv."""
    folder.mkdir()
    for name, content in files.items():
        path = folder / ".".join(name.rsplit("_", 1))
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def parquet_bytes(**columns: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())


def test_a_folder_declares_scale_name_and_catalogue(tmp_path: Path, table: Table) -> None:
    folder = folder_with(
        tmp_path / "mine",
        ratings_parquet=parquet_bytes(user=["ann"], item=[7], rating=[4.0]),
        items_csv='item,title,genres\n7,"Heat, (1995)",Crime\n8,Up,\n',
        dataset_json=json.dumps({"name": "Mine", "scale": [1, 5], "users_about": 10}),
    )
    ratings = Ratings.read(folder)
    assert table(ratings) == {("ann", 7): 4.0}
    assert ratings.name == "Mine"
    assert (ratings.scale.lo, ratings.scale.hi, ratings.scale.declared) == (1, 5, True)
    assert ratings.users_about == 10
    assert ratings.split(0.5)[0].users_about == 10
    assert Ratings.read(folder, users_about=20).users_about == 20
    assert ratings.catalogue.declared
    assert ratings.catalogue.titles == ("Heat, (1995)", "Up")


def test_a_folder_that_declares_nothing_gives_nothing_declared(tmp_path: Path) -> None:
    ratings = Ratings.read(folder_with(tmp_path / "bare", ratings_csv=HEADER + "a,x,2\na,y,4\n"))
    assert ratings.name == "bare"
    assert ratings.users_about is None  # it is never counted
    assert (ratings.scale.lo, ratings.scale.hi, ratings.scale.declared) == (2, 4, False)
    assert not ratings.catalogue.declared


def test_what_is_given_wins_over_what_the_folder_declares(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path / "mine",
        ratings_csv=HEADER + "a,x,2\n",
        items_csv="item\nx\ny\n",
        dataset_json='{"scale": [1, 5]}',
    )
    ratings = Ratings.read(str(folder), scale=(0, 10), items=Items.of(["x"]))
    assert ratings.scale.hi == 10
    assert len(ratings.catalogue) == 1


def test_a_byte_order_mark_in_the_public_files_is_no_part_of_them(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path / "mine",
        ratings_csv=HEADER + "a,1,2\n",
        items_csv='\ufeff"item","title"\n1,One\n',
        dataset_json='\ufeff{"name": "Mine"}',
    )
    assert Ratings.read(folder).catalogue.titles == ("One",)
    assert Ratings.read(folder).name == "Mine"


@pytest.mark.parametrize(
    ("rated", "listed", "expected"),
    [
        (["1", "2", "x"], ["1", "2"], {1, 2}),
        (["1", "2"], ["1", "2", "x"], {"1", "2"}),
        (["1", "2"], ["01", "2"], {"2"}),
    ],
)
def test_integers_on_one_side_and_texts_on_the_other_are_the_same_ids(
    rated: list[str], listed: list[str], expected: set[object], tmp_path: Path, table: Table
) -> None:
    folder = folder_with(
        tmp_path / "mine",
        ratings_csv=HEADER + "".join(f"a,{item},3\n" for item in rated),
        items_csv="\n".join(["item", *listed]),
    )
    assert {item for _, item in table(Ratings.read(folder))} == expected


def test_catalogue_names_and_files_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    (tmp_path / "movielens-100k").mkdir()
    (tmp_path / "movielens-100k" / "u.data").write_text("7\t2\t3\t881250949\n7\t9\t5\t881250950\n")
    (tmp_path / "movielens-100k" / "u.item").write_bytes("1|Am\u00e9lie|x\n2|Heat|x\n".encode("latin-1"))
    ratings = Ratings.read("movielens-100k")
    assert table(ratings) == {("7", 2): 3}
    assert (ratings.scale.lo, ratings.scale.hi, ratings.scale.declared) == (1, 5, True)
    assert ratings.catalogue.titles == ("Am\u00e9lie", "Heat")


def test_text_and_parquet_of_the_same_ratings_are_the_same(tmp_path: Path) -> None:
    """Ids are texts in the one and integers in the other, and both fit a catalogue of integers."""
    frame = pd.DataFrame({"user": [10, 9, 9, 1], "item": [20, 3, 20, 3], "rating": [1, 2, 3, 4], "time": [4, 3, 2, 1]})
    (tmp_path / "items.csv").write_text("item,title\n3,Heat\n20,Up\n5,Alien\n")
    frame.to_csv(tmp_path / "r.csv", index=False)
    frame.to_parquet(tmp_path / "r.parquet")
    text, typed = (Ratings.read(tmp_path / name, items=tmp_path / "items.csv") for name in ("r.csv", "r.parquet"))
    assert (list(text.user_ids), list(typed.user_ids)) == (["1", "9", "10"], [1, 9, 10])
    assert text.user_ids == typed.user_ids
    assert text.catalogue.ids == typed.catalogue.ids
    for name in ("indptr", "items", "values", "timestamps"):
        np.testing.assert_array_equal(getattr(text, name), getattr(typed, name))
    for one, other in zip(text.split(0.5, seed=3), typed.split(0.5, seed=3), strict=True):
        np.testing.assert_array_equal(one.indptr, other.indptr)


def test_a_name_in_the_catalogue_that_is_not_here_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    with refused("movielens-1m", "dpmf data fetch movielens-1m"):
        Ratings.read("movielens-1m")
    with refused("netflix", "Kaggle"):
        Ratings.read("netflix")


def test_synthetic_ratings_are_generated() -> None:
    assert Ratings.read("synthetic").name == "synthetic"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, ["holds no ratings"]),
        ({"notes_txt": "x"}, ["notes.txt is not a table of ratings"]),
        ({"notes_txt": "x", "my-ratings_txt": "y"}, ["known by its name", "name one, as in", "mine/my-ratings.txt"]),
        ({"ratings_csv": HEADER + "a,1,3\n", "dataset_json": '{"scale": [1, 5'}, ["dataset.json", "not JSON"]),
        ({"ratings_csv": HEADER + "a,1,3\n", "dataset_json": b'{"name": "\xe9"}'}, ["dataset.json", "not JSON"]),
        ({"ratings_csv": HEADER + "a,1,3\n", "dataset_json": "[1, 5]"}, ["dataset.json", "object"]),
        ({"ratings_csv": HEADER + "a,1,3\n", "dataset_json": '{"scale": "1:5"}'}, ["dataset.json", "two numbers"]),
        ({"ratings_csv": HEADER + "a,1,3\n", "dataset_json": '{"scale": [1, 2, 3]}'}, ["dataset.json", "two numbers"]),
        ({"ratings_csv": HEADER + "a,1,3\n", "dataset_json": '{"scale": [5, 1]}'}, ["dataset.json", "5:1"]),
        ({"ratings_csv": HEADER + "a,1,3\n", "dataset_json": '{"scale": [1, Infinity]}'}, ["dataset.json", "inf"]),
        ({"ratings_csv": HEADER + "a,1,3\n", "dataset_json": '{"users_about": 0}'}, ["dataset.json", "users_about=0"]),
        (
            {"ratings_csv": HEADER + "a,1,3\n", "dataset_json": '{"users_about": "9"}'},
            ["dataset.json", "users_about='9'"],
        ),
        ({"ratings_csv": HEADER + "a,1,3\n", "dataset_json": '{"users_about": true}'}, ["users_about=True"]),
        ({"ratings_csv": HEADER + "a,1,3\n", "dataset_json": '{"scale": [1, 1' + 400 * "0" + "]}"}, ["dataset.json"]),
        ({"ratings_csv": HEADER + "a,1,3\n", "items_csv": b"number\n1\n"}, ["items.csv", "no column of item ids"]),
        ({"ratings_csv": HEADER + "a,1,3\n", "items_csv": "item\n9\n"}, ["none of the items", "'1'", "has 9"]),
        ({"combined_data_1_txt": "1:\n7,4,2005\n8,?,2005\n"}, ["combined_data_1.txt", "line 3"]),
    ],
)
def test_a_bad_folder_is_refused_in_one_line(
    files: dict[str, str | bytes], words: list[str], tmp_path: Path, refused: Refused
) -> None:
    with refused(*words):
        Ratings.read(folder_with(tmp_path / "mine", **files))


def test_a_folder_in_place_of_a_file_of_facts_is_refused(tmp_path: Path, refused: Refused) -> None:
    folder = folder_with(tmp_path / "mine", ratings_csv=HEADER + "a,1,3\n")
    (folder / "dataset.json").mkdir()
    with refused("dataset.json"):
        Ratings.read(folder)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "xls"}, ["format='xls'", "csv"]),
        ({"duplicates": "newest"}, ["duplicates='newest'", "last"]),
        ({"memory": "lots"}, ["memory='lots'", "2GB"]),
        ({"scale": (5, 1)}, ["5:1"]),
        ({"scale": (1,)}, ["scale=(1,)"]),
        ({"scale": "1-5"}, ["scale '1-5'"]),
        ({"scale": (1, float("nan"))}, ["1:nan"]),
        ({"columns": {"person": "user"}}, ["'person'", "user, item, rating"]),
        ({"columns": {"user": "nobody"}}, ["'nobody'", "user, item, rating"]),
        ({"columns": {"user": 3}}, ["column 3"]),
        ({"columns": {"user": -1}}, ["column -1"]),
        ({"columns": {"timestamp": "when"}}, ["'when'"]),
        ({"delimiter": "|"}, ["no column"]),
        ({"delimiter": "-----"}, ["no column"]),
        ({"header": False, "columns": {"user": "user"}}, ["'user'", "3 unnamed columns"]),
        ({"items": "no/such/file.csv"}, ["no/such/file.csv"]),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(
    options: dict[str, Any], words: list[str], tmp_path: Path, refused: Refused
) -> None:
    path = tmp_path / "r.csv"
    path.write_text(HEADER + "a,b,3\n")
    with refused(*words):
        Ratings.read(path, **options)


@pytest.mark.parametrize("source", ["no/such/file.csv", "movielens-1000m"])
def test_a_source_that_is_not_there_is_named(source: str, refused: Refused) -> None:
    with refused(source):
        Ratings.read(source)
