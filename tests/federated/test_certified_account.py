"""A person's ledger over several agreements: entered before anything is sent, and never beyond its cap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.federated.certified.account import Account, own_guarantee
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.user import User
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.privacy import Budget
from dpmf.privacy.accounting import gdp_of
from dpmf.privacy.ledger import Ledger

from .certified_world import BUDGET, LEARNERS, agreement_of, inquiry_of, some_ratings
from .certified_world import VALUE as ONE_VALUE


class Party:
    """A recommender that asks one person, and the keys of a third party."""

    def __init__(self, agreement: Agreement) -> None:
        self.agreement, self.keys, self.third_party = agreement, KeyPair(), KeyPair()
        self.channels: dict[bytes, Channel] = {}

    def user(self, ledger: Ledger | None, **more: Any) -> User:
        """Return the person's side."""
        keys = self.keys.public, self.third_party.public
        return User(*some_ratings(1), self.agreement, *keys, place=1, ledger=ledger, **more)

    def ask(self, user: User, number: int) -> int:
        """Put the question of a round, and return how many messages come back."""
        content = inquiry_of(self.agreement, number).encoded(self.agreement)
        channel = self.channels.setdefault(user.public, Channel(self.keys, user.public))
        return len(user.receive(channel.seal(content)))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "mine.json", Budget(6.0))


def test_joining_is_entered_before_there_is_anything_to_send(ledger: Ledger) -> None:
    party = Party(agreement_of())
    user = party.user(ledger)
    (entry,) = ledger.entries()
    assert (entry.label, entry.started, ledger.spent()) == ("als, federated", 0, 5.0)
    assert entry.guarantee.events == party.agreement.events
    assert party.ask(user, 0) == 1
    assert ledger.entries()[0].started == 1


def test_what_exceeds_the_cap_is_refused_before_a_key_is_made(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    Party(agreement_of()).user(ledger)
    monkeypatch.setattr(KeyPair, "__init__", None)  # nothing could be sent without one
    keys = bytes(32), bytes(31) + b"\1"
    with pytest.raises(BudgetExceeded, match=r"'als, federated' asks for epsilon=5.*more than the cap"):
        User(*some_ratings(1), agreement_of(), *keys, ledger=ledger)
    assert len(ledger.entries()) == 1


def test_another_run_of_the_same_agreement_is_charged_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "mine.json", Budget(20.0))
    for runs in (1, 2, 3):
        party = Party(agreement_of())
        assert party.ask(party.user(ledger), 0) == 1
        assert len(ledger.entries()) == runs
    assert 7 < ledger.spent() < 15  # less than three times as much: Gaussian noise adds up in squares


def test_a_process_that_died_answers_no_round_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    party = Party(agreement_of())
    first = party.user(ledger)
    assert party.ask(first, 0) == 1
    monkeypatch.setattr(User, "_pass_over", _die)
    with pytest.raises(KeyboardInterrupt):  # before the answer is made, and after it was entered
        party.ask(first, 1)
    monkeypatch.undo()
    again = party.user(Ledger(ledger.path))
    assert (again.round, len(ledger.entries()), ledger.spent()) == (1, 1, 5.0)
    assert [party.ask(again, number) for number in (0, 1, 2)] == [0, 0, 1]


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_two_copies_of_a_device_answer_a_round_once_together(ledger: Ledger) -> None:
    party = Party(agreement_of())
    one, other = party.user(ledger), party.user(Ledger(ledger.path))
    assert [party.ask(one, 0), party.ask(other, 0), party.ask(other, 1), party.ask(one, 1)] == [1, 0, 1, 0]
    assert other.refusals.by_reason.total() == one.refusals.by_reason.total() == 1


def test_a_smaller_share_pays_less_in_proportion(tmp_path: Path) -> None:
    agreement, ledger = agreement_of(), Ledger(tmp_path / "mine.json", Budget(5.0))
    half = own_guarantee(agreement, 0.5, seeded=False)
    assert gdp_of(half.events) == pytest.approx(gdp_of(agreement.events) / 2)
    Party(agreement).user(ledger, share=0.5)
    assert 1 < ledger.spent() < 2.5
    party = Party(agreement)
    party.user(ledger, share=0.5)
    with pytest.raises(InvalidArgument, match="another guarantee for this run"):
        party.user(ledger, share=0.6)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in ("sgld", "sketch")])  # which take a while
def test_every_method_can_be_entered(name: str, tmp_path: Path) -> None:
    value = name.startswith("objective")
    cap = replace(ONE_VALUE if value else BUDGET, epsilon=15.0)
    party = Party(agreement_of(name))
    user = party.user(Ledger(tmp_path / "mine.json", cap))
    assert party.ask(user, 0) == 1
    assert Ledger(tmp_path / "mine.json").entries()[0].guarantee.events == party.agreement.plan.guaranteed()[1]


def test_another_unit_and_noise_from_a_seed_are_refused(ledger: Ledger) -> None:
    with pytest.raises(InvalidArgument, match="unit='rating' cannot be added"):
        Party(agreement_of("objective")).user(ledger)
    with pytest.raises(BudgetExceeded):
        Account(ledger, agreement_of(), bytes(32), bytes(32), seeded=True)
    assert ledger.entries() == ()
