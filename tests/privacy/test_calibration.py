"""The accountant inverted: never over the budget, and hardly under it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.privacy import Budget, ClaimEvent, Event, GaussianEvent, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.calibration import Part, gaussian_events, gdp_for, norm_event, poisson_event
from dpmf.privacy.gaussian import gaussian_delta, gaussian_epsilon

PARTS = st.lists(
    st.builds(
        Part, st.just("sums"), st.floats(1e-3, 1e3), st.integers(1, 1000), st.integers(0, 10**4),
    ),
    min_size=1, max_size=5,
)  # fmt: skip


@given(st.floats(1e-4, 1e3), st.floats(1e-12, 0.4))
def test_gdp_is_the_inverse_of_epsilon(epsilon: float, delta: float) -> None:
    gdp = gdp_for(epsilon, delta)
    assert gaussian_delta(gdp, epsilon) <= delta * (1 + 1e-12)
    assert gaussian_epsilon(gdp * (1 + 1e-9), delta) > epsilon * (1 - 1e-9)


@given(PARTS, st.floats(0.01, 4.0), st.sampled_from([1e-7, 1e-6, 1e-3]), st.sampled_from(["add-remove", "replace"]))
def test_full_batches_use_up_the_budget_and_no_more(
    parts: list[Part], epsilon: float, delta: float, neighbours: str
) -> None:
    budget = Budget(epsilon, delta, neighbours=neighbours)
    events = gaussian_events(budget, parts)
    spent = epsilon_of(events, delta, neighbours=neighbours)
    assert spent <= epsilon
    assert spent == pytest.approx(epsilon, rel=1e-3)
    weights = [event.count / event.noise_multiplier**2 / part.share for event, part in zip(events, parts, strict=True)]
    assert weights == pytest.approx([weights[0]] * len(parts))
    assert [(one.count, one.coordinates) for one in events] == [(one.count, one.coordinates) for one in parts]


@settings(max_examples=3)
@given(st.floats(0.3, 6.0), st.floats(0.005, 0.3), st.integers(1, 300), st.sampled_from(["add-remove", "replace"]))
def test_sampled_steps_stay_within_the_budget(epsilon: float, rate: float, count: int, neighbours: str) -> None:
    budget = Budget(epsilon, 1e-5, neighbours=neighbours)
    event = poisson_event(budget, "gradients", sampling_rate=rate, count=count, coordinates=100)
    spent = epsilon_of([event], budget.delta, neighbours=neighbours)
    assert spent <= epsilon
    assert spent >= 0.97 * epsilon or event.noise_multiplier == 0.1
    assert (event.sampling_rate, event.count, event.coordinates) == (rate, count, 100)


def test_a_known_value_comes_back() -> None:
    event = poisson_event(Budget(1.8283, 1e-5), "gradients", sampling_rate=0.01, count=1000)
    assert event.noise_multiplier == pytest.approx(1.0, rel=3e-3)
    assert gdp_for(4.886554117462, 1e-6) == pytest.approx(1.0, rel=1e-9)


def test_noise_is_never_below_what_can_be_accounted_for() -> None:
    event = poisson_event(Budget(500.0, 1e-3), "gradients", sampling_rate=1e-6, count=1)
    assert event.noise_multiplier == 0.1


def test_what_cannot_be_calibrated_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="epsilon=inf asks for no noise"):
        gaussian_events(Budget(math.inf), [Part("sums", 1)])
    with pytest.raises(InvalidArgument, match="at least one part"):
        gaussian_events(Budget(1), [])
    with pytest.raises(InvalidArgument, match=r"share=0 of 'sums'"):
        Part("sums", 0)
    with pytest.raises(InvalidArgument, match=r"epsilon=90 .* cannot be met for this many released numbers"):
        gaussian_events(Budget(90), [Part("sums", 1, 1, 10**6)])
    with pytest.raises(InvalidArgument, match="cannot be met"):
        poisson_event(Budget(90), "sums", sampling_rate=0.1, count=1, coordinates=10**6)
    with pytest.raises(InvalidArgument, match="delta=0"):
        gdp_for(1.0, 0.0)


@given(
    st.floats(1e-3, 20.0), st.sampled_from([1e-9, 1e-6, 1e-3]), st.integers(1, 1000), st.integers(0, 10**6),
    st.floats(1e-3, 0.999), st.sampled_from(["add-remove", "replace"]),
)  # fmt: skip
def test_pure_noise_uses_up_what_is_left_and_no_more(
    epsilon: float, delta: float, count: int, coordinates: int, share: float, neighbours: str
) -> None:
    budget = Budget(epsilon, delta, neighbours=neighbours)
    spent: list[Event] = [
        *gaussian_events(Budget(epsilon * share, delta, neighbours=neighbours), [Part("sums", 1, 2, 100)]),
        NormNoiseEvent("other rows", 10 / (epsilon * (1 - share)), 1, 10),
    ]
    for others in ([], spent[:1], spent):
        event = norm_event(budget, "rows", count=count, coordinates=coordinates, spent=others)
        assert (event.what, event.count, event.coordinates) == ("rows", count, coordinates)
        cost = epsilon_of([*others, event], delta, neighbours=neighbours)
        assert cost <= epsilon
        assert cost == pytest.approx(epsilon, rel=1e-8)


def test_pure_noise_beside_sampled_steps() -> None:
    spent: list[Event] = [PoissonGaussianEvent("gradients", 2.0, 0.01, 100, 100), GaussianEvent("sums", 20.0)]
    event = norm_event(Budget(2.0), "rows", coordinates=1000, spent=spent)
    left = 2.0 - epsilon_of(spent, 1e-6)
    assert event.noise_multiplier == pytest.approx(1 / left, rel=1e-6)
    assert epsilon_of([*spent, event], 1e-6) <= 2.0


def test_pure_noise_that_does_not_fit_is_refused() -> None:
    events: list[Event] = [GaussianEvent("s", 1.0), ClaimEvent("factors", "private"), NormNoiseEvent("rows", 1.0)]
    for spent in events:
        with pytest.raises(BudgetExceeded, match=r"epsilon=1 leaves nothing for 'item noise': the rest costs epsilon="):
            norm_event(Budget(1.0), "item noise", coordinates=10, spent=[spent])
    with pytest.raises(InvalidArgument, match="epsilon=inf asks for no noise"):
        norm_event(Budget(math.inf), "rows", coordinates=10)
    with pytest.raises(InvalidArgument, match=r"epsilon=90 .* cannot be met for this many released numbers"):
        norm_event(Budget(90), "rows", coordinates=10**6)
    with pytest.raises(InvalidArgument, match="count=0"):
        norm_event(Budget(1.0), "rows", count=0, coordinates=10)
