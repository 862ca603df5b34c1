"""The privacy cost (ε, δ) of events, composed.

* Full batches with Gaussian noise compose exactly; see `dpmf.privacy.gaussian`.
* As soon as a step is Poisson-sampled, everything is composed by the privacy loss distributions (PLD) of
  `dp-accounting`, which this module alone imports. They are rounded pessimistically.
* Noise of gamma-distributed length costs ε alone: it adds up, and is added to the ε of everything else.
* Rényi accounting (`renyi_epsilon`) is an independent cross-check: a looser upper bound.
* A claim counts as unbounded.

Each event's docstring says what its noise multiplier is relative to. That of a `GaussianEvent` already includes the
sensitivity for the guarantee's neighbours, whereas PLD applies its own factor of 2 for "replace", and the Rényi
accountant of `dp-accounting` 0.6 applies none: both are reconciled here and nowhere else.

The noise that is drawn is not exactly the ideal one. If the ideal mechanism is (ε, δ)-private, the implemented one is
(ε + x, e^x δ + y)-private with x and y from `sampler_slack`; the functions here return the figures of the latter.

>>> round(epsilon_of([GaussianEvent("sums", noise_multiplier=4.0, count=16)], 1e-6), 4)
4.8866
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpmf.errors import InvalidArgument
from dpmf.logs import quiet
from dpmf.privacy.budget import check_neighbours
from dpmf.privacy.events import ClaimEvent, Event, GaussianEvent, NormNoiseEvent, PoissonGaussianEvent
from dpmf.privacy.gaussian import gaussian_delta, gaussian_epsilon
from dpmf.privacy.noise import slack as sampler_slack_at
from dpmf.privacy.norm_noise import SLACK_WEIGHT

# Limits on Poisson-sampled steps: beyond them neither accuracy nor running time was verified.
MOST_SAMPLED_STEPS = 10**6
MOST_SAMPLED_KINDS = 20  # steps that differ in noise or rate: each kind takes about a second, whatever its count
LEAST_SAMPLED_NOISE = 0.1
LEAST_SAMPLED_DELTA = 1e-10
MOST_SAMPLED_EPSILON = 1000.0  # by Rényi accounting; beyond it, the answer is infinity

_HAIR = 1e-10
_ROUNDING = 1e-15  # more than the rounding error of a division, a sum or a difference
_ROUNDS = 100
_LARGEST_EXPONENT = 700.0  # beyond it, exp overflows

Slack = Callable[[int, float], tuple[float, float]]
"""Maps the number of coordinates and ε to what is to be added to ε and to δ."""


@dataclass(frozen=True)
class _Curve:
    """The privacy of ideal noise: δ as a function of ε, and ε as a function of δ."""

    delta: Callable[[float], float]
    epsilon: Callable[[float], float]


def sampler_slack(coordinates: int, epsilon: float) -> tuple[float, float]:
    """Return x and y for a number of released coordinates; epsilon is that of the ideal mechanism, or larger.

    A number with noise of gamma-distributed length counts `SLACK_WEIGHT` times.
    """
    return sampler_slack_at(coordinates, epsilon, 0.0)


def epsilon_of(
    events: Sequence[Event], delta: float, *, neighbours: str = "add-remove", slack: Slack = sampler_slack
) -> float:
    """Return the smallest ε, rounded up, such that all events together are (ε, delta)-private.

    Infinity is a possible answer: for a claim, or if delta does not even cover the sampler's inaccuracy.

    Args:
        events: what was done, in any order.
        delta: between 0 and 1, both excluded.
        neighbours: "add-remove" or "replace".
        slack: what the inaccuracy of the sampler costs.
    """
    if not 0 < delta < 1:
        raise InvalidArgument(f"delta={delta:g} should be between 0 and 1")
    curve = _curve(events, delta, neighbours)
    coordinates = _coordinates(events)
    epsilon = 0.0
    for _ in range(_ROUNDS):  # the slack depends on ε: raise ε until it suffices
        extra_epsilon, extra_delta = slack(coordinates, epsilon)
        if extra_delta >= delta:
            return math.inf
        enough = curve.epsilon((delta - extra_delta) * math.exp(-extra_epsilon)) + extra_epsilon
        if enough <= epsilon or enough == math.inf:
            return max(enough, epsilon)
        epsilon = enough * (1 + _HAIR)
    return math.inf


def delta_of(
    events: Sequence[Event], epsilon: float, *, neighbours: str = "add-remove", slack: Slack = sampler_slack
) -> float:
    """Return the smallest δ, rounded up, such that all events together are (epsilon, δ)-private; 1 at most."""
    if not 0 <= epsilon < math.inf:
        raise InvalidArgument(f"epsilon={epsilon:g} should be a number from 0 on")
    curve = _curve(events, LEAST_SAMPLED_DELTA, neighbours)
    coordinates = _coordinates(events)
    extra_epsilon, _ = slack(coordinates, epsilon)
    if extra_epsilon > _LARGEST_EXPONENT:
        return 1.0
    covered = max(epsilon, extra_epsilon)
    _, extra_delta = slack(coordinates, covered)
    # (covered, δ)-private implies (epsilon, δ + e^covered − e^epsilon)-private
    missing = math.expm1(covered) - math.expm1(epsilon) if covered > epsilon else 0.0
    ideal = curve.delta(covered - extra_epsilon)
    return min(1.0, (math.exp(extra_epsilon) * ideal + extra_delta + missing) * (1 + _HAIR))


def gdp_of(events: Sequence[Event]) -> float:
    """Return the Gaussian-privacy parameter of all full-batch events together: sqrt(Σ count / noise_multiplier²)."""
    full = [one for one in events if isinstance(one, GaussianEvent)]
    return math.sqrt(math.fsum(one.count / one.noise_multiplier**2 for one in full))


def renyi_epsilon(events: Sequence[Event], delta: float, *, neighbours: str = "add-remove") -> float:
    """Return ε by Rényi accounting, for ideal noise: an upper bound, looser than `epsilon_of`.

    Poisson-sampled steps under "replace" are refused: `dp-accounting` has no Rényi bound for them.
    """
    check_neighbours(neighbours)
    if any(isinstance(one, ClaimEvent) for one in events):
        return math.inf
    if neighbours == "replace" and _sampled(events):
        raise InvalidArgument("there is no Rényi bound for Poisson-sampled steps with neighbours='replace'")
    return _renyi(events, delta) + pure_epsilon(events)


def pure_epsilon(events: Sequence[Event]) -> float:
    """Return the ε of noise of gamma-distributed length, for any δ: Σ count / noise_multiplier, rounded up."""
    pure = [one for one in events if isinstance(one, NormNoiseEvent)]
    return math.fsum(one.count / one.noise_multiplier for one in pure) * (1 + _ROUNDING)


def _curve(events: Sequence[Event], delta: float, neighbours: str) -> _Curve:
    check_neighbours(neighbours)
    unknown = [one for one in events if not isinstance(one, Event)]
    if unknown:
        raise InvalidArgument(f"{unknown[0]!r} is not an event that the accountant knows")
    if any(isinstance(one, ClaimEvent) for one in events):
        return _UNBOUNDED
    gdp = gdp_of(events)
    if _sampled(events):
        gaussian = _sampled_curve(events, delta, neighbours)
    else:
        gaussian = _Curve(lambda epsilon: gaussian_delta(gdp, epsilon), lambda delta: gaussian_epsilon(gdp, delta))
    pure = pure_epsilon(events)
    return _with_pure(gaussian, pure) if pure > 0 else gaussian


_UNBOUNDED = _Curve(lambda _: 1.0, lambda _: math.inf)


def _with_pure(rest: _Curve, pure: float) -> _Curve:
    """Compose with a (pure, 0)-private mechanism: the proposition on several releases in docs/proofs/norm-noise.md."""

    def delta(epsilon: float) -> float:
        if epsilon >= pure:
            return rest.delta((epsilon - pure) * (1 - _ROUNDING))
        missed = rest.delta(0.0)
        return missed + (1 - missed) * -math.expm1(epsilon - pure) / (1 + math.exp(-pure))

    return _Curve(delta, lambda delta: rest.epsilon(delta) + pure)


def _sampled_curve(events: Sequence[Event], delta: float, neighbours: str) -> _Curve:
    """Compose by privacy loss distributions, within the limits in which they were verified."""
    sampled = _sampled(events)
    steps, least = sum(one.count for one in sampled), min(one.noise_multiplier for one in sampled)
    if steps > MOST_SAMPLED_STEPS:
        raise InvalidArgument(
            f"count={steps:,} sampled steps are too many to account for: use at most {MOST_SAMPLED_STEPS:,}"
        )
    if (kinds := len(_sampled_kinds(events))) > MOST_SAMPLED_KINDS:
        raise InvalidArgument(
            f"{kinds} kinds of sampled steps, of different noise or rate, are too many to account for: use at most "
            f"{MOST_SAMPLED_KINDS}"
        )
    if least < LEAST_SAMPLED_NOISE:
        raise InvalidArgument(f"noise_multiplier={least:g} of a sampled step should be {LEAST_SAMPLED_NOISE} or more")
    if delta < LEAST_SAMPLED_DELTA:
        raise InvalidArgument(f"delta={delta:g} is too small for sampled steps: use {LEAST_SAMPLED_DELTA:g} or more")
    # Used only to choose the grid; under "replace" one contribution counts twice.
    rough = _renyi(events, delta, halved=neighbours == "replace")
    if rough > MOST_SAMPLED_EPSILON:
        return _UNBOUNDED
    gdp = max(1 / least, gdp_of(events))
    reach = gdp**2 / 2 + 10 * gdp  # the largest loss of one step that is not astronomically rare
    accountant = _pld_accountant(events, neighbours, grid=min(max(1e-4 * rough, 4e-6 * reach, 1e-8), 1e-3))
    return _Curve(
        lambda epsilon: float(accountant.get_delta(epsilon)), lambda delta: float(accountant.get_epsilon(delta))
    )


def _pld_accountant(events: Sequence[Event], neighbours: str, grid: float) -> Any:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    relations = dp_accounting.NeighboringRelation
    replace = neighbours == "replace"
    accountant = PLDAccountant(relations.REPLACE_ONE if replace else relations.ADD_OR_REMOVE_ONE, grid)
    gdp = gdp_of(events)
    if gdp > 0:
        # For "replace" PLD takes the noise multiplier relative to half of our sensitivity.
        accountant.compose(dp_accounting.GaussianDpEvent((2 if replace else 1) / gdp))
    for (noise, rate), count in _sampled_kinds(events).items():
        step = dp_accounting.GaussianDpEvent(noise)
        accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, step), count)
    return accountant


def _renyi(events: Sequence[Event], delta: float, halved: bool = False) -> float:
    """Return ε by Rényi accounting; `halved` halves the noise of sampled steps."""
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant()
    gdp = gdp_of(events)
    with quiet("absl"):  # about Rényi orders that were skipped: the bound holds without them
        if gdp > 0:
            accountant.compose(dp_accounting.GaussianDpEvent(1 / gdp))
        for (noise, rate), count in _sampled_kinds(events).items():
            step = dp_accounting.GaussianDpEvent(noise / (2 if halved else 1))
            accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, step), count)
        return float(accountant.get_epsilon(delta))


def _sampled(events: Sequence[Event]) -> list[PoissonGaussianEvent]:
    return [one for one in events if isinstance(one, PoissonGaussianEvent)]


def _sampled_kinds(events: Sequence[Event]) -> Counter[tuple[float, float]]:
    """Return the number of sampled steps of each noise multiplier and rate."""
    kinds: Counter[tuple[float, float]] = Counter()
    for one in _sampled(events):
        kinds[one.noise_multiplier, one.sampling_rate] += one.count
    return kinds


def _coordinates(events: Sequence[Event]) -> int:
    """Return the number of coordinates with Gaussian noise that would cost the same slack."""
    return sum(
        one.coordinates * (SLACK_WEIGHT if isinstance(one, NormNoiseEvent) else 1)
        for one in events
        if not isinstance(one, ClaimEvent)
    )
