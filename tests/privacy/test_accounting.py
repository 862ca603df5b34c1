"""What events cost: known values, second opinions, the traps, and what is refused."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from fractions import Fraction

import pytest

from dpmf.errors import InvalidArgument
from dpmf.privacy import ClaimEvent, Event, GaussianEvent, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy.accounting import (
    MOST_SAMPLED_KINDS,
    delta_of,
    epsilon_of,
    pure_epsilon,
    renyi_epsilon,
    sampler_slack,
)
from dpmf.privacy.gaussian import gaussian_delta, gaussian_epsilon
from dpmf.privacy.noise import DELTA_PER_COORDINATE, EPSILON_PER_COORDINATE
from dpmf.privacy.norm_noise import SLACK_WEIGHT

SAMPLED = PoissonGaussianEvent("gradients", 1.0, 0.01, 1000)
GAUSSIAN = GaussianEvent("sums", 2.0, 3)
PURE = NormNoiseEvent("rows", 4.0, 3)


def test_known_values_of_sampled_steps() -> None:
    assert epsilon_of([SAMPLED], 1e-5) == pytest.approx(1.828, abs=1e-3)
    assert renyi_epsilon([SAMPLED], 1e-5) == pytest.approx(2.101, abs=1e-3)
    assert delta_of([SAMPLED], epsilon_of([SAMPLED], 1e-5)) == pytest.approx(1e-5, rel=1e-2)


def test_full_batches_compose_exactly_in_any_order() -> None:
    events = [GaussianEvent("a", 4.0, 8), GaussianEvent("b", 1.5), GaussianEvent("c", 10.0, 2)]
    gdp = math.sqrt(8 / 16 + 1 / 2.25 + 2 / 100)
    for order in (events, events[::-1]):
        assert epsilon_of(order, 1e-6) == pytest.approx(gaussian_epsilon(gdp, 1e-6), rel=1e-9)
        assert delta_of(order, 2.0) == pytest.approx(gaussian_delta(gdp, 2.0), rel=1e-9)
    assert epsilon_of([], 1e-6) == 0.0


def test_privacy_loss_distributions_agree_with_the_exact_formula() -> None:
    nearly_nothing = PoissonGaussianEvent("sample", 1e3, 1e-9)
    for neighbours in ("add-remove", "replace"):
        mixed = epsilon_of([GAUSSIAN, nearly_nothing], 1e-6, neighbours=neighbours)
        assert mixed == pytest.approx(epsilon_of([GAUSSIAN], 1e-6, neighbours=neighbours), rel=2e-3)


def test_the_factor_for_replacing_is_applied_once() -> None:
    # A full batch holds its own sensitivity: the same figure whatever the neighbours are.
    assert epsilon_of([GAUSSIAN], 1e-6, neighbours="replace") == epsilon_of([GAUSSIAN], 1e-6)
    assert renyi_epsilon([GAUSSIAN], 1e-6, neighbours="replace") == renyi_epsilon([GAUSSIAN], 1e-6)
    # A sampled step is relative to one contribution, which may turn into its opposite: at almost every rating being
    # in the sample, that is a full batch of twice the sensitivity.
    nearly_all = PoissonGaussianEvent("sample", 4.0, 1 - 1e-9)
    assert epsilon_of([nearly_all], 1e-6) == pytest.approx(gaussian_epsilon(1 / 4, 1e-6), rel=2e-3)
    replaced = epsilon_of([nearly_all], 1e-6, neighbours="replace")
    assert replaced == pytest.approx(gaussian_epsilon(2 / 4, 1e-6), rel=2e-3)


@pytest.mark.parametrize(
    "events",
    [
        [SAMPLED], [GAUSSIAN], [GAUSSIAN, SAMPLED], [PoissonGaussianEvent("x", 0.5, 1e-3, 100)],
        [PoissonGaussianEvent("x", 2.2, 0.008, 50_000)], [PoissonGaussianEvent("x", 5.0, 0.5, 40)],
        [PoissonGaussianEvent("x", 50.0, 1e-4, 1)], [GaussianEvent("x", 100.0)], [GaussianEvent("x", 0.2, 9)],
        [PURE], [PURE, GAUSSIAN], [PURE, SAMPLED],
    ],
)  # fmt: skip
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_renyi_accounting_can_only_be_larger(events: Sequence[Event], delta: float) -> None:
    assert renyi_epsilon(events, delta) >= epsilon_of(events, delta) * 0.999 - 1e-6


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"), [(1.0, 0.01, 1000, 1e-5), (0.8, 0.05, 100, 1e-6), (3.0, 0.2, 200, 1e-7)]
)
def test_a_second_opinion_agrees(noise: float, rate: float, steps: int, delta: float) -> None:
    prv = pytest.importorskip("prv_accountant")
    mechanism = prv.PoissonSubsampledGaussianMechanism(sampling_probability=rate, noise_multiplier=noise)
    other = prv.PRVAccountant(
        prvs=mechanism, max_self_compositions=steps, eps_error=0.02, delta_error=delta / 1000
    )  # fmt: skip
    low, _, high = other.compute_epsilon(delta=delta, num_self_compositions=steps)
    assert low <= epsilon_of([PoissonGaussianEvent("x", noise, rate, steps)], delta) <= high


def test_claims_are_unbounded() -> None:
    events: list[Event] = [GAUSSIAN, ClaimEvent("factors", "private, they say")]
    assert epsilon_of(events, 1e-6) == renyi_epsilon(events, 1e-6) == math.inf
    assert delta_of(events, 10.0) == 1.0


def test_the_sampler_costs_in_proportion_to_what_is_released() -> None:
    many = 10**6
    event = GaussianEvent("sums", 2.0, 3, many)
    ideal, real = epsilon_of([GAUSSIAN], 1e-6), epsilon_of([event], 1e-6)
    extra_epsilon, extra_delta = sampler_slack(many, real)
    assert extra_epsilon == pytest.approx(many * EPSILON_PER_COORDINATE)
    assert extra_delta == pytest.approx((1 + math.exp(real)) * many * DELTA_PER_COORDINATE)
    assert real >= ideal
    left = (1e-6 - extra_delta) * math.exp(-extra_epsilon)
    assert real == pytest.approx(epsilon_of([GAUSSIAN], left) + extra_epsilon, rel=1e-8)
    assert delta_of([event], real) <= 1e-6 * (1 + 1e-8)
    assert epsilon_of([event], 1e-6, slack=lambda _, __: (0.0, 0.0)) == ideal


def test_a_sampler_that_is_too_coarse_leaves_no_guarantee() -> None:
    assert epsilon_of([GaussianEvent("sums", 0.1, 1, 10**9)], 1e-6) == math.inf
    assert sampler_slack(1, 1e4)[1] == 1.0
    assert delta_of([GaussianEvent("sums", 2.0, 1, 10**13)], 0.0) <= 1.0


def test_below_the_extra_epsilon_delta_is_still_a_bound() -> None:
    def slack(coordinates: int, epsilon: float) -> tuple[float, float]:
        return 0.5, 0.0

    assert delta_of([GAUSSIAN], 0.2, slack=slack) >= delta_of([GAUSSIAN], 0.5, slack=slack)
    assert delta_of([GAUSSIAN], 0.5, slack=slack) >= delta_of([GAUSSIAN], 0.0)


@pytest.mark.parametrize(
    ("event", "delta", "complaint"),
    [
        (PoissonGaussianEvent("x", 1.0, 0.1, 2 * 10**6), 1e-6, "count=2,000,000"),
        (PoissonGaussianEvent("x", 0.05, 0.1), 1e-6, r"noise_multiplier=0\.05"),
        (PoissonGaussianEvent("x", 1.0, 0.1), 1e-12, "delta=1e-12 is too small"),
        (GAUSSIAN, 0.0, "delta=0"), (GAUSSIAN, 1.0, "delta=1"), (GAUSSIAN, math.nan, "delta=nan"),
        ("laplace", 1e-6, "'laplace' is not an event"),
    ],
)  # fmt: skip
def test_unknown_cases_are_refused(event: Event, delta: float, complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        epsilon_of([event], delta)


def test_unknown_neighbours_and_missing_bounds_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="neighbours='near'"):
        epsilon_of([GAUSSIAN], 1e-6, neighbours="near")
    with pytest.raises(InvalidArgument, match="no Rényi bound"):
        renyi_epsilon([SAMPLED], 1e-6, neighbours="replace")
    with pytest.raises(InvalidArgument, match="epsilon=-1"):
        delta_of([GAUSSIAN], -1.0)


def test_a_sampled_step_with_next_to_no_noise_is_unbounded_and_quick() -> None:
    assert epsilon_of([PoissonGaussianEvent("x", 0.1, 0.9, 10**6)], 1e-6) == math.inf


def test_accounting_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        epsilon_of([PoissonGaussianEvent("x", 100.0, 0.5, 10)], 1e-6)
    assert not caplog.records


def test_sampled_steps_of_one_kind_are_accounted_for_together() -> None:
    """However they are spread over events: each kind takes time, and their number is limited."""
    many = [PoissonGaussianEvent(f"step {place}", 1.0, 0.01, 1, 1) for place in range(100)]
    assert epsilon_of(many, 1e-6) == epsilon_of([PoissonGaussianEvent("steps", 1.0, 0.01, 100, 100)], 1e-6)
    kinds = [PoissonGaussianEvent("steps", 1 + place / 100, 0.01, 1, 1) for place in range(MOST_SAMPLED_KINDS + 1)]
    with pytest.raises(InvalidArgument, match="21 kinds of sampled steps"):
        epsilon_of(kinds, 1e-6)


# Noise of gamma-distributed length


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_pure_noise_costs_epsilon_alone(neighbours: str) -> None:
    assert epsilon_of([PURE], 1e-6, neighbours=neighbours) == pytest.approx(3 / 4, rel=1e-9)
    assert epsilon_of([PURE], 1e-300, neighbours=neighbours) == epsilon_of([PURE], 1e-6, neighbours=neighbours)
    several = [PURE, NormNoiseEvent("more rows", 10.0)]
    assert epsilon_of(several, 1e-6, neighbours=neighbours) == pytest.approx(3 / 4 + 1 / 10, rel=1e-9)
    assert renyi_epsilon(several, 1e-6, neighbours=neighbours) == pytest.approx(3 / 4 + 1 / 10, rel=1e-9)
    assert delta_of(several, 0.851, neighbours=neighbours) == 0.0


def test_pure_epsilon_is_rounded_up() -> None:
    for noise in (3.0, 7.0, 0.1, 1e-3, 123.456):
        events = [NormNoiseEvent("rows", noise, 7), NormNoiseEvent("rows", noise + 1, 11)]
        exact = Fraction(7) / Fraction(noise) + Fraction(11) / Fraction(noise + 1)
        assert exact <= Fraction(pure_epsilon(events)) <= exact * (1 + Fraction(1, 10**14))
    assert pure_epsilon([GAUSSIAN, SAMPLED]) == 0.0


@pytest.mark.parametrize("rest", [[GAUSSIAN], [SAMPLED], [GAUSSIAN, SAMPLED]])
def test_pure_noise_adds_to_the_epsilon_of_the_rest(rest: list[Event]) -> None:
    delta, alone = 1e-6, epsilon_of(rest, 1e-6)
    for order in ([PURE, *rest], [*rest, PURE]):
        both = epsilon_of(order, delta)
        assert both == pytest.approx(alone + 3 / 4, rel=1e-9)
        assert renyi_epsilon(order, delta) == pytest.approx(renyi_epsilon(rest, delta) + 3 / 4, rel=1e-9)
        assert delta_of(order, both) == pytest.approx(delta, rel=1e-3)
        assert delta_of(order, 1.75) == pytest.approx(delta_of(rest, 1.0), rel=1e-6)


def test_below_the_pure_epsilon_delta_is_that_of_the_hardest_case() -> None:
    pure = 3 / 4
    for epsilon in (0.0, 0.3, 0.7):
        told_apart = (math.exp(pure) - math.exp(epsilon)) / (1 + math.exp(pure))  # randomized response
        assert delta_of([PURE], epsilon) == pytest.approx(told_apart, rel=1e-9)
        # The noise of one column is Laplace, and that is easier to hide.
        assert delta_of([PURE], epsilon) > -math.expm1((epsilon - pure) / 2)
    # With Gaussian noise: no less than a real pair, two Gaussians and a randomized response, can be told apart.
    p, missed = 1 / (1 + math.exp(-pure)), gaussian_delta(math.sqrt(3 / 4), 0.0)
    bound = delta_of([PURE, GAUSSIAN], 0.0)
    pair = p * gaussian_delta(math.sqrt(3 / 4), -pure) + (1 - p) * gaussian_delta(math.sqrt(3 / 4), pure)
    assert pair < bound == pytest.approx(missed + (1 - missed) * math.tanh(pure / 2))
    assert delta_of([PURE, GAUSSIAN], pure - 1e-9) == pytest.approx(delta_of([PURE, GAUSSIAN], pure), rel=1e-6)


def test_the_sampler_of_pure_noise_costs_as_much_as_is_proven() -> None:
    many = 10**6
    event = NormNoiseEvent("rows", 4.0, 3, many)
    extra_epsilon, extra_delta = sampler_slack(many * SLACK_WEIGHT, 0.75)
    assert 1e-8 < extra_epsilon < 1e-7
    assert 0 < extra_delta < 1e-23
    assert epsilon_of([event], 1e-6) == pytest.approx(3 / 4 + extra_epsilon, abs=1e-9)
    assert epsilon_of([event], extra_delta / 2) == math.inf
    mixed = epsilon_of([event, GaussianEvent("sums", 2.0, 3, many)], 1e-6)
    ideal = epsilon_of([PURE, GAUSSIAN], 1e-6 * math.exp(-extra_epsilon))
    assert mixed == pytest.approx(ideal + extra_epsilon, abs=3e-9)


def test_pure_noise_next_to_none_has_an_answer() -> None:
    assert epsilon_of([NormNoiseEvent("rows", 1e-100, 2**53, 1)], 1e-6) == math.inf
    assert delta_of([NormNoiseEvent("rows", 1e-100, 2**53, 1)], 5.0) == pytest.approx(1.0)
    assert epsilon_of([NormNoiseEvent("rows", 1.0), ClaimEvent("factors", "they say")], 1e-6) == math.inf
