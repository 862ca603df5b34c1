"""A guarantee is data: what it says, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from dpmf.errors import BudgetExceeded, DamagedFile, InvalidArgument
from dpmf.privacy import Budget, ClaimEvent, GaussianEvent, Guarantee
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.calibration import Part, gaussian_events
from dpmf.privacy.guarantee import PERSONAL, SEEDED, rounded_up

BUDGET = Budget(1.0)
PARTS = [Part("item biases", 1, 1, 60), Part("item sums", 3, 4, 2000)]
EVENTS = gaussian_events(BUDGET, PARTS)
CERTIFIED = Guarantee.certified_by(
    BUDGET, EVENTS, releases=["item biases", "item factors"], assumptions=["The catalogue is public."]
)
SEEDED_RUN = Guarantee.certified_by(BUDGET, EVENTS, releases=["item factors"], seeded=True)
PAPER = Guarantee.paper(
    epsilon=2, delta=0, unit="rating", neighbours="replace", claim="Theorem 1 of a paper", releases=["item factors"],
    assumptions=["The chain has converged."],
)  # fmt: skip
OWN_EPSILONS = Guarantee.certified_by(
    BUDGET, EVENTS, releases=["item factors"], assumptions=["The catalogue is public."], personal=True
)
SEEDED_CLAIM = Guarantee.paper(
    epsilon=2, delta=0, unit="rating", neighbours="replace", claim="Theorem 1 of a paper", releases=["item factors"],
    assumptions=["The chain has converged."], seeded=True, personal=True,
)  # fmt: skip
ALL = [Guarantee.none(), CERTIFIED, SEEDED_RUN, PAPER, OWN_EPSILONS, SEEDED_CLAIM]


def test_without_a_guarantee_there_is_no_epsilon() -> None:
    none = Guarantee.none()
    assert (none.epsilon, none.delta, none.unit, none.neighbours) == (None, None, None, None)
    assert none.mode == "none"
    assert not none.certified
    assert not none.is_private
    assert none.recomputed_epsilon() is None
    assert "not private" in str(none)


def test_epsilon_is_computed_from_the_events() -> None:
    assert CERTIFIED.certified
    assert CERTIFIED.is_private
    assert CERTIFIED.epsilon == 1.0
    assert CERTIFIED.recomputed_epsilon() == pytest.approx(1.0, rel=1e-6)
    assert str(CERTIFIED) == "(1.0, 1e-06)-DP per user, add-remove, certified; releases item biases and item factors"
    less = Guarantee.certified_by(Budget(9.0), EVENTS, releases=["sums"])
    assert less.epsilon == 1.0
    assert less.epsilon >= epsilon_of(EVENTS, 1e-6)


def test_events_over_the_budget_are_refused() -> None:
    with pytest.raises(BudgetExceeded, match=r"cost epsilon=1 .* more than the 0\.5 of the budget"):
        Guarantee.certified_by(Budget(0.5), EVENTS, releases=["sums"])


@pytest.mark.parametrize(
    ("budget", "events", "complaint"),
    [
        (Budget(math.inf), EVENTS, "finite epsilon"), (BUDGET, (), "at least one event"),
        (BUDGET, [ClaimEvent("sums", "trust me")], "'sums' cannot be certified"),
        (BUDGET, [GaussianEvent("sums", 9.0)], "how many numbers"),
    ],
)  # fmt: skip
def test_what_cannot_be_accounted_for_is_not_certified(budget: Budget, events: Any, complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        Guarantee.certified_by(budget, events, releases=["sums"])


def test_seeded_noise_never_prints_as_certified() -> None:
    assert SEEDED_RUN.seeded
    assert SEEDED_RUN.mode == "certified"
    assert not SEEDED_RUN.certified
    assert not SEEDED_RUN.is_private
    assert SEEDED_RUN.assumptions == (SEEDED,)
    assert str(SEEDED_RUN).startswith("not private: noise from a seed")
    assert "certified" not in str(SEEDED_RUN)


def test_a_paper_claim_is_a_claim() -> None:
    assert (PAPER.mode, PAPER.certified, PAPER.epsilon, PAPER.delta) == ("paper", False, 2.0, 0.0)
    assert PAPER.recomputed_epsilon() == math.inf
    assert str(PAPER) == "(2.0, 0.0)-DP per rating, replace, paper claim, not certified; releases item factors"
    with pytest.raises(InvalidArgument, match="assumptions"):
        Guarantee.paper(
            epsilon=2, delta=0, unit="user", neighbours="replace", claim="c", releases=["x"], assumptions=[]
        )


def test_a_claim_with_seeded_noise_is_not_private() -> None:
    assert PAPER.is_private
    assert SEEDED_CLAIM.seeded
    assert not SEEDED_CLAIM.is_private
    assert str(SEEDED_CLAIM).startswith("not private: noise from a seed")


def test_a_file_states_seeded_noise_and_personal_epsilons_as_assumptions() -> None:
    assert SEEDED_RUN.to_json()["assumptions"] == [SEEDED]
    assert OWN_EPSILONS.to_json()["assumptions"] == ["The catalogue is public.", PERSONAL]
    assert SEEDED_CLAIM.to_json()["assumptions"] == [SEEDED, "The chain has converged.", PERSONAL]
    for guarantee in ALL:
        assert set(guarantee.to_json()) == {
            "epsilon", "delta", "unit", "neighbours", "mode", "certified", "assumptions", "releases", "events",
        }  # fmt: skip
        read = Guarantee.from_json(guarantee.to_json())
        assert (read.seeded, read.personal) == (guarantee.seeded, guarantee.personal)


@pytest.mark.parametrize("sentence", [SEEDED, PERSONAL])
def test_a_sentence_does_not_stand_in_for_a_field(sentence: str) -> None:
    with pytest.raises(InvalidArgument, match="not its sentence"):
        Guarantee.certified_by(BUDGET, EVENTS, releases=["sums"], assumptions=[sentence])
    with pytest.raises(InvalidArgument, match="not its sentence"):
        Guarantee.paper(
            epsilon=2, delta=0, unit="user", neighbours="replace", claim="c", releases=["x"], assumptions=[sentence]
        )


@pytest.mark.parametrize("guarantee", ALL)
def test_it_survives_json(guarantee: Guarantee) -> None:
    assert Guarantee.from_json(json.loads(json.dumps(guarantee.to_json(), allow_nan=False))) == guarantee


@pytest.mark.parametrize(
    "content",
    [
        None, [], "none", {}, {**Guarantee.none().to_json(), "mode": "certified"},
        {**Guarantee.none().to_json(), "epsilon": 1.0}, {**Guarantee.none().to_json(), "extra": 1},
        replace(Guarantee.none(), certified=True).to_json(), replace(CERTIFIED, mode="perfect").to_json(),
        replace(CERTIFIED, mode="paper").to_json(), replace(CERTIFIED, mode="none").to_json(),
        replace(CERTIFIED, epsilon=None).to_json(), replace(CERTIFIED, epsilon=math.inf).to_json(),
        replace(CERTIFIED, epsilon=math.nan).to_json(), replace(CERTIFIED, epsilon=True).to_json(),
        replace(CERTIFIED, delta=0.0).to_json(), replace(CERTIFIED, delta=1.0).to_json(),
        replace(CERTIFIED, unit="item").to_json(), replace(CERTIFIED, neighbours=None).to_json(),
        replace(CERTIFIED, certified=False).to_json(), replace(CERTIFIED, events=()).to_json(),
        replace(CERTIFIED, events=PAPER.events).to_json(), replace(CERTIFIED, releases=()).to_json(),
        replace(CERTIFIED, events=(GaussianEvent("x", 9.0),)).to_json(),
        replace(SEEDED_RUN, certified=True).to_json(), replace(SEEDED_RUN, assumptions=()).to_json(),
        replace(PAPER, certified=True).to_json(), replace(PAPER, assumptions=()).to_json(),
        {**CERTIFIED.to_json(), "certified": "yes"}, {**CERTIFIED.to_json(), "assumptions": "none"},
        {**CERTIFIED.to_json(), "assumptions": [1]}, {**CERTIFIED.to_json(), "events": [{}]},
        {**CERTIFIED.to_json(), "epsilon": 10**400}, {**PAPER.to_json(), "epsilon": 10**400},
        {**CERTIFIED.to_json(), "releases": ["factors\nSignature: fits"]},
        {**CERTIFIED.to_json(), "releases": ["\x1b[2J"]},
        {**CERTIFIED.to_json(), "releases": [[]]}, {**CERTIFIED.to_json(), "unit": []},
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_not_guessed(content: object) -> None:
    with pytest.raises(DamagedFile, match="guarantee"):
        Guarantee.from_json(content)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.1234561, 0.123456, 3.0000001, 1e6 + 1e-7])
def test_epsilon_is_only_rounded_up(epsilon: float) -> None:
    assert epsilon <= rounded_up(epsilon) <= epsilon + 1.1e-6
    assert round(rounded_up(epsilon), 6) == rounded_up(epsilon)
