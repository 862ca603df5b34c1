"""Verification: whether a guarantee states what its events cost, and whether these are the events of a plan.

>>> from dpmf.privacy import Budget, GaussianEvent, Guarantee
>>> events = [GaussianEvent("item sums", noise_multiplier=5.0, coordinates=40)]
>>> verify(Guarantee.certified_by(Budget(1.0), events, releases=["item factors"])).ok
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpmf.errors import InvalidArgument
from dpmf.privacy.accounting import renyi_epsilon
from dpmf.privacy.events import ClaimEvent, Event, PoissonGaussianEvent
from dpmf.privacy.guarantee import Guarantee

# Epsilon is stated with six decimals; libraries may differ in the last digits of a sampled step.
_RELATIVE, _ABSOLUTE = 1e-5, 2e-6
# Discretized losses are rounded up, so they may lie a little above the Rényi bound where that is tight.
_CROSS_RELATIVE, _CROSS_ABSOLUTE = 1e-2, 1e-3
# Noise multipliers of a plan that is made again: those of sampled steps are found within a thousandth.
_SAME_NOISE, _SAME_SAMPLED_NOISE = 1e-6, 2e-3


@dataclass(frozen=True)
class Verdict:
    """The result of verifying a guarantee.

    Attributes:
        ok: whether nothing that can be recomputed contradicts the guarantee. It does not say whether anything is
            guaranteed: `Guarantee.certified` does.
        recomputed_epsilon: from the events; infinity for a claim, None without a guarantee.
        cross_check: ε by Rényi accounting, an independent upper bound; None where there is none.
        reason: the finding, in one sentence.
        plan: whether the plan of the method was rebuilt and agrees; None if there was nothing to rebuild it from.
    """

    ok: bool
    recomputed_epsilon: float | None
    cross_check: float | None
    reason: str
    plan: bool | None = None


def verify(guarantee: Guarantee) -> Verdict:
    """Recompute epsilon from the events, with two accountants where both apply."""
    if guarantee.mode == "none":
        return Verdict(True, None, None, "nothing is guaranteed, so there is no epsilon to verify")
    if guarantee.mode == "paper":
        return Verdict(True, math.inf, None, "epsilon is a claim: no accountant here can recompute it")
    assert guarantee.epsilon is not None  # a certified guarantee states both
    assert guarantee.delta is not None
    try:
        recomputed, cross_check = guarantee.recomputed_epsilon(), _cross_check(guarantee)
    except InvalidArgument as error:
        return Verdict(False, None, None, f"the events cannot be accounted for: {error}")
    assert recomputed is not None
    stated = guarantee.epsilon
    if not abs(recomputed - stated) <= _RELATIVE * stated + _ABSOLUTE:
        reason = (
            f"epsilon={stated:g} is stated, but the events cost epsilon={recomputed:g} at delta={guarantee.delta:g}"
        )
        return Verdict(False, recomputed, cross_check, reason)
    if cross_check is not None and cross_check < recomputed * (1 - _CROSS_RELATIVE) - _CROSS_ABSOLUTE:
        reason = f"two accountants disagree: epsilon={recomputed:g}, but at most {cross_check:g} by Rényi accounting"
        return Verdict(False, recomputed, cross_check, reason)
    return Verdict(True, recomputed, cross_check, "the events cost what is stated")


def _cross_check(guarantee: Guarantee) -> float | None:
    """Return ε by Rényi accounting, or None for sampled steps under "replace"."""
    assert guarantee.delta is not None
    assert guarantee.neighbours is not None
    if guarantee.neighbours == "replace" and any(isinstance(one, PoissonGaussianEvent) for one in guarantee.events):
        return None
    return renyi_epsilon(guarantee.events, guarantee.delta, neighbours=guarantee.neighbours)


def deviation(events: Sequence[Event], planned: Sequence[Event]) -> str | None:
    """Return in what events differ from those of a plan, in a clause; None if they do not.

    A release may be charged more often than planned, or for more numbers: that states a greater cost. It may not be
    charged less, and whatever is charged has the noise of the plan.

    Args:
        events: as stated.
        planned: what the method releases; each has a name of its own.
    """
    names = [event.what for event in planned]
    for event in events:
        if event.what not in names:
            return f"{event.what!r} is not among what its method releases"
    for plan in planned:
        stated = [event for event in events if event.what == plan.what]
        if not stated:
            return f"its method releases {plan.what!r}, and there is no event for it"
        for event in stated:
            difference = _difference(event, plan)
            if difference is not None:
                return f"the event {plan.what!r} has {difference} by the plan of its method"
        for name in ("count", "coordinates"):
            total, least = (sum(getattr(one, name) for one in some) for some in (stated, (plan,)))
            if total < least:
                return f"the event {plan.what!r} has {name}={total}, and {least} by the plan of its method"
    return None


def _difference(event: Event, plan: Event) -> str | None:
    if isinstance(event, ClaimEvent) or isinstance(plan, ClaimEvent) or event.kind != plan.kind:
        return f"the kind {event.kind}, and {plan.kind}"
    same = _SAME_NOISE
    if isinstance(event, PoissonGaussianEvent) and isinstance(plan, PoissonGaussianEvent):
        same = _SAME_SAMPLED_NOISE
        if event.sampling_rate != plan.sampling_rate:
            return f"sampling_rate={event.sampling_rate:g}, and {plan.sampling_rate:g}"
    if abs(event.noise_multiplier - plan.noise_multiplier) > same * plan.noise_multiplier:
        return f"noise_multiplier={event.noise_multiplier:g}, and {plan.noise_multiplier:g}"
    return None
