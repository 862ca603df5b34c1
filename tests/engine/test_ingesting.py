"""What is ingested comes back as it was, and nothing is left behind when writing fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.engine.blockfile import BlockFile
from dpmf.engine.store import FILES, StoredRatings
from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.files import dump_json, read_json, sealed
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.store import columns as ondisk
from dpmf.ratings.store.columns import RatingsOnDisk
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make


def ingest(ratings: Ratings, folder: Path) -> StoredRatings:
    return StoredRatings.build(MemorySource(ratings), folder)


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
        [str(2**64), "5"],
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
    ratings = Ratings.of(["ann"], ["a"], [4.5], scale=(0.5, 5), items=catalogue)
    ingest(ratings, tmp_path / "out")
    assert_same(Ratings.read(tmp_path / "out"), ratings)
    assert {file.name for file in (tmp_path / "out").iterdir()} == set(FILES) - {"times.bin"}


def test_what_was_only_seen_comes_back_undeclared(tmp_path: Path) -> None:
    ingest(Ratings.of(["ann", "bob"], ["a", "b"], [2, 4]), tmp_path / "out")
    again = Ratings.read(tmp_path / "out")
    assert again.scale == Scale(2, 4, declared=False)
    assert not again.catalogue.declared


@pytest.mark.parametrize("change", [{"catalogue_declared": 1}, {"scale": {"lo": 1, "hi": 5, "declared": "yes"}}])
def test_what_a_store_does_not_plainly_call_declared_is_not(tmp_path: Path, change: dict[str, Any]) -> None:
    catalogue = Items.of(["a", "b"])
    ingest(Ratings.of(["ann"], ["a"], [2], scale=(1, 5), items=catalogue), tmp_path / "out")
    path = tmp_path / "out" / "store.json"
    facts = {name: value for name, value in read_json(path).items() if name != "digest"}
    path.write_text(dump_json(sealed({**facts, **change})))
    opened = RatingsOnDisk.open(tmp_path / "out")
    assert (opened.catalogue.declared, opened.scale.declared) == ("scale" in change, "scale" not in change)
    path.write_text(dump_json(sealed({**facts, "scale": {"lo": 1, "hi": 5}})))
    with pytest.raises(DamagedFile, match="declared"):
        RatingsOnDisk.open(tmp_path / "out")


def test_a_store_is_for_its_owner_only(tmp_path: Path) -> None:
    ingest(Ratings.of(["ann"], ["a"], [2]), tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0


def test_pieces_are_small_and_users_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ondisk, "_RATINGS_PER_PIECE", 50)
    ratings = make(60, 40)
    stored = ingest(ratings, tmp_path / "out")
    pieces = list(stored.columns.pieces())
    assert len(pieces) > 5
    assert all(len(piece) <= 50 or piece.n_users == 1 for piece in pieces)
    order = ratings.user_ids.hash_order
    assert [one for piece in pieces for one in piece.user_ids] == ratings.user_ids.array[order].tolist()
    assert_same(stored.columns.load(), ratings)


def test_another_catalogue_and_scale_can_be_read_onto(tmp_path: Path) -> None:
    ingest(Ratings.of(["ann", "bob"], ["a", "b"], [2, 4], scale=(1, 5)), tmp_path / "out")
    again = Ratings.read(tmp_path / "out", scale=(0, 10), items=Items.of(["c", "b"]))
    assert (len(again), again.n_items, again.scale) == (1, 2, Scale(0, 10))


@pytest.mark.parametrize("option", [{"delimiter": ","}, {"columns": {"user": "u"}}, {"missing": 3.0}])
def test_options_about_files_are_refused(tmp_path: Path, option: dict[str, Any]) -> None:
    ingest(Ratings.of(["ann"], ["a"], [3]), tmp_path / "out")
    with pytest.raises(InvalidArgument, match="ingest them again"):
        Ratings.read(tmp_path / "out", **option)


@pytest.mark.parametrize("name", ["items.bin", "values.bin", "times.bin", "store.safetensors"])
@pytest.mark.parametrize("place", [0, -1])
def test_a_flipped_bit_is_noticed(tmp_path: Path, name: str, place: int) -> None:
    ratings = Ratings.of(["ann", "bob"], ["a", "b"], [2, 4], [7, 8], scale=(1, 5))
    ingest(ratings, tmp_path / "out")
    path = tmp_path / "out" / name
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"ingest the data again|safetensors"):
        Ratings.read(tmp_path / "out")


@pytest.mark.parametrize("name", ["items.bin", "store.json", "store.safetensors"])
def test_a_truncated_or_missing_file_is_noticed(tmp_path: Path, name: str) -> None:
    ingest(Ratings.of(["ann", "bob"], ["a", "b"], [2, 4]), tmp_path / "out")
    path = tmp_path / "out" / name
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(DamagedFile):
        Ratings.read(tmp_path / "out")
    path.unlink()
    with pytest.raises(DamagedFile):
        RatingsOnDisk.open(tmp_path / "out")


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    ingest(Ratings.of(["ann"], ["a"], [2]), tmp_path / "out")
    facts = tmp_path / "out" / "store.json"
    facts.write_text(facts.read_text().replace('"version": 1', '"version": 9'))
    with pytest.raises(DamagedFile, match="store of format 9, not 1: ingest the data again"):
        Ratings.read(tmp_path / "out")


@pytest.mark.parametrize(("file", "ours", "theirs"), [
    ("store.json", '"hi": 5.0', '"hi": 4.0'), ("blocks/layout.json", '"size": 1', '"size": 2'),
])  # fmt: skip
def test_a_changed_fact_is_noticed(tmp_path: Path, file: str, ours: str, theirs: str) -> None:
    ingest(Ratings.of(["ann", "bob"], ["a", "b"], [2, 4], scale=(1, 5)), tmp_path / "out")
    path = tmp_path / "out" / file
    assert ours in path.read_text()
    path.write_text(path.read_text().replace(ours, theirs))
    with pytest.raises(DamagedFile, match="ingest the data again"):
        StoredRatings.open(tmp_path / "out")


def test_a_store_that_is_replaced_stays_readable_for_who_has_it_open(tmp_path: Path) -> None:
    ratings = make(60, 40)
    stored = ingest(ratings, tmp_path / "out")
    before = stored.blocks.block(0, 0)
    ingest(make(30, 20), tmp_path / "out")
    for ours, theirs in zip(stored.blocks.block(0, 0), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_block_that_changes_after_it_was_checked_does_not_reach_a_kernel(tmp_path: Path) -> None:
    stored = ingest(make(60, 40), tmp_path / "out")
    stored.blocks.block(0, 0)
    (tmp_path / "out" / "blocks" / "blocks.bin").write_bytes(b"\xff" * len(stored) * stored.blocks.bytes_per_rating)
    with pytest.raises(DamagedFile, match="was changed"):
        stored.blocks.block(0, 0)


def test_damage_is_noticed_where_only_items_are_read(tmp_path: Path) -> None:
    stored = ingest(make(60, 40), tmp_path / "out")
    path = tmp_path / "out" / "items.bin"
    path.write_bytes(b"\x01" + path.read_bytes()[1:])
    with pytest.raises(DamagedFile, match="damaged"):
        stored.seen()


def test_nothing_foreign_is_replaced_inside_a_store_either(tmp_path: Path) -> None:
    ratings = Ratings.of(["ann"], ["a"], [2])
    ingest(ratings, tmp_path / "out")
    (tmp_path / "out" / "blocks" / "thesis.txt").write_text("precious")
    with pytest.raises(InvalidArgument, match=r"thesis\.txt"):
        ingest(ratings, tmp_path / "out")
    assert (tmp_path / "out" / "blocks" / "thesis.txt").exists()


def test_blocks_of_other_ratings_are_refused(tmp_path: Path) -> None:
    ingest(Ratings.of(["ann", "bob"], ["a", "b"], [2, 4]), tmp_path / "one")
    ingest(Ratings.of(["ann"], ["a"], [2]), tmp_path / "two")
    shutil.rmtree(tmp_path / "one" / "blocks")
    shutil.copytree(tmp_path / "two" / "blocks", tmp_path / "one" / "blocks")
    with pytest.raises(DamagedFile, match="other ratings"):
        StoredRatings.open(tmp_path / "one")


def test_the_name_is_kept(tmp_path: Path) -> None:
    (tmp_path / "films.csv").write_text("user,item,rating\na,b,3\n")
    ingest(Ratings.read(tmp_path / "films.csv"), tmp_path / "out")
    assert Ratings.read(tmp_path / "out").name == "films"


def test_an_ingested_folder_may_be_replaced_but_no_other(tmp_path: Path) -> None:
    ratings = Ratings.of(["ann"], ["a"], [2], scale=(1, 5), items=["a"])
    ingest(ratings, tmp_path / "out")
    ingest(Ratings.of(["bob"], ["a"], [3]), tmp_path / "out")
    assert list(Ratings.read(tmp_path / "out").user_ids) == ["bob"]
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidArgument, match=r"notes\.txt"):
        ingest(ratings, tmp_path / "out")
    assert list(Ratings.read(tmp_path / "out").user_ids) == ["bob"]


def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(Ratings.of(["ann"], ["a"], [2]), tmp_path / "out")

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(BlockFile, "build", fail)
    with pytest.raises(KeyboardInterrupt):
        ingest(Ratings.of(["bob"], ["a"], [3]), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert list(Ratings.read(tmp_path / "out").user_ids) == ["ann"]


def test_a_full_disk_is_an_oserror_and_leaves_nothing(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk."""
    program = (
        "import resource, numpy as np, dpmf; from pathlib import Path\n"
        "from dpmf.engine.store import StoredRatings; from dpmf.ratings.store.pieces import MemorySource\n"
        "values = np.random.default_rng(0).random(50_000)\n"
        "ratings = dpmf.Ratings.of(np.arange(50_000), np.zeros(50_000, int), values)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, 1 << 15))\n"
        "try: StoredRatings.build(MemorySource(ratings), Path('out'))\n"
        "except OSError as error: print('refused:', error)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("refused:"), done.stderr
    assert list(tmp_path.iterdir()) == []
