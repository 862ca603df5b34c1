"""The noise that a budget calls for: the accountant, inverted.

The functions return events, ready to be carried out and recorded: draw noise of standard deviation (or scale)
`event.noise_multiplier` × the sensitivity defined in the event's docstring. `epsilon_of` of the events never exceeds
the budget.

>>> biases, sums = gaussian_events(Budget(1.0), [Part("biases", share=1), Part("sums", share=3, count=5)])
>>> round(biases.noise_multiplier, 3), round(sums.noise_multiplier, 3)
(8.449, 10.908)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.privacy.accounting import LEAST_SAMPLED_NOISE, Slack, epsilon_of, renyi_epsilon, sampler_slack
from dpmf.privacy.budget import Budget
from dpmf.privacy.events import Event, GaussianEvent, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy.gaussian import log_gaussian_delta
from dpmf.privacy.norm_noise import SLACK_WEIGHT

_TIGHT = 1e-13
_MOST_NOISE = 1e6
_NEXT_TO_NO_COST = 1e100


@dataclass(frozen=True)
class Part:
    """One full-batch release that gets a share of the budget.

    Attributes:
        what: the name of what is released.
        share: of Σ (sensitivity / standard deviation)², relative to the shares of the other parts; above 0.
        count: the number of releases, which divide this share among them.
        coordinates: the number of coordinates released, over all `count` releases.
    """

    what: str
    share: float
    count: int = 1
    coordinates: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.share < math.inf:
            raise InvalidArgument(f"share={self.share!r} of {self.what!r} should be a number above 0")


def gdp_for(epsilon: float, delta: float) -> float:
    """Return the largest gdp, rounded down, that implies (epsilon, delta)-privacy.

    Args:
        epsilon: from 0 on, finite.
        delta: between 0 and 1, both excluded.
    """
    if not (0 <= epsilon < math.inf and 0 < delta < 1):
        raise InvalidArgument(f"epsilon={epsilon:g} and delta={delta:g} should be finite, and delta between 0 and 1")
    target = math.log(delta)
    high = 1.0
    while log_gaussian_delta(high, epsilon) <= target:
        high *= 2
    low = high / 2
    while log_gaussian_delta(low, epsilon) > target:
        low, high = low / 2, low
    while high - low > _TIGHT * high:
        middle = (low + high) / 2
        if log_gaussian_delta(middle, epsilon) <= target:
            low = middle
        else:
            high = middle
    return low


def part_of(budget: Budget, share: float) -> Budget:
    """Return the budget that a share of another one would be by itself: with that share of its gdp², and its delta.

    What a method can find depends on the noise, and so on gdp: choices that were made for an epsilon hold for a part of
    a run at the epsilon that its noise alone would give.

    >>> round(part_of(Budget(1.0), 0.5).epsilon, 3)
    0.689
    """
    gdp = math.sqrt(share) * gdp_for(budget.epsilon, budget.delta)
    alone = epsilon_of([GaussianEvent("part", 1 / gdp)], budget.delta, neighbours=budget.neighbours)
    return replace(budget, epsilon=max(alone, share * budget.epsilon))  # above 0 even where delta covers all


def gaussian_events(
    budget: Budget, parts: Sequence[Part], *, slack: Slack = sampler_slack
) -> tuple[GaussianEvent, ...]:
    """Return one event per part; together they use up the budget and no more.

    The part with share s of the total S gets count / noise_multiplier² = gdp² · s / S.
    """
    if not parts:
        raise InvalidArgument("there is nothing to spend the budget on: give at least one part")
    left = _within_reach(budget, sum(part.coordinates for part in parts), slack)
    total = math.fsum(part.share for part in parts)
    gdp, shaved = gdp_for(*left), 1e-12
    while True:
        events = tuple(
            GaussianEvent(part.what, math.sqrt(part.count * total / part.share) / gdp, part.count, part.coordinates)
            for part in parts
        )
        if epsilon_of(events, budget.delta, neighbours=budget.neighbours, slack=slack) <= budget.epsilon:
            return events
        if shaved > 0.5:
            raise InvalidArgument(_too_small(budget))
        gdp, shaved = gdp * (1 - shaved), 2 * shaved


def poisson_event(
    budget: Budget, what: str, *, sampling_rate: float, count: int, coordinates: int = 0, slack: Slack = sampler_slack
) -> PoissonGaussianEvent:
    """Return the event with the least noise, within a thousandth, that keeps `count` sampled steps in the budget.

    The noise is never below the least that the accountant accepts.
    """
    _within_reach(budget, coordinates, slack)

    def event(noise: float) -> PoissonGaussianEvent:
        return PoissonGaussianEvent(what, noise, sampling_rate, count, coordinates)

    def fits_roughly(noise: float) -> bool:
        return renyi_epsilon([event(noise)], budget.delta) <= budget.epsilon

    def fits(noise: float) -> bool:
        spent = epsilon_of([event(noise)], budget.delta, neighbours=budget.neighbours, slack=slack)
        return spent <= budget.epsilon

    # Rényi accounting is quick and seldom far off: start from its answer.
    rough = _least_noise(fits_roughly, start=1.0, step=2.0, tight=1e-2, budget=budget)
    return event(_least_noise(fits, start=rough, step=1.25, tight=1e-3, budget=budget))


def norm_event(
    budget: Budget, what: str, *, count: int = 1, coordinates: int, spent: Sequence[Event] = ()
) -> NormNoiseEvent:
    """Return the event with the least noise of gamma-distributed length that fits into what `spent` leaves of a budget.

    Args:
        budget: for everything together.
        what: the name of what is released.
        count: the number of releases.
        coordinates: the number of coordinates released, over all `count` releases.
        spent: the other events of the plan.

    Raises:
        BudgetExceeded: nothing is left.

    >>> round(norm_event(Budget(0.5), "item noise", coordinates=1000).noise_multiplier, 6)
    2.0
    """
    cheapest = NormNoiseEvent(what, _NEXT_TO_NO_COST, count, coordinates)
    _within_reach(budget, coordinates * SLACK_WEIGHT, sampler_slack)

    def slack_at_the_end(coordinates: int, _: float) -> tuple[float, float]:
        return sampler_slack(coordinates, budget.epsilon)

    # All of the budget will be used up, so this is the final slack, and the rest is available.
    others = epsilon_of([*spent, cheapest], budget.delta, neighbours=budget.neighbours, slack=slack_at_the_end)
    left, shaved = budget.epsilon - others, 1e-12
    if not left > 0:
        raise BudgetExceeded(
            f"epsilon={budget.epsilon:g} leaves nothing for {what!r}: the rest costs epsilon={others:g} at "
            f"delta={budget.delta:g}"
        )
    while True:
        event = NormNoiseEvent(what, count / left, count, coordinates)
        if epsilon_of([*spent, event], budget.delta, neighbours=budget.neighbours) <= budget.epsilon:
            return event
        if shaved > 0.5:
            raise InvalidArgument(_too_small(budget))
        left, shaved = left * (1 - shaved), 2 * shaved


def _least_noise(fits: Callable[[float], bool], *, start: float, step: float, tight: float, budget: Budget) -> float:
    """Return noise that fits, at most (1 + tight) times the least that does, or the least that is accepted."""
    high = start
    while not fits(high):
        if high > _MOST_NOISE:
            raise InvalidArgument(_too_small(budget))
        high *= step
    low = max(high / step, LEAST_SAMPLED_NOISE)
    while fits(low):
        if low == LEAST_SAMPLED_NOISE:
            return low
        low, high = max(low / step, LEAST_SAMPLED_NOISE), low
    while high - low > tight * low:
        middle = (low + high) / 2
        if fits(middle):
            high = middle
        else:
            low = middle
    return high


def _within_reach(budget: Budget, coordinates: int, slack: Slack) -> tuple[float, float]:
    """Return what the sampler's inaccuracy leaves of ε and δ for ideal noise, or raise if it leaves nothing."""
    if not budget.is_finite:
        raise InvalidArgument("epsilon=inf asks for no noise: there is nothing to calibrate")
    extra_epsilon, extra_delta = slack(coordinates, budget.epsilon)
    if extra_epsilon > budget.epsilon or extra_delta >= budget.delta:
        raise InvalidArgument(_too_small(budget))
    return budget.epsilon - extra_epsilon, (budget.delta - extra_delta) * math.exp(-extra_epsilon)


def _too_small(budget: Budget) -> str:
    other = "smaller" if budget.epsilon > 1 else "larger"
    return (
        f"epsilon={budget.epsilon:g} with delta={budget.delta:g} cannot be met for this many released numbers: "
        f"choose a larger delta, a {other} epsilon, fewer factors or fewer rounds"
    )
