"""A store from the workers of a cluster: that of one machine, byte for byte, whatever the files and the workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmf.engine.store import StoredRatings
from dpmf.errors import DpmfError, InvalidArgument, InvalidRatings
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.location import locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store import columns, pieces
from dpmf.ratings.store.pieces import MemorySource
from dpmf.runs import ingesting
from dpmf.runs.ingest_steps import check_shared
from dpmf.runs.ingesting import ingest, ingest_on

OPTIONS = ReadOptions(scale=Scale(1, 5))
N = 3000


@pytest.fixture(autouse=True)
def _many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_RATINGS_PER_PIECE", 300)
    monkeypatch.setattr(pieces.pieces_of, "__defaults__", (50,))
    monkeypatch.setattr(ingesting, "USERS_PER_PIECE", 50)


def rows(*, texts: bool = False, times: bool = False, counts: bool = False) -> dict[str, Any]:
    """Return rows of 120 users in no order, of whom some rate an item more than once."""
    random = np.random.default_rng(7)
    users, items = random.integers(0, 120, N), random.integers(0, 40, N)
    table: dict[str, Any] = {
        "user": [f"ü{one}" for one in users] if texts else users,
        "item": [str(one) for one in items] if texts else items,
        "plays" if counts else "rating": random.integers(1, 6, N).astype(np.float32),
    }
    if times:
        table["timestamp"] = random.integers(0, 50, N)
    return table


def write(folder: Path, table: dict[str, Any], files: int) -> Path:
    folder.mkdir()
    whole, bounds = pa.table(table), np.linspace(0, N, files + 1).astype(int).tolist()
    for number in range(files):
        pq.write_table(whole.slice(bounds[number], bounds[number + 1] - bounds[number]), folder / f"{number}.parquet")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.parametrize(
    ("made", "options"),
    [
        ({}, OPTIONS),
        ({"times": True}, ReadOptions(scale=Scale(1, 5), duplicates="first", users_about=100)),
        ({"texts": True}, ReadOptions(scale=Scale(1, 5), duplicates="mean", missing=3.0)),
        ({"counts": True}, ReadOptions(columns={"count": "plays"})),
    ],
    ids=["numbers", "times", "texts", "counts"],
)
def test_the_store_is_that_of_one_machine(
    made: dict[str, bool], options: ReadOptions, cluster: Callable[..., Any], tmp_path: Path
) -> None:
    source = write(tmp_path / "data", rows(**made), files=5)
    here = StoredRatings.build(MemorySource(locate(source, options).read()), tmp_path / "here", size=4)
    assert len(here.columns.checksums) > 5
    for n, losses in ((1, ()), (3, (0, 2)), (7, ())) if not made else ((3, (0, 2)),):
        folder = tmp_path / f"{n}"
        there = ingest_on(cluster(n, losses), locate(source, options), folder, size=4)
        assert len(there) == len(here)
        assert contents(folder) == contents(tmp_path / "here")
        assert folder.stat().st_mode & 0o077 == 0


def test_a_catalogue_leaves_ratings_out_and_files_are_read_as_one(
    cluster: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, items = write(tmp_path / "data", rows(), files=3), tmp_path / "items.csv"
    items.write_text("item,title\n" + "".join(f"{one},Item {one}\n" for one in range(30)))
    located = locate(tmp_path / "data" / "*.parquet", ReadOptions(scale=Scale(1, 5), items=items))
    StoredRatings.build(MemorySource(located.read()), tmp_path / "here")
    caplog.clear()
    ingest_on(cluster(2), located, tmp_path / "there")
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert "ratings of items outside the catalogue are left out" in caplog.text
    whole = Ratings.read(write(tmp_path / "one", rows(), files=1) / "0.parquet", scale=(1, 5))
    assert Ratings.read(source, scale=(1, 5)).values.tobytes() == whole.values.tobytes()


def test_what_cannot_be_ingested_is_refused_and_leaves_nothing(cluster: Callable[..., Any], tmp_path: Path) -> None:
    source, target = write(tmp_path / "data", rows(), files=4), tmp_path / "store"
    wrong = rows()
    wrong["rating"][N - 1] = 9
    texts = write(tmp_path / "texts", rows(texts=True), files=4)
    (texts / "0.parquet").write_bytes((source / "0.parquet").read_bytes())
    refused: list[tuple[Path, ReadOptions, type[Exception], str]] = [
        (source, ReadOptions(), InvalidArgument, r"needs to know the rating scale beforehand: give scale=\(1, 5\)"),
        (write(tmp_path / "w", wrong, 3), OPTIONS, InvalidRatings, f"the rating in row {N} is .* off the scale 1:5"),
        (texts, OPTIONS, InvalidRatings, "the files are not alike"),
    ]
    for path, options, kind, message in refused:
        with pytest.raises(kind, match=message):
            ingest_on(cluster(4), locate(path, options), target)
        assert not target.exists()
    (tmp_path / "ratings.csv").write_text("user,item,rating\n1,2,3\n")
    with pytest.raises(InvalidArgument, match="a cluster ingests Parquet files, and ratings is of the csv format"):
        ingest_on(cluster(2), locate(tmp_path / "ratings.csv", OPTIONS), target)
    with pytest.raises(DpmfError, match=r"store is not on .*: write to a disk that all nodes share"):
        check_shared(target / "work" / "parts")


class Dataset:
    """What `ingest` needs of a Ray Dataset."""

    def __init__(self, table: dict[str, Any], problem: str | None = None) -> None:
        self._table, self._problem = table, problem

    def write_parquet(self, path: str) -> None:
        if self._problem is not None:
            raise RuntimeError(f"Traceback\n{self._problem}")
        whole = pa.table(self._table)
        for number in range(2 if len(whole) else 0):
            pq.write_table(whole.slice(number * N // 2, N // 2), Path(path) / f"x_00000{number}-0.parquet")


@pytest.mark.filterwarnings("ignore")  # of Ray, about itself
def test_rows_of_a_dataset_and_files_become_a_store(
    cluster: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("ray.data")
    files = write(tmp_path / "store", rows(times=True), files=3)
    ingest(str(files), tmp_path / "from files" / "store", executor=cluster(2), scale=(1, 5))
    ingest(Dataset(rows(times=True)), tmp_path / "from rows" / "store", executor=cluster(2), scale=(1, 5))
    assert contents(tmp_path / "from rows") == contents(tmp_path / "from files")
    for data, problem in (
        (Dataset({}), "the Dataset has no rows, or"),
        (Dataset({}, "no such column"), "Ray Data cannot write the rows: no such column"),
        ([1, 2, 3], "cannot ingest a list on a cluster: give a Ray Dataset"),
    ):
        with pytest.raises(DpmfError, match=problem):
            ingest(data, tmp_path / "refused" / "store", executor=cluster(2), scale=(1, 5))
        assert not list((tmp_path / "refused").rglob("*"))
