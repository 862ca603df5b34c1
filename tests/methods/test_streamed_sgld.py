"""Private sampling from the disk: the same release as in memory, the same refusals, and nothing left behind."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.engine import layout, resources
from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.resources import Resources
from dpmf.engine.store import StoredRatings
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.methods import SGLD
from dpmf.methods.sgld.certified import SampledSteps
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Items, Ratings, Scale
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


@MODES
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("memory", [0, 10**9])
def test_the_release_has_the_same_bits_as_in_memory(
    method: SGLD, tmp_path: Path, ratings: Ratings, scratch: Path, n_threads: int, memory: int
) -> None:
    stored = store(ratings, tmp_path, memory)
    assert len(stored.columns.checksums) > 5
    budgets = wishes(ratings, method)
    streamed = method.fit(stored, n_threads=n_threads, user_budgets=budgets)
    inside = method.fit(ratings, n_threads=1, user_budgets=budgets)
    assert bits(streamed) == bits(inside)
    assert streamed.guarantee == inside.guarantee
    errors, expected = ([one.train_rmse for one in model.history] for model in (streamed, inside))
    assert errors == pytest.approx(expected, rel=1e-12)
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
def test_what_was_not_declared_is_refused(method: SGLD, tmp_path: Path, ratings: Ratings) -> None:
    found = replace(ratings, scale=Scale(1, 5, declared=False))
    with pytest.raises(InvalidArgument, match="scale that is declared"):
        method.fit(store(found, tmp_path))
    catalogue = ratings.catalogue
    seen = replace(ratings, catalogue=Items(catalogue.ids, catalogue.titles, catalogue.genres, declared=False))
    with pytest.raises(InvalidArgument, match="public catalogue"):
        method.fit(store(seen, tmp_path))
    asserted = replace(method, items_public=True).fit(store(seen, tmp_path))
    assert any("asserts that it is public" in one for one in asserted.guarantee.assumptions)


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


@MODES
def test_a_ledger_that_is_full_stops_the_run_before_it_begins(method: SGLD, tmp_path: Path, ratings: Ratings) -> None:
    ledger, epochs = Ledger(tmp_path / "ledger", Budget(1.0)), list[int]()
    with pytest.raises(BudgetExceeded):
        method.fit(store(ratings, tmp_path), ledger=ledger, callbacks=[lambda record: epochs.append(record.epoch)])
    assert not epochs
    assert not ledger.entries()


@MODES
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(method: SGLD, tmp_path: Path, ratings: Ratings) -> None:
    stored, plan, budgets = store(ratings, tmp_path), Checkpoint(tmp_path / "run", resume=True), wishes(ratings, method)
    with pytest.raises(KeyboardInterrupt):
        method.fit(stored, checkpoint=plan, callbacks=[interrupt], user_budgets=budgets)
    epochs: list[int] = []
    resumed = method.fit(
        stored, checkpoint=plan, user_budgets=budgets, callbacks=[lambda record: epochs.append(record.epoch)]
    )
    assert epochs[0] > 1
    assert epochs[-1] == 4
    assert bits(resumed) == bits(method.fit(ratings, user_budgets=budgets))
    with pytest.raises(InvalidArgument, match="another run"):
        method.fit(stored, checkpoint=plan)


def test_a_certified_run_goes_on_in_the_way_it_began(tmp_path: Path, ratings: Ratings) -> None:
    stored, plan = store(ratings, tmp_path), Checkpoint(tmp_path / "run", resume=True)
    CERTIFIED.fit(stored, checkpoint=plan)
    with pytest.raises(InvalidArgument, match=r"data: '[0-9a-f]{8}, streamed' there, '[0-9a-f]{8}' here"):
        CERTIFIED.fit(ratings, checkpoint=plan)


def test_a_certified_run_stopped_in_a_step_loses_that_step(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, plan = store(ratings, tmp_path), Checkpoint(tmp_path / "run", resume=True)
    method, fitted, parts = replace(CERTIFIED, cap=None, noise_seed=None), SampledSteps._fitted, list[int]()

    def dying(self: SampledSteps, part: Ratings, shares: NDArray[np.float64]) -> Any:
        parts.append(part.n_users)
        if len(parts) == len(stored.columns.checksums) + 3:
            raise KeyboardInterrupt
        return fitted(self, part, shares)

    with monkeypatch.context() as patch:
        patch.setattr(SampledSteps, "_fitted", dying)
        with pytest.raises(KeyboardInterrupt):
            method.fit(stored, checkpoint=plan)
    model = method.fit(stored, checkpoint=plan)
    assert [record.epoch for record in model.history] == [1, 3, 4]
    assert model.guarantee.certified


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
    with pytest.raises(InvalidArgument, match=r"too little for 3 factors: sums for all items take .* allow that much"):
        CERTIFIED.fit(replace(on_disk, memory=always + sums - 1))


def test_nobody_left_is_refused(tmp_path: Path, ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="everybody wants to be left out"):
        PAPER.fit(store(ratings, tmp_path), user_budgets=dict.fromkeys(ratings.user_ids, 0.0))
