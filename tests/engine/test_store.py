"""Ratings on disk: the same blocks and the same bits as in memory, and damage is noticed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from dpmf.engine import layout
from dpmf.engine.blockfile import BlockFile
from dpmf.engine.grid import BlockGrid
from dpmf.engine.store import StoredRatings
from dpmf.errors import DamagedFile, InvalidArgument, InvalidRatings
from dpmf.methods import SGD
from dpmf.ratings import Ratings
from dpmf.ratings.store.pieces import MemorySource, pieces_of
from dpmf.ratings.subset import select_users
from dpmf.ratings.synthetic import make


@pytest.fixture
def ratings(monkeypatch: pytest.MonkeyPatch) -> Ratings:
    monkeypatch.setattr(layout, "_LEAST_BLOCK", 100)
    return make(150, 60)


@dataclass(frozen=True)
class Pieces(MemorySource):
    """Ratings in pieces of a given size."""

    users_per_piece: int = 40

    def pieces(self) -> Iterator[Ratings]:
        return pieces_of(self.ratings, self.users_per_piece)


def store(ratings: Ratings, folder: Path, *, users_per_piece: int = 40, memory: int = 1000) -> StoredRatings:
    return StoredRatings.build(Pieces(ratings, users_per_piece), folder, memory=memory)


@pytest.mark.parametrize("users_per_piece", [1, 7, 150])
def test_blocks_on_disk_are_those_in_memory(tmp_path: Path, ratings: Ratings, users_per_piece: int) -> None:
    grid = BlockGrid.build(ratings)
    blocks = store(ratings, tmp_path / "store", users_per_piece=users_per_piece).blocks
    assert blocks.size == grid.size >= 4
    assert blocks.mean == grid.mean
    np.testing.assert_array_equal(blocks.table, grid.table)
    np.testing.assert_array_equal(blocks.pointers, grid.pointers)
    for strip in range(grid.size):
        for tier in range(grid.size):
            for ours, theirs in zip(blocks.block(strip, tier), grid.block(strip, tier), strict=True):
                assert ours.dtype == theirs.dtype
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("memory", [0, 3000, 10**9])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_training_from_disk_gives_the_same_bits(tmp_path: Path, ratings: Ratings, memory: int, n_threads: int) -> None:
    method = SGD(n_factors=8, n_epochs=3)
    inside = method.fit(ratings, n_threads=1)
    streamed = method.fit(store(ratings, tmp_path / "store", memory=memory), n_threads=n_threads)
    assert streamed.user_ids == inside.user_ids
    for name in ("user_factors", "user_biases", "seen_indptr", "seen_items"):
        assert getattr(streamed, name).tobytes() == getattr(inside, name).tobytes()
    assert streamed.release.item_factors.tobytes() == inside.release.item_factors.tobytes()
    assert streamed.release.mean == inside.release.mean
    assert streamed.recommend(ratings.user_ids[3], k=4) == inside.recommend(ratings.user_ids[3], k=4)


def test_users_and_items_without_ratings_have_their_place(tmp_path: Path, ratings: Ratings) -> None:
    thinned = ratings.select(ratings.users % 3 > 0)
    thinned = thinned.select(thinned.items % 2 > 0)
    inside = SGD(n_factors=4, n_epochs=2).fit(thinned)
    streamed = SGD(n_factors=4, n_epochs=2).fit(store(thinned, tmp_path / "store"))
    assert streamed.release.item_factors.tobytes() == inside.release.item_factors.tobytes()
    assert streamed.user_factors.tobytes() == inside.user_factors.tobytes()


@pytest.mark.parametrize("place", [0, 1000, -1])
def test_a_damaged_block_is_noticed(tmp_path: Path, ratings: Ratings, place: int) -> None:
    on_disk = store(ratings, tmp_path / "store")
    path = tmp_path / "store" / "blocks" / "blocks.bin"
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match="ingest the data again"):
        SGD(n_factors=4, n_epochs=1).fit(on_disk)


@pytest.mark.parametrize("name", ["blocks.bin", "layout.safetensors", "layout.json"])
def test_a_truncated_or_missing_file_is_noticed_when_opened(tmp_path: Path, ratings: Ratings, name: str) -> None:
    folder = store(ratings, tmp_path / "store").blocks.folder
    (folder / name).write_bytes((folder / name).read_bytes()[:-3])
    with pytest.raises(DamagedFile):
        BlockFile.open(folder)
    (folder / name).unlink()
    with pytest.raises(DamagedFile):
        BlockFile.open(folder)


def test_another_version_is_refused(tmp_path: Path, ratings: Ratings) -> None:
    folder = store(ratings, tmp_path / "store").blocks.folder
    facts = (folder / "layout.json").read_text()
    (folder / "layout.json").write_text(facts.replace('"version": 1', '"version": 2'))
    with pytest.raises(DamagedFile, match="format 1"):
        BlockFile.open(folder)


def test_no_ratings_are_refused(tmp_path: Path, ratings: Ratings) -> None:
    with pytest.raises(InvalidRatings, match="no ratings"):
        store(ratings.select(np.zeros(len(ratings), np.bool_)), tmp_path / "store")


def test_a_store_of_fewer_ratings_is_there_for_a_while(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    on_disk = store(ratings, tmp_path / "store", memory=77)
    wanted = np.arange(150) % 3 > 0
    with on_disk.thinned(lambda piece, positions: piece.select(wanted[positions][piece.users])) as fewer:
        (folder,) = (tmp_path / "scratch").iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        assert (fewer.memory, fewer.name, fewer.scale) == (77, on_disk.name, on_disk.scale)
        inside = BlockGrid.build(ratings.select(wanted[ratings.users]))
        assert fewer.blocks.fingerprint() == inside.fingerprint()
    assert not any((tmp_path / "scratch").iterdir())
    with pytest.raises(KeyboardInterrupt), on_disk.thinned(lambda piece, _: piece):
        raise KeyboardInterrupt
    assert not any((tmp_path / "scratch").iterdir())


def test_validation_needs_memory(tmp_path: Path, ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="validation needs the ratings in memory"):
        SGD(validation=0.1).fit(store(ratings, tmp_path / "store"))


def test_chosen_users_keep_their_ratings(ratings: Ratings) -> None:
    some = select_users(replace(ratings, timestamps=np.arange(len(ratings))), np.array([5, 2]))
    assert list(some.user_ids) == [ratings.user_ids[5], ratings.user_ids[2]]
    for place, position in enumerate((5, 2)):
        for ours, theirs in zip(some.of_user(place), ratings.of_user(position), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert some.timestamps is not None
    assert some.timestamps[0] == ratings.indptr[5]
