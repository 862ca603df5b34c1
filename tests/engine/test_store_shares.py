"""Shares of a store: all users once, read by whoever owns them, and recognised."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from dpmf.engine.shares import positions_in, shares_of
from dpmf.engine.store import StoredRatings
from dpmf.errors import DamagedFile, DpmfError
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.subset import select_users
from dpmf.ratings.synthetic import make

RATINGS = make(90, 30, mean_ratings=9, seed=2)


@pytest.fixture
def store(tmp_path: Path) -> StoredRatings:
    return StoredRatings.build(MemorySource(RATINGS), tmp_path / "store")


@pytest.mark.parametrize("n_workers", [1, 2, 3, 200])
def test_shares_hold_every_user_once_with_all_their_ratings(store: StoredRatings, n_workers: int) -> None:
    shares = shares_of(store, n_workers)
    assert len(shares) == n_workers
    found = []
    for share in shares:
        positions, part = positions_in(store, share), share.read()
        expected = select_users(RATINGS, positions)
        assert np.array_equal(part.indptr, expected.indptr)
        assert np.array_equal(part.items, expected.items)
        assert np.array_equal(part.values, expected.values)
        assert list(part.user_ids) == list(expected.user_ids)
        found.append(positions)
    assert sorted(np.concatenate(found).tolist()) == list(range(90))


def test_shares_have_about_the_same_number_of_ratings(store: StoredRatings) -> None:
    sizes = [len(share.read()) for share in shares_of(store, 3)]
    assert max(sizes) < 1.3 * min(sizes)


def test_users_between_two_pieces_are_read_from_both(store: StoredRatings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmf.ratings.store.columns._RATINGS_PER_PIECE", 50)
    small = StoredRatings.build(MemorySource(RATINGS), store.columns.folder.parent / "small")
    assert len(small.columns.checksums) > 5
    for share in shares_of(small, 4):
        expected = select_users(RATINGS, positions_in(small, share))
        assert np.array_equal(share.read().items, expected.items)


def test_a_store_that_is_not_there_is_named(store: StoredRatings, tmp_path: Path) -> None:
    share = shares_of(store, 1)[0]
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(DpmfError, match=r"store is not on .*: put the store on a disk that all nodes share"):
        share.read()


def test_a_store_of_other_ratings_is_refused(store: StoredRatings, tmp_path: Path) -> None:
    share = shares_of(store, 1)[0]
    shutil.rmtree(tmp_path / "store")
    StoredRatings.build(MemorySource(make(90, 30, mean_ratings=9, seed=3)), tmp_path / "store")
    with pytest.raises(DamagedFile, match=r"holds other ratings on .* than here"):
        share.read()
