"""What is ingested comes back as it was, and nothing is left behind when writing fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings import ingesting as ingesting_module
from dpmf.ratings.ingesting import ingest

if TYPE_CHECKING:
    from ratings.conftest import Refused


def assert_same(first: Ratings, second: Ratings) -> None:
    """Demand that all but the names agree."""
    assert first.user_ids == second.user_ids
    assert first.catalogue.ids == second.catalogue.ids
    assert first.catalogue.titles == second.catalogue.titles
    assert first.catalogue.genres == second.catalogue.genres
    assert first.catalogue.declared == second.catalogue.declared
    assert first.scale == second.scale
    assert np.array_equal(first.indptr, second.indptr)
    assert np.array_equal(first.items, second.items)
    assert np.array_equal(first.values, second.values)
    assert (first.timestamps is None) == (second.timestamps is None)
    assert first.timestamps is None or np.array_equal(first.timestamps, second.timestamps)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1],
        [2**63 - 1, -(2**63)],
        ["007", "ann"],
        ["8", "7"],
        ['q"u,o\nte', "七人😀"],
        ["", " "],
        [2**64, 5],
    ],
)
@pytest.mark.parametrize("times", [None, [5, -7, 2**60]])
def test_ids_values_and_times_come_back(ids: list[Any], times: list[int] | None, tmp_path: Path) -> None:
    users, items = [ids[0], ids[0], ids[1]], [ids[0], ids[1], ids[1]]
    ratings = Ratings.of(users, items, [0.1, 2, 5], times)
    ingest(ratings, tmp_path / "it's[1]")
    assert_same(Ratings.read(tmp_path / "it's[1]"), ratings)


@given(
    pairs=st.dictionaries(
        st.tuples(st.text("ab,é\"'\n", min_size=1, max_size=3), st.integers(-9, 9)),
        st.floats(-9, 9, width=32),
        min_size=1,
    )
)
@settings(max_examples=15)
def test_any_ratings_come_back(pairs: dict[tuple[str, int], float], tmp_path_factory: pytest.TempPathFactory) -> None:
    ratings = Ratings.of([user for user, _ in pairs], [item for _, item in pairs], list(pairs.values()), scale=(-9, 9))
    folder = tmp_path_factory.getbasetemp() / "any"
    ingest(ratings, folder)
    assert_same(Ratings.read(folder), ratings)


def test_a_declared_scale_and_catalogue_come_back_declared(tmp_path: Path) -> None:
    catalogue = Items.of(["b", "a", "c"], ['Say "hi", Bob\n', "七人", "Up"], ["Crime|Drama", "", "x"])
    ratings = Ratings.of(["ann"], ["a"], [4.5], scale=(0.5, 5), catalogue=catalogue)
    ingest(ratings, tmp_path / "out")
    assert_same(Ratings.read(tmp_path / "out"), ratings)
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"ratings.parquet", "items.csv", "dataset.json"}


def test_what_was_only_seen_is_not_written_as_declared(tmp_path: Path) -> None:
    ingest(Ratings.of(["ann", "bob"], ["a", "b"], [2, 4]), tmp_path / "out")
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"ratings.parquet", "dataset.json"}
    assert json.loads((tmp_path / "out" / "dataset.json").read_text()) == {"name": "out"}
    again = Ratings.read(tmp_path / "out")
    assert again.scale == Scale(2, 4, declared=False)
    assert not again.catalogue.declared


def test_the_name_is_kept(tmp_path: Path) -> None:
    (tmp_path / "films.csv").write_text("a,b,3\n")
    ingest(Ratings.read(tmp_path / "films.csv"), tmp_path / "out")
    assert Ratings.read(tmp_path / "out").name == "films"


def test_an_ingested_folder_may_be_replaced_but_no_other(tmp_path: Path, refused: Refused) -> None:
    ratings = Ratings.of(["ann"], ["a"], [2], scale=(1, 5), catalogue=["a"])
    ingest(ratings, tmp_path / "out")
    ingest(Ratings.of(["bob"], ["a"], [3]), tmp_path / "out")
    assert list(Ratings.read(tmp_path / "out").user_ids) == ["bob"]
    assert not (tmp_path / "out" / "items.csv").exists()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with refused("notes.txt"):
        ingest(ratings, tmp_path / "out")
    assert list(Ratings.read(tmp_path / "out").user_ids) == ["bob"]


def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(Ratings.of(["ann"], ["a"], [2]), tmp_path / "out")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ingesting_module, "write_text", fail)
    with pytest.raises(KeyboardInterrupt):
        ingest(Ratings.of(["bob"], ["a"], [3]), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert list(Ratings.read(tmp_path / "out").user_ids) == ["ann"]


def test_a_full_disk_is_an_oserror_and_leaves_nothing(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk."""
    program = (
        "import resource, numpy as np, dpmf; from pathlib import Path; from dpmf.ratings.ingesting import ingest\n"
        "values = np.random.default_rng(0).random(50_000)\n"
        "ratings = dpmf.Ratings.of(np.arange(50_000), np.zeros(50_000, int), values)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, 1 << 15))\n"
        "try: ingest(ratings, Path('out'))\n"
        "except OSError as error: print('refused:', error)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("refused:"), done.stderr
    assert list(tmp_path.iterdir()) == []
