"""Runs with a paper's claim: what a ledger is charged, and when a run is over."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dpmf import SGLD, Budget, GaussianGD, Model, ObjectivePerturbation, Sketch
from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.model import EpochRecord
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

Claim = SGLD | GaussianGD | Sketch | ObjectivePerturbation
CLAIMS: list[Claim] = [
    SGLD(n_factors=3, n_epochs=5, budget=Budget(500.0), mode="paper", cap=10),
    GaussianGD(n_factors=3, n_epochs=5, budget=Budget(20.0), mode="paper", learning_rate=1e-4),
    Sketch(n_factors=3, n_epochs=5, budget=Budget(2.0), mode="paper"),
    ObjectivePerturbation(n_factors=3, n_epochs=5, budget=Budget(2.0), mode="paper"),
]


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(80, 40, mean_ratings=10)


@pytest.fixture(params=CLAIMS, ids=lambda claim: type(claim).__name__)
def claim(request: pytest.FixtureRequest) -> Claim:
    found: Claim = request.param
    return found


@pytest.fixture
def plan(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / "run", resume=True)


def bits(model: Model) -> tuple[bytes, ...]:
    return model.release.item_factors.tobytes(), model.release.item_biases.tobytes(), model.user_factors.tobytes()


def ledger_at(path: Path, claim: Claim, epsilon: float = math.inf) -> Ledger:
    unit = "user" if isinstance(claim, SGLD) else "rating"
    return Ledger(path, Budget(epsilon, unit=unit))


def interrupt(record: EpochRecord) -> None:
    if record.epoch >= 2:
        raise KeyboardInterrupt


def test_it_is_entered_once_and_into_whatever_ledger_lacks_it(
    claim: Claim, plan: Checkpoint, tmp_path: Path, ratings: Ratings
) -> None:
    with pytest.raises(KeyboardInterrupt):
        claim.fit(ratings, checkpoint=plan, callbacks=[interrupt])
    with pytest.raises(BudgetExceeded):
        claim.fit(ratings, checkpoint=plan, ledger=ledger_at(tmp_path / "capped", claim, 1.0))
    ledger = ledger_at(tmp_path / "ledger", claim)
    with pytest.raises(KeyboardInterrupt):
        claim.fit(ratings, checkpoint=plan, ledger=ledger, callbacks=[interrupt])
    claim.fit(ratings, checkpoint=plan, ledger=ledger)
    assert len(ledger.entries()) == 1


def test_what_was_entered_does_not_go_on_without_its_ledger(
    claim: Claim, plan: Checkpoint, tmp_path: Path, ratings: Ratings
) -> None:
    model = claim.fit(ratings, checkpoint=plan, ledger=ledger_at(tmp_path / "ledger", claim))
    assert len(model.history) == 5
    with pytest.raises(InvalidArgument, match="name that ledger"):
        claim.fit(ratings, checkpoint=plan)


def test_what_was_ended_early_goes_on_no_more(claim: Claim, plan: Checkpoint, ratings: Ratings) -> None:
    ended = claim.fit(ratings, checkpoint=plan, callbacks=[lambda record: record.epoch == 2])
    again = claim.fit(ratings, checkpoint=plan)
    assert (len(again.history), bits(again)) == (2, bits(ended))


def test_what_is_not_private_may_go_on_after_its_end(plan: Checkpoint, ratings: Ratings) -> None:
    plain = SGLD(n_factors=3, n_epochs=5, budget=Budget(math.inf))
    plain.fit(ratings, checkpoint=plan, callbacks=[lambda record: record.epoch == 2])
    assert len(plain.fit(ratings, checkpoint=plan).history) == 5
