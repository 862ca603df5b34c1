"""What every run with a paper's claim must do: say that it is a claim, charge a ledger, and end once."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.model import EpochRecord
from dpmf.privacy import Budget
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.verify import verify

from .cases import PAPER, PLAIN, RATINGS, Case, bits, label_of

paper = pytest.mark.parametrize("case", PAPER, ids=label_of)
plain = pytest.mark.parametrize("case", PLAIN, ids=label_of)


@pytest.fixture
def plan(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path / "run", resume=True)


def ledger_at(path: Path, epsilon: float = math.inf) -> Ledger:
    return Ledger(path, Budget(epsilon))


def interrupt(record: EpochRecord) -> None:
    if record.epoch >= 2:
        raise KeyboardInterrupt


@paper
def test_a_claim_is_never_certified_and_names_its_gaps(case: Case) -> None:
    guarantee = case.fit(RATINGS).guarantee
    assert (guarantee.mode, guarantee.certified) == ("paper", False)
    assert guarantee.recomputed_epsilon() == verify(guarantee).recomputed_epsilon == math.inf
    assert verify(guarantee).ok
    assert guarantee.assumptions
    assert SEEDED not in guarantee.assumptions
    assert "paper claim, not certified" in str(guarantee)
    if case.is_seedable:
        assert SEEDED in case.fit(RATINGS, {"noise_seed": 1}).guarantee.assumptions


@plain
def test_without_a_finite_epsilon_nothing_is_promised(case: Case) -> None:
    guarantee = case.fit(RATINGS).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.is_private) == ("none", False, False)
    assert verify(guarantee).recomputed_epsilon is None


@paper
def test_it_is_entered_once_and_into_whatever_ledger_lacks_it(case: Case, plan: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        case.fit(RATINGS, checkpoint=plan, callbacks=[interrupt])
    with pytest.raises(BudgetExceeded):  # it is unbounded
        case.fit(RATINGS, checkpoint=plan, ledger=ledger_at(tmp_path / "capped", 1000.0))
    ledger = ledger_at(tmp_path / "ledger")
    with pytest.raises(KeyboardInterrupt):
        case.fit(RATINGS, checkpoint=plan, ledger=ledger, callbacks=[interrupt])
    model = case.fit(RATINGS, checkpoint=plan, ledger=ledger)
    assert [entry.guarantee for entry in ledger.entries()] == [model.guarantee]
    assert ledger.spent() == math.inf
    with pytest.raises(InvalidArgument, match="name that ledger"):
        case.fit(RATINGS, checkpoint=plan)


@paper
def test_what_was_ended_early_is_not_resumed(case: Case, plan: Checkpoint) -> None:
    ended = case.fit(RATINGS, checkpoint=plan, callbacks=[lambda record: record.epoch == 2])
    again = case.fit(RATINGS, checkpoint=plan)
    assert (len(again.history), bits(again)) == (2, bits(ended))


@pytest.mark.parametrize("case", [case for case in PLAIN if case.has_turns], ids=label_of)
def test_what_is_not_private_may_be_resumed_after_its_end(case: Case, plan: Checkpoint) -> None:
    heard: list[Any] = []
    case.fit(RATINGS, checkpoint=plan, callbacks=[lambda record: record.epoch == 2, heard.append])
    assert [record.epoch for record in heard] == [1, 2]  # every callback is called
    assert len(case.fit(RATINGS, checkpoint=plan).history) == 3
