"""A checkpoint that is copied: no stage is drawn twice under one entry of a ledger."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dpmf import ALS, SGLD, Budget, GaussianGD, Sketch
from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import BudgetExceeded
from dpmf.model import EpochRecord
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

BUDGET = Budget(2.0)
METHODS: list[ALS | SGLD | GaussianGD | Sketch] = [
    ALS(n_factors=2, n_epochs=3, budget=BUDGET),
    SGLD(n_factors=2, n_epochs=4, budget=BUDGET, n_samples=1),
    GaussianGD(n_factors=2, n_epochs=4, budget=BUDGET),
    Sketch(n_factors=2, n_epochs=4, budget=BUDGET),
]


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(60, 30, mean_ratings=8)


def interrupt(record: EpochRecord) -> None:
    if record.epoch == 2:
        raise KeyboardInterrupt


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_only_one_of_two_copies_goes_on(
    method: ALS | SGLD | GaussianGD | Sketch, tmp_path: Path, ratings: Ratings
) -> None:
    ledger = Ledger(tmp_path / "ledger", Budget(2.5))
    with pytest.raises(KeyboardInterrupt):
        method.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"), ledger=ledger, callbacks=[interrupt])
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    method.fit(ratings, checkpoint=Checkpoint(tmp_path / "copy", resume=True), ledger=ledger)
    with pytest.raises(BudgetExceeded, match="went on elsewhere"):
        method.fit(ratings, checkpoint=Checkpoint(tmp_path / "run", resume=True), ledger=ledger)
    assert len(ledger.entries()) == 1


def test_a_backup_of_a_run_that_was_never_stopped_does_not_go_on_either(tmp_path: Path, ratings: Ratings) -> None:
    ledger, method = Ledger(tmp_path / "ledger", Budget(2.5)), GaussianGD(n_factors=2, n_epochs=4, budget=BUDGET)

    def back_up(record: EpochRecord) -> None:
        if record.epoch == 2:
            shutil.copytree(tmp_path / "run", tmp_path / "backup")

    method.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"), ledger=ledger, callbacks=[back_up])
    with pytest.raises(BudgetExceeded, match="went on elsewhere"):
        method.fit(ratings, checkpoint=Checkpoint(tmp_path / "backup", resume=True), ledger=ledger)


def test_a_copy_of_a_finished_run_draws_nothing_and_is_what_it_was(tmp_path: Path, ratings: Ratings) -> None:
    ledger, method = Ledger(tmp_path / "ledger", Budget(2.5)), GaussianGD(n_factors=2, n_epochs=4, budget=BUDGET)
    model = method.fit(ratings, checkpoint=Checkpoint(tmp_path / "run"), ledger=ledger)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    again = method.fit(ratings, checkpoint=Checkpoint(tmp_path / "copy", resume=True), ledger=ledger)
    assert again.release.item_factors.tobytes() == model.release.item_factors.tobytes()
