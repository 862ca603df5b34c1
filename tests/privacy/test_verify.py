"""A guarantee that does not say what its events cost does not verify."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.errors import InvalidArgument
from dpmf.privacy import Budget, Event, GaussianEvent, Guarantee, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy import verify as verifying_module
from dpmf.privacy.explain import Facts, explain_guarantee
from dpmf.privacy.verify import verify

GAUSSIAN = GaussianEvent("item sums", 5.0, 2, 40)
SAMPLED = PoissonGaussianEvent("gradients", 2.0, 0.01, 100, 100)
PURE = NormNoiseEvent("item noise", 2.0, 3, 80)


def certified(*events: Event, neighbours: str = "add-remove") -> Guarantee:
    return Guarantee.certified_by(Budget(9.0, neighbours=neighbours), events, releases=["item factors"])


@pytest.mark.parametrize(
    "events", [[GAUSSIAN], [SAMPLED], [GAUSSIAN, SAMPLED], [PURE], [PURE, GAUSSIAN], [PURE, SAMPLED]]
)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_what_was_computed_verifies(events: list[Event], neighbours: str) -> None:
    verdict = verify(certified(*events, neighbours=neighbours))
    assert verdict.ok, verdict.reason
    assert (verdict.cross_check is None) == (neighbours == "replace" and SAMPLED in events)


@pytest.mark.parametrize("factor", [0.5, 0.999, 1.001, 2.0])
def test_another_epsilon_does_not(factor: float) -> None:
    honest = certified(GAUSSIAN)
    assert honest.epsilon is not None
    verdict = verify(replace(honest, epsilon=honest.epsilon * factor))
    assert not verdict.ok
    assert "is stated, but the events cost" in verdict.reason


def test_other_events_do_not() -> None:
    assert not verify(replace(certified(GAUSSIAN), events=(replace(GAUSSIAN, count=3),))).ok
    assert not verify(replace(certified(GAUSSIAN), events=(GAUSSIAN, GAUSSIAN))).ok
    assert not verify(replace(certified(PURE), events=(replace(PURE, count=2),))).ok
    assert not verify(replace(certified(PURE), events=(replace(PURE, noise_multiplier=1.99),))).ok
    assert not verify(replace(certified(PURE, GAUSSIAN), events=(GAUSSIAN,))).ok
    assert not verify(replace(certified(GAUSSIAN), delta=1e-7)).ok
    assert not verify(replace(certified(GAUSSIAN), events=(replace(GAUSSIAN, coordinates=10**12),))).ok


def test_events_that_cannot_be_accounted_for_do_not() -> None:
    verdict = verify(replace(certified(SAMPLED), delta=1e-12))
    assert (verdict.ok, verdict.recomputed_epsilon) == (False, None)
    assert "cannot be accounted for: delta=1e-12" in verdict.reason


@settings(max_examples=8)
@given(
    st.sampled_from([1e-100, 1e-9, 0.1, 0.5, 1.0, 1e5, 1e100]), st.sampled_from([1, 100, 2**53]),
    st.sampled_from([1, 10**9, 2**53]), st.sampled_from([None, 1e-100, 1e-5, 0.5, 1 - 1e-16]),
    st.sampled_from([1e-300, 1e-10, 0.999]), st.sampled_from(["add-remove", "replace"]),
)  # fmt: skip
def test_whatever_is_written_gets_an_answer(
    noise: float, count: int, coordinates: int, rate: float | None, delta: float, neighbours: str
) -> None:
    sampled = () if rate is None else (PoissonGaussianEvent("x", noise, rate, count, coordinates),)
    events = (GaussianEvent("x", noise, count, coordinates), NormNoiseEvent("x", noise, count, coordinates), *sampled)
    written = replace(certified(GAUSSIAN), epsilon=1e3, delta=delta, neighbours=neighbours, events=events)
    assert Guarantee.from_json(written.to_json()) == written
    assert not verify(written).ok
    with contextlib.suppress(InvalidArgument):
        explain_guarantee(written, Facts(1, 1, "1:5", True, "als"))


def test_accountants_that_disagree_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying_module, "renyi_epsilon", lambda *_, **__: 0.5)
    verdict = verify(certified(GAUSSIAN))
    assert not verdict.ok
    assert "disagree" in verdict.reason


def test_there_is_nothing_to_recompute_without_events() -> None:
    paper = Guarantee.paper(
        epsilon=1, delta=0, unit="user", neighbours="replace", claim="c", releases=["x"], assumptions=["a"]
    )
    assert verify(paper).ok
    assert verify(paper).recomputed_epsilon == math.inf
    assert verify(Guarantee.none()).ok
    assert verify(Guarantee.none()).recomputed_epsilon is None
