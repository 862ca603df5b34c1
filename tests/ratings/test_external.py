"""Ratings sorted on the disk: together the pieces are what reading into memory gives."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.location import locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import Source
from dpmf.ratings.store.pieces import pieces_of
from dpmf.ratings.times import UNKNOWN

ROWS = 3000
SCALE = Scale(1, 5)


def table(kind: str, seed: int = 0) -> pl.DataFrame:
    """Return ratings with repeated pairs and times, by integer or text ids."""
    rng = np.random.default_rng(seed)
    users, items = rng.integers(0, 90, ROWS), rng.integers(0, 40, ROWS)
    columns = {
        "user": [f"u{user:03d}" for user in users] if kind == "text" else users,
        "item": [f"item {item}" for item in items] if kind == "text" else items * 1_000_003,
        "rating": rng.integers(1, 6, ROWS).astype(np.float32),
        "timestamp": rng.integers(0, 50, ROWS),
    }
    return pl.DataFrame(columns)


def stream(path: Path, scratch: Path, **options: Any) -> AbstractContextManager[Source]:
    """Open ratings for streaming with as little memory as there can be."""
    return locate(path, ReadOptions(**options)).stream(memory=1, scratch=scratch)


def assert_same(path: Path, tmp_path: Path, **options: Any) -> None:
    inside = Ratings.read(path, **options)
    (tmp_path / "scratch").mkdir()
    with stream(path, tmp_path / "scratch", **options) as outside:
        pieces = list(outside.pieces())
    assert len(pieces) > 1
    assert outside.user_ids == inside.user_ids
    assert outside.catalogue.ids == inside.catalogue.ids
    assert outside.scale == inside.scale
    assert sum(map(len, pieces)) == len(inside)
    (whole,) = pieces_of(inside, inside.n_users)
    for name in ("items", "values"):
        np.testing.assert_array_equal(np.concatenate([getattr(piece, name) for piece in pieces]), getattr(whole, name))
    np.testing.assert_array_equal(np.concatenate([np.diff(piece.indptr) for piece in pieces]), np.diff(whole.indptr))
    assert [user for piece in pieces for user in piece.user_ids] == list(whole.user_ids)


@pytest.mark.parametrize("duplicates", ["last", "first", "mean"])
@pytest.mark.parametrize("kind", ["text", "integers"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_pieces_are_the_ratings_in_memory(tmp_path: Path, ending: str, kind: str, duplicates: str) -> None:
    path = tmp_path / f"ratings.{ending}"
    table(kind).write_csv(path) if ending == "csv" else table(kind).write_parquet(path)
    assert_same(path, tmp_path, scale=SCALE, duplicates=duplicates)


def test_without_times_the_row_decides(tmp_path: Path) -> None:
    table("text").drop("timestamp").write_csv(tmp_path / "ratings.csv")
    assert_same(tmp_path / "ratings.csv", tmp_path, scale=SCALE)


def test_a_scale_must_be_known_beforehand(tmp_path: Path) -> None:
    table("text").write_csv(tmp_path / "ratings.csv")
    with (
        pytest.raises(InvalidArgument, match="give scale="),
        stream(tmp_path / "ratings.csv", tmp_path),
    ):
        pass


@pytest.mark.parametrize(
    ("change", "duplicates"),
    [
        (pl.col("timestamp") * 1_000_000 + 1_600_000_000_000_000, "last"),
        (pl.col("timestamp") / 7, "last"),
        (pl.col("timestamp") + 2**60, "last"),
        (pl.col("timestamp").cast(pl.Decimal(10, 2)) / 8, "first"),
        (pl.from_epoch(pl.col("timestamp") - 25, "s"), "last"),
        (pl.from_epoch(pl.col("timestamp") - 25, "d"), "first"),
        (pl.from_epoch(pl.col("timestamp") * 99_999_999 - 25, "us"), "last"),
        ((pl.col("timestamp") / 8).cast(pl.String), "last"),
        (pl.from_epoch(pl.col("timestamp") * 99_999_999 - 25, "us").cast(pl.String), "first"),
        (pl.lit(None), "last"),
        (pl.lit("soon"), "first"),
    ],
)
def test_times_of_any_kind_decide_alike(tmp_path: Path, change: pl.Expr, duplicates: str) -> None:
    table("integers").with_columns(change.alias("timestamp")).write_parquet(tmp_path / "ratings.parquet")
    assert_same(tmp_path / "ratings.parquet", tmp_path, scale=SCALE, duplicates=duplicates)


def test_empty_cells_may_mean_no_rating(tmp_path: Path) -> None:
    table("text").with_columns(pl.col("rating").replace(4.0, None)).write_csv(tmp_path / "ratings.csv")
    assert_same(tmp_path / "ratings.csv", tmp_path, scale=SCALE, missing=float("nan"))


@pytest.mark.parametrize("missing", [3.0, None])
def test_a_catalogue_and_missing_values_are_heeded(tmp_path: Path, missing: float | None) -> None:
    table("integers").write_parquet(tmp_path / "ratings.parquet")
    catalogue = Items.of(np.arange(60)[::-1] * 1_000_003)
    assert_same(tmp_path / "ratings.parquet", tmp_path, scale=SCALE, items=catalogue, missing=missing)


@pytest.mark.parametrize(("value", "complaint"), [("9", "row 3 is .*off the scale 1:5"), ("x", "row 3"), ("", "row 3")])
def test_what_is_no_rating_is_refused_with_its_row(tmp_path: Path, value: str, complaint: str) -> None:
    (tmp_path / "r.csv").write_text(f"user,item,rating\n1,1,5\n1,2,{value}\n")
    with (
        pytest.raises(InvalidRatings, match=complaint),
        stream(tmp_path / "r.csv", tmp_path, scale=SCALE),
    ):
        pass


def test_text_ids_outside_the_catalogue_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table("text").write_csv(tmp_path / "ratings.csv")
    catalogue = Items.of([f"item {item}" for item in range(5, 45)])
    assert_same(tmp_path / "ratings.csv", tmp_path, scale=SCALE, items=catalogue)
    assert caplog.text.count("ratings of items outside the catalogue are left out") == 2  # in memory, and on disk


def test_nothing_in_the_catalogue_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("user,item,rating\n1,1,5\n")
    with (
        pytest.raises(InvalidRatings, match="no ratings"),
        stream(tmp_path / "r.csv", tmp_path, scale=SCALE, items=Items.of([7])),
    ):
        pass


def test_grouped_formats_need_memory(tmp_path: Path) -> None:
    (tmp_path / "combined_data_1.txt").write_text("1:\n7,4,2005-09-06\n")
    with (
        pytest.raises(InvalidArgument, match="ingest it first"),
        stream(tmp_path / "combined_data_1.txt", tmp_path),
    ):
        pass


def test_people_without_ratings_have_no_times_and_take_none_away(tmp_path: Path) -> None:
    lines = ["user,item,rating,timestamp"]
    lines += [f"{user},{item},{-1 if user in (3, 7) else 4},{item}" for user in range(10) for item in range(1200)]
    (tmp_path / "r.csv").write_text("\n".join(lines))
    (tmp_path / "scratch").mkdir()
    with stream(tmp_path / "r.csv", tmp_path / "scratch", scale=SCALE, missing=-1) as outside:
        pieces = list(outside.pieces())
    assert any(not len(piece) for piece in pieces)
    assert all(piece.timestamps is not None for piece in pieces)


def test_times_of_some_do_not_choose_among_duplicates(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("user,item,rating,timestamp\n1,1,1,5\n1,1,2,4\n2,1,1,soon\n")
    (tmp_path / "scratch").mkdir()
    with (
        pytest.raises(InvalidRatings, match="time in row 4 is neither"),
        stream(tmp_path / "r.csv", tmp_path / "scratch", scale=SCALE) as outside,
    ):
        list(outside.pieces())


def test_a_missing_time_is_earlier_than_any_other(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("user,item,rating,timestamp\n1,1,1,-5.5\n1,1,2,\n2,1,1,\n2,1,3,\n")
    (tmp_path / "scratch").mkdir()
    with stream(tmp_path / "r.csv", tmp_path / "scratch", scale=SCALE) as outside:
        pieces = list(outside.pieces())
    found = [(piece.values.tolist(), [] if piece.timestamps is None else piece.timestamps.tolist()) for piece in pieces]
    known = Ratings.read(tmp_path / "r.csv", scale=SCALE)
    assert known.timestamps is not None
    assert known.timestamps.tolist() == [-6, UNKNOWN]
    assert sorted(value for values, _ in found for value in values) == sorted(known.values.tolist()) == [1, 3]
    assert sorted(time for _, times in found for time in times) == sorted(known.timestamps.tolist())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("column", ["plays", None])
def test_counts_and_events_add_up_as_in_memory(tmp_path: Path, kind: str, column: str | None) -> None:
    rows = table("text").drop("rating", "timestamp")
    if column is not None:
        rows = rows.with_columns(pl.Series(column, np.random.default_rng(1).exponential(9, ROWS).astype(np.float32)))
    path = tmp_path / f"events.{kind}"
    rows.write_csv(path) if kind == "csv" else rows.write_parquet(path)
    assert Ratings.read(path, unrated=True).values.max() > 1
    assert_same(path, tmp_path, unrated=True)


def test_a_count_that_is_none_is_refused_before_anything_is_sorted(tmp_path: Path) -> None:
    path = tmp_path / "plays.csv"
    for bad in ("0", "-1", "nan", "inf", "", "often"):
        path.write_text(f"user,item,plays\nann,1,5\nann,2,{bad}\n")
        scratch = tmp_path / f"scratch {bad}"
        scratch.mkdir()
        with (
            pytest.raises(InvalidRatings, match="the count in row 3 is missing, infinite, not a number or not above 0"),
            stream(path, scratch),
        ):
            pass


def test_a_scale_that_is_not_declared_is_asked_for_with_the_one_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("user,item,rating\n1,1,0.5\n1,2,4.5\n1,3,99\n1,4,nan\n")
    with (
        pytest.raises(InvalidArgument, match=r"give scale=\(0\.5, 4\.5\)"),
        stream(tmp_path / "r.csv", tmp_path, missing=99),
    ):
        pass
