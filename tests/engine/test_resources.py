"""Resources: memory is divided so that training fits, and decides what runs it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmf.engine import layout, resources
from dpmf.engine.local import StreamingExecutor, ThreadExecutor
from dpmf.engine.resources import Resources
from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.methods import SGD
from dpmf.ratings import Ratings
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make


@pytest.fixture
def ratings(monkeypatch: pytest.MonkeyPatch) -> Ratings:
    monkeypatch.setattr(layout, "_LEAST_BLOCK", 100)
    return make(150, 60)


def store(ratings: Ratings, folder: Path, *, memory: int = 1000) -> StoredRatings:
    return StoredRatings.build(MemorySource(ratings), folder, memory=memory)


def test_ratings_in_memory_are_visited_by_threads_and_others_streamed() -> None:
    assert Resources(3).executor == ThreadExecutor(3)
    assert Resources(2, capacity=70).executor == StreamingExecutor(2, 70)


def test_threads_are_as_many_as_strips_fit_in_memory(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resources, "_LEAST_MEMORY", 0)
    on_disk = store(ratings, tmp_path / "store")
    row, blocks = 4 * 16, on_disk.blocks
    strip = row * int(np.diff(blocks.layout.strip_starts).max())
    always = row * 60 + 4 * 210 + blocks.bytes_per_rating * int(np.diff(blocks.pointers).max())
    for memory, n_threads in ((always + strip, 1), (always + 3 * strip - 1, 2), (always + 3 * strip, 3)):
        caplog.clear()
        found = Resources.for_factors(replace(on_disk, memory=memory), 8, n_threads=3)
        assert found.user_folder is not None
        assert found.n_threads == n_threads
        assert ("using" in caplog.text) == (n_threads < 3)
    with pytest.raises(InvalidArgument, match=r"too little for 8 factors: .* allow that much, or use fewer factors"):
        SGD(n_factors=8).fit(replace(on_disk, memory=always + strip - 1))
    found = Resources.for_factors(replace(on_disk, memory=10**6), 8, n_threads=99)
    assert (found.user_folder, found.n_threads) == (None, 99)


def test_a_small_limit_is_never_refused(tmp_path: Path, ratings: Ratings) -> None:
    found = Resources.for_factors(store(ratings, tmp_path / "store", memory=0), 8, n_threads=2)
    assert (found.n_threads, found.capacity) == (2, 1)
