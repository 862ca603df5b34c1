"""What the tests of the methods share."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmf.engine.store import StoredRatings
from dpmf.methods.certified import run
from dpmf.ratings.store import columns
from dpmf.ratings.store.pieces import MemorySource

from .cases import RATINGS, profiles_of
from .watch import Watch


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Return a watch on all certified runs."""
    profiles_of("release")  # made before, so that only runs of the test are seen
    watch = Watch()
    monkeypatch.setattr(run, "Noise", watch.noise)
    monkeypatch.setattr(run, "Mechanism", watch.mechanism)
    return watch


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredRatings:
    """Return the ratings of the cases on disk, in many pieces, as large data have them."""
    folder: Path = tmp_path_factory.mktemp("stored") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_RATINGS_PER_PIECE", 60)
        found = StoredRatings.build(MemorySource(RATINGS), folder, memory=0)
    assert len(found.columns.checksums) > 5
    return found
