"""Private sampling from the disk: the same release as in memory, the same refusals, and nothing left behind."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmf.engine import layout, resources
from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.resources import Resources
from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.methods import SGLD
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings
from dpmf.ratings.store import columns as ondisk
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

PAPER = SGLD(n_factors=5, n_epochs=4, budget=Budget(2000), mode="paper", cap=20, rho=3.0, noise_seed=7, seed=5)
CERTIFIED = SGLD(n_factors=3, n_epochs=4, budget=Budget(3.0), sampling_rate=0.4, cap=15, noise_seed=4)
MODES = pytest.mark.parametrize("method", [PAPER, CERTIFIED], ids=["paper", "certified"])


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    made = make(200, 80, mean_ratings=30)
    return replace(made, timestamps=np.arange(len(made)), name="made up")


@pytest.fixture(autouse=True)
def _large_data_in_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small data have many blocks and many pieces, as large data have them."""
    monkeypatch.setattr(layout, "_LEAST_BLOCK", 100)
    monkeypatch.setattr(ondisk, "_RATINGS_PER_PIECE", 500)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary folders."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


def store(ratings: Ratings, tmp_path: Path, memory: int = 0) -> StoredRatings:
    return StoredRatings.build(MemorySource(ratings), tmp_path / "store", memory=memory)


def bits(model: Model) -> tuple[bytes, ...]:
    release = model.release
    arrays = (release.item_factors, release.item_biases, model.user_factors, model.user_biases, model.seen_items)
    return tuple(array.tobytes() for array in arrays)


def wishes(ratings: Ratings, method: SGLD) -> dict[object, float]:
    """Return smaller budgets of some users: half of it, and none."""
    assert method.budget is not None
    return {ratings.user_ids[3]: method.budget.epsilon / 2, ratings.user_ids[5]: 0.0, ratings.user_ids[90]: 0.0}


def interrupt(record: EpochRecord) -> None:
    if record.epoch == 3:
        raise KeyboardInterrupt


@pytest.mark.parametrize("method", [PAPER, replace(CERTIFIED, cap=None)], ids=["paper", "certified"])
@pytest.mark.parametrize("memory", [0, 10**9])
def test_the_release_has_the_same_bits_as_in_memory(
    method: SGLD, tmp_path: Path, ratings: Ratings, scratch: Path, memory: int
) -> None:
    """On a grid of many blocks, with factors of users in memory or not."""
    stored = store(ratings, tmp_path, memory)
    budgets = wishes(ratings, method) if method is PAPER else None
    assert len(stored.columns.checksums) > 5
    streamed, inside = (method.fit(one, n_threads=2, user_budgets=budgets) for one in (stored, ratings))
    assert bits(streamed) == bits(inside)
    assert streamed.guarantee == inside.guarantee
    assert not any(scratch.iterdir())


@MODES
def test_nothing_is_written_if_all_ratings_count(
    method: SGLD, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, whole = store(ratings, tmp_path), replace(method, cap=1000)
    inside = whole.fit(ratings)
    monkeypatch.setattr(StoredRatings, "build", None)
    assert bits(whole.fit(stored)) == bits(inside)


@MODES
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_the_ratings_that_count_are_gone_after_an_error(
    method: SGLD, tmp_path: Path, ratings: Ratings, scratch: Path, error: type[BaseException]
) -> None:
    stored, seen = store(ratings, tmp_path), list[tuple[str, int]]()

    def fail(_: EpochRecord) -> None:
        seen.extend((one.name, one.stat().st_mode & 0o077) for one in scratch.iterdir())
        raise error

    with pytest.raises(error):
        method.fit(stored, callbacks=[fail])
    ((name, others),) = seen
    assert name.startswith("dpmf-train-")
    assert others == 0
    assert not any(scratch.iterdir())


@MODES
def test_a_ledger_is_charged_once_and_before_the_run(method: SGLD, tmp_path: Path, ratings: Ratings) -> None:
    stored, ledger = store(ratings, tmp_path), Ledger(tmp_path / "ledger", Budget(math.inf))
    plan = Checkpoint(tmp_path / "run", resume=True)
    entries: list[int] = []

    def note(record: EpochRecord) -> None:
        entries.append(len(ledger.entries()))
        interrupt(record)

    with pytest.raises(KeyboardInterrupt):
        method.fit(stored, ledger=ledger, checkpoint=plan, callbacks=[note])
    assert entries == [1, 1, 1]
    model = method.fit(stored, ledger=ledger, checkpoint=plan)
    (entry,) = ledger.entries()
    assert (entry.label, entry.guarantee) == ("made up", model.guarantee)


def test_threads_are_as_many_as_sums_fit_in_memory(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    on_disk, sums = store(ratings, tmp_path), 8 * 4 * 80
    assert Resources.for_sums(on_disk, 3, 2) == Resources(2, None, on_disk.columns.folder)  # so little is never refused
    monkeypatch.setattr(resources, "_LEAST_MEMORY", 0)
    always = 5 * sums + sums // 2
    for memory, n_threads in ((always + sums, 1), (always + 3 * sums - 1, 2), (always + 3 * sums, 3)):
        caplog.clear()
        room = Resources.for_sums(replace(on_disk, memory=memory), 3, 3)
        assert (room.n_threads, room.user_folder) == (n_threads, None)
        assert ("each holds 1 MB of sums" in caplog.text) == (n_threads < 3)
    with pytest.raises(InvalidArgument, match=r"too little for 3 factors: sums over people take .* allow that much"):
        CERTIFIED.fit(replace(on_disk, memory=always + sums - 1))


def test_nobody_left_is_refused(tmp_path: Path, ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="everybody wants to be left out"):
        PAPER.fit(store(ratings, tmp_path), user_budgets=dict.fromkeys(ratings.user_ids, 0.0))
