"""A guarantee that does not say what its events cost does not verify."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dpmf.privacy import Budget, Event, GaussianEvent, Guarantee, PoissonGaussianEvent
from dpmf.privacy import verifying as verifying_module
from dpmf.privacy.verifying import verify

GAUSSIAN = GaussianEvent("item sums", 5.0, 2, 40)
SAMPLED = PoissonGaussianEvent("gradients", 2.0, 0.01, 100, 100)


def promise(*events: Event, neighbours: str = "add-remove") -> Guarantee:
    return Guarantee.certified_by(Budget(9.0, neighbours=neighbours), events, releases=["item factors"])


@pytest.mark.parametrize("events", [[GAUSSIAN], [SAMPLED], [GAUSSIAN, SAMPLED]])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_what_was_computed_verifies(events: list[Event], neighbours: str) -> None:
    verdict = verify(promise(*events, neighbours=neighbours))
    assert verdict.ok, verdict.reason
    assert (verdict.cross_check is None) == (neighbours == "replace" and SAMPLED in events)


@pytest.mark.parametrize("factor", [0.5, 0.999, 1.001, 2.0])
def test_another_epsilon_does_not(factor: float) -> None:
    honest = promise(GAUSSIAN)
    assert honest.epsilon is not None
    verdict = verify(replace(honest, epsilon=honest.epsilon * factor))
    assert not verdict.ok
    assert "is stated, but the events cost" in verdict.reason


def test_other_events_do_not() -> None:
    assert not verify(replace(promise(GAUSSIAN), events=(replace(GAUSSIAN, count=3),))).ok
    assert not verify(replace(promise(GAUSSIAN), events=(GAUSSIAN, GAUSSIAN))).ok
    assert not verify(replace(promise(GAUSSIAN), delta=1e-7)).ok
    assert not verify(replace(promise(GAUSSIAN), events=(replace(GAUSSIAN, coordinates=10**12),))).ok


def test_events_that_cannot_be_accounted_for_do_not() -> None:
    verdict = verify(replace(promise(SAMPLED), delta=1e-12))
    assert (verdict.ok, verdict.recomputed_epsilon) == (False, None)
    assert "cannot be accounted for: delta=1e-12" in verdict.reason


def test_accountants_that_disagree_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying_module, "renyi_epsilon", lambda *_, **__: 0.5)
    verdict = verify(promise(GAUSSIAN))
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
