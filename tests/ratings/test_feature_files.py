"""Files of item features, in every form; and lists of items with further columns."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.errors import DpmfError, InvalidArgument
from dpmf.ratings import Items, Ratings
from dpmf.ratings.feature_files import with_features
from dpmf.ratings.formats.database import open_database
from dpmf.ratings.store.columns import RatingsOnDisk
from dpmf.ratings.subset import select_items

N_ITEMS = 30
ITEMS = Items.of(range(1, N_ITEMS + 1))
MATRIX = np.random.default_rng(2).normal(size=(N_ITEMS, 4))


def csv_file(folder: Path) -> Path:
    path = folder / "features.csv"
    rows = [f"{item},{','.join(f'{x:.6f}' for x in MATRIX[item - 1])}" for item in reversed(range(1, N_ITEMS + 1))]
    path.write_text("\n".join(["movieId,a,b,c,d", *rows]) + "\n")
    return path


def npz_file(folder: Path) -> Path:
    np.savez(folder / "features.npz", item=np.arange(N_ITEMS, 0, -1), features=MATRIX[::-1])
    return folder / "features.npz"


def npy_file(folder: Path) -> Path:
    np.save(folder / "features.npy", MATRIX.astype(np.float32))
    return folder / "features.npy"


def parquet_file(folder: Path) -> Path:
    vectors = ", ".join(f"({item}, {MATRIX[item - 1].tolist()})" for item in range(N_ITEMS, 0, -1))
    with open_database() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {vectors}) AS v(item, embedding)")
        connection.execute(f"COPY t TO '{folder}/features.parquet' (FORMAT parquet)")
    return folder / "features.parquet"


@pytest.mark.parametrize("write", [npz_file, npy_file, parquet_file])
def test_a_matrix_is_the_same_from_every_form(write: Any, tmp_path: Path) -> None:
    path = write(tmp_path)
    (found,) = with_features(ITEMS, path).descriptions
    (expected,) = ITEMS.with_features(MATRIX).descriptions
    np.testing.assert_allclose(found.columns, expected.columns, atol=1e-5)
    assert found.digest == sha256(path.read_bytes()).hexdigest()


def test_all_columns_of_a_table_are_features(tmp_path: Path) -> None:
    items = with_features(ITEMS, csv_file(tmp_path))
    (found,) = items.descriptions
    assert found.what == "a, b, c and d of features.csv"
    assert found.columns.shape == (N_ITEMS, 8)  # each number, and its square
    part = select_items(_ratings(items), np.arange(5)).catalogue
    np.testing.assert_array_equal(part.descriptions[0].columns, found.columns[:5])


def _ratings(items: Items) -> Ratings:
    return Ratings.of([1] * N_ITEMS, range(1, N_ITEMS + 1), [3.0] * N_ITEMS, scale=(1, 5), items=items)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.npy", b"no", "cannot read"),
        ("x.npz", b"no", "cannot read"),
        ("x.csv", b"name,pages\nA,3\n", "no column of item ids"),
        ("x.csv", b"item,pages\n77,3\n", "none of the items"),
        ("x.csv", b"item,pages\n1,3\n1,4\n", "has the item '1' in lines"),
        ("x.csv", b"item,pages\n1,3\n2,3\n", "says the same of all items"),
        ("x.parquet", b"no", "cannot read"),
    ],
)
def test_other_files_are_refused_in_one_line(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DpmfError, match=said) as raised:
        with_features(ITEMS, tmp_path / name)
    assert "\n" not in str(raised.value)


def test_matrices_of_another_shape_or_with_infinite_numbers_are_refused(tmp_path: Path) -> None:
    for matrix in (MATRIX[:5], MATRIX[0], MATRIX.astype(str), np.where(MATRIX > 1, np.inf, MATRIX)):
        np.save(tmp_path / "x.npy", matrix)
        with pytest.raises(DpmfError):
            with_features(ITEMS, tmp_path / "x.npy")
        with pytest.raises(InvalidArgument):
            ITEMS.with_features(matrix)
    np.savez(tmp_path / "x.npz", features=MATRIX)
    with pytest.raises(InvalidArgument, match="no array 'item'"):
        with_features(ITEMS, tmp_path / "x.npz")
    with pytest.raises(InvalidArgument, match="no file"):
        with_features(ITEMS, tmp_path / "y.npz")


def test_ids_that_are_no_list_and_files_that_say_to_be_too_large_are_refused_in_one_line(tmp_path: Path) -> None:
    for ids in (np.array(3), np.arange(2 * N_ITEMS).reshape(N_ITEMS, 2)):
        np.savez(tmp_path / "x.npz", item=ids, features=MATRIX)
        with pytest.raises(InvalidArgument, match="ids and"):
            with_features(ITEMS, tmp_path / "x.npz")
    header: dict[str, Any] = {"descr": "<f8", "fortran_order": False, "shape": (N_ITEMS, 10**14)}
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(InvalidArgument, match="more than memory"):
        with_features(ITEMS, tmp_path / "x.npy")


def folder_of_ratings(folder: Path, **facts: Any) -> Path:
    rows = "".join(f"{user},{item},{1 + (user + item) % 5}\n" for user in range(9) for item in range(1, N_ITEMS))
    (folder / "ratings.csv").write_text("user,item,rating\n" + rows)
    lines = "".join(f"{item},T,X,{'red' if item % 3 else 'blue'},{item},{item}\n" for item in range(1, N_ITEMS + 1))
    (folder / "items.csv").write_text("item,title,genres,colour,vote_count,pages\n" + lines)
    (folder / "dataset.json").write_text(json.dumps({"scale": [1, 5], **facts}))
    return folder


def test_further_columns_of_a_list_describe_its_items(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ratings = Ratings.read(folder_of_ratings(tmp_path))
    (found,) = ratings.catalogue.descriptions
    assert found.what == "colour and pages of items.csv"
    assert "vote_count" in caplog.text
    assert not Items.read(tmp_path / "items.csv").descriptions  # unless they are asked for
    (tmp_path / "store").mkdir()
    stored = RatingsOnDisk.write(_Whole(ratings), tmp_path / "store")
    (kept,) = stored.catalogue.descriptions
    assert kept[:2] == found[:2]
    np.testing.assert_array_equal(kept.columns, found.columns)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        *(
            (one, False)
            for one in ("average_rating", "Votes", "salesRank", "members", "tags", "play_count", "popularity")
        ),
        *(
            (one, False)
            for one in ("stars", "average", "avg_grade", "times_seen", "also_viewed", "related", "watchers")
        ),
        *((one, True) for one in ("author", "pages", "language", "starring", "year", "publisher", "city", "playtime")),
    ],
)
def test_columns_that_seem_to_tell_of_people_are_left_out(name: str, told: bool, tmp_path: Path) -> None:
    lines = "".join(f"{item},{item % 7}\n" for item in range(1, N_ITEMS + 1))
    (tmp_path / "items.csv").write_text(f"item,{name}\n{lines}")
    assert bool(Items.read(tmp_path / "items.csv", further=True).descriptions) is told


def test_lists_with_texts_that_cannot_be_written_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    for content in ('{"item": "\\ud800"}', '{"item": "1", "title": "A \\udfff"}'):
        (tmp_path / "items.json").write_text(content + "\n")
        with pytest.raises(InvalidArgument, match="half a character"):
            Items.read(tmp_path / "items.json")
    with pytest.raises(InvalidArgument, match="give a text"):
        Items.of([1, 2], ["A", "\ud800"])
    assert Items.of([1], ["Amélie 𝄞"]).titles == ("Amélie 𝄞",)


class _Whole:
    """Ratings in memory as a source of one piece."""

    def __init__(self, ratings: Ratings) -> None:
        self.ratings = ratings

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ratings, name)

    def pieces(self) -> list[Ratings]:
        return [self.ratings]


def test_features_are_named_beside_the_ratings_or_given(tmp_path: Path) -> None:
    npz_file(tmp_path)
    named = Ratings.read(folder_of_ratings(tmp_path, item_features="features.npz", file="ratings.csv"))
    assert [one.what for one in named.catalogue.descriptions][1] == "the matrix in features.npz"
    assert not Ratings.read(tmp_path, items=ITEMS).catalogue.descriptions  # they are of the list beside them
    given = Ratings.read(tmp_path, item_features=csv_file(tmp_path))
    assert [one.what for one in given.catalogue.descriptions][1] == "a, b, c and d of features.csv"
    with pytest.raises(InvalidArgument, match="describes a public list of items"):
        Ratings.read(tmp_path / "ratings.csv", item_features=tmp_path / "features.csv")
    (tmp_path / "dataset.json").write_text(json.dumps({"item_features": "gone.npy", "file": "ratings.csv"}))
    with pytest.raises(DpmfError, match="should name a file beside it"):
        Ratings.read(tmp_path)
