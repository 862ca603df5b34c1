"""The accountant inverted: never over the budget, and hardly under it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.errors import InvalidArgument
from dpmf.privacy import Budget
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.calibration import Part, gaussian_events, gdp_for, poisson_event
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
    with pytest.raises(InvalidArgument, match=r"epsilon=90 .* cannot be kept for so many released numbers"):
        gaussian_events(Budget(90), [Part("sums", 1, 1, 10**6)])
    with pytest.raises(InvalidArgument, match="cannot be kept"):
        poisson_event(Budget(90), "sums", sampling_rate=0.1, count=1, coordinates=10**6)
    with pytest.raises(InvalidArgument, match="delta=0"):
        gdp_for(1.0, 0.0)
