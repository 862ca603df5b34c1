"""Parquet files: ids keep their type, times become seconds, bad tables are refused."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from dpmf.ratings import Ratings

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

SECOND_OF_2020 = 1577836801
SECONDS = pa.array([SECOND_OF_2020])


def parquet_file(path: Path, **columns: Any) -> Path:
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([1, 2], pa.int16()), {1, 2}),
        (pa.array([1, 2], pa.uint64()), {1, 2}),
        (pa.array([1.0, 2.0]), {1, 2}),
        (pa.array([decimal.Decimal(1), decimal.Decimal(2)]), {1, 2}),
        (pa.array(["1", "2"]), {"1", "2"}),
        (pa.array(["007", "é"]).dictionary_encode(), {"007", "é"}),
    ],
)
def test_ids_keep_their_type(ids: Any, expected: set[object], tmp_path: Path) -> None:
    ratings = Ratings.read(parquet_file(tmp_path / "r.parquet", user=ids, item=ids, rating=[1, 2]))
    assert set(ratings.user_ids) == expected
    assert set(ratings.catalogue.ids) == expected


@pytest.mark.parametrize(
    "times",
    [
        SECONDS,
        SECONDS.cast(pa.float64()),
        SECONDS.cast(pa.string()),
        SECONDS.cast(pa.timestamp("s")),
        SECONDS.cast(pa.timestamp("s")).cast(pa.timestamp("ns")),
        SECONDS.cast(pa.timestamp("s", "America/New_York")),
    ],
    ids=lambda times: str(times.type),
)
def test_times_are_seconds(times: Any, tmp_path: Path) -> None:
    ratings = Ratings.read(parquet_file(tmp_path / "r.parquet", user=[1], item=[1], rating=[1], timestamp=times))
    assert ratings.timestamps is not None
    assert ratings.timestamps.tolist() == [SECOND_OF_2020]


@pytest.mark.parametrize("times", [[5.0, 2.0**53], [2.0**60, 2.0**60]])
def test_times_that_a_fraction_may_have_rounded_are_refused(
    times: list[float], tmp_path: Path, refused: Refused
) -> None:
    path = parquet_file(tmp_path / "r.parquet", user=[1, 2], item=[1, 2], rating=[1, 2], timestamp=times)
    with refused("r.parquet", "not exact, as is none from 9007199254740992 on"):
        Ratings.read(path)


def test_dates_are_times(tmp_path: Path) -> None:
    day = [datetime.date(2020, 1, 1)]
    ratings = Ratings.read(parquet_file(tmp_path / "r.parquet", user=[1], item=[1], rating=[1], timestamp=day))
    assert ratings.timestamps is not None
    assert ratings.timestamps.tolist() == [SECOND_OF_2020 - 1]


def test_columns_of_any_name_can_be_given(tmp_path: Path, table: Table) -> None:
    path = parquet_file(tmp_path / "r.PQ", **{'us"er': ["a"], "it em": ["b"], "r';--": [2]})
    ratings = Ratings.read(path, columns={"user": 'us"er', "item": 1, "rating": "r';--"})
    assert table(ratings) == {("a", "b"): 2}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"user": [1], "thing": [1], "rating": [1]}, ["column for the item", "user, thing, rating"]),
        ({"user": [1, None], "item": [1, 2], "rating": [1, 2]}, ["user in row 2"]),
        ({"user": [1, 2], "item": ["a", None], "rating": [1, 2]}, ["item in row 2"]),
        ({"user": pa.array([1, 2**63], pa.uint64()), "item": [1, 2], "rating": [1, 2]}, ["user ids", "row 2"]),
        ({"user": [1.0, 2.0**53], "item": [1, 2], "rating": [1, 2]}, ["user ids", "row 2"]),
        ({"user": [True, False], "item": [1, 2], "rating": [1, 2]}, ["user ids", "BOOLEAN"]),
        ({"user": [datetime.date(2020, 1, 1)], "item": [1], "rating": [1]}, ["user ids", "DATE"]),
        ({"user": [1], "item": [b"x"], "rating": [1]}, ["item ids", "BLOB"]),
        ({"user": [1.0, float("nan")], "item": [1, 2], "rating": [1, 2]}, ["user ids", "row 2"]),
        ({"user": [1, 2], "item": [1.5, 2.0], "rating": [1, 2]}, ["item ids", "row 1"]),
        ({"user": [1, 2], "item": [1, 2], "rating": [1, None]}, ["rating in row 2"]),
        ({"user": [1, 2], "item": [1, 2], "rating": ["1", "good"]}, ["rating in row 2"]),
        ({"user": [1], "item": [1], "rating": [[1]]}, ["rating in row 1"]),
        ({"user": pa.array([], pa.int64()), "item": pa.array([], pa.string()), "rating": pa.array([])}, ["no ratings"]),
    ],
)
def test_bad_tables_are_refused_in_one_line(
    columns: dict[str, Any], words: list[str], tmp_path: Path, refused: Refused
) -> None:
    path = parquet_file(tmp_path / "r.parquet", **columns)
    with refused(*words):
        Ratings.read(path, scale=(1, 5))


@pytest.mark.parametrize("damage", ["halved", "tail cut", "zeroed inside", "empty", "text"])
def test_damaged_files_are_refused_in_one_line(damage: str, tmp_path: Path, refused: Refused) -> None:
    path = parquet_file(tmp_path / "r.parquet", user=[1, 2], item=[1, 2], rating=[1, 2])
    whole = path.read_bytes()
    content = {
        "halved": whole[: len(whole) // 2],
        "tail cut": whole[:-10],
        "zeroed inside": whole[:20] + bytes(60) + whole[80:],
        "empty": b"",
        "text": b"user,item,rating\n1,2,3\n",
    }[damage]
    path.write_bytes(content)
    with refused("r.parquet"):
        Ratings.read(path)


def test_without_ratings_everything_counts_as_1_if_that_is_told(tmp_path: Path) -> None:
    path = parquet_file(tmp_path / "ratings.parquet", user=["ann", "bob"], item=[1, 2])
    assert Ratings.read(path, unrated=True).values.tolist() == [1.0, 1.0]
