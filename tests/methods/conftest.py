"""What the tests of the methods share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dpmf.engine.store import StoredRatings
from dpmf.methods.certified import run
from dpmf.privacy import accounting, guarantee, ledger
from dpmf.ratings.store import columns
from dpmf.ratings.store.pieces import MemorySource

from .cases import RATINGS, profiles_of
from .watch import Watch


@pytest.fixture(autouse=True, scope="session")
def _account_once() -> Iterator[None]:
    """Let the accountant remember what it found: of sampled steps, the same question takes long every time."""
    remembered = cache(accounting.epsilon_of)

    def epsilon_of(events: Any, delta: float, **how: Any) -> float:
        return remembered(tuple(events), delta, **how)

    with pytest.MonkeyPatch.context() as patch:
        for module in (guarantee, ledger):
            patch.setattr(module, "epsilon_of", epsilon_of)
        yield


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
