"""The privacy budget over rounds: what all that was released up to a round costs together.

The accountant recomputes it from the events of a release. Costs do not add up: what is drawn after a round is the
epsilon of everything so far, at the delta and for the neighbours of the guarantee.

>>> from dpmf.privacy import Budget, GaussianEvent
>>> events = [GaussianEvent("item sums", noise_multiplier=5.0, count=3, coordinates=30)]
>>> course = spending_of(Guarantee.certified_by(Budget(2.0), events, releases=["item factors"]))
>>> course.rounds, course.epsilons
([0, 1, 2, 3], [0.0, 0.834118, 1.211968, 1.509772])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpmf.compare.plots.figure import axes, legend_below, nth_style
from dpmf.errors import InvalidArgument, NotVerified
from dpmf.privacy import Guarantee
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.events import ClaimEvent, Event, PoissonGaussianEvent
from dpmf.privacy.guarantee import rounded_up
from dpmf.privacy.verify import verify

_MOST, _MOST_SAMPLED = 300, 12  # rounds to account for: sampled ones take the accountant a second each


@dataclass(frozen=True)
class Spending:
    """What a release has cost so far, after some of its rounds.

    Attributes:
        rounds: how many have been released, from 0; all of them, or some if they are many.
        epsilons: of everything up to there.
        whats: what the last of these rounds released, in words; "" at 0.
        ends: which entries are the last round of an event.
        delta, unit, neighbours: of the guarantee.
    """

    rounds: list[int]
    epsilons: list[float]
    whats: list[str]
    ends: list[int]
    delta: float
    unit: str
    neighbours: str


def spending_of(guarantee: Guarantee, name: str = "this release") -> Spending:
    """Account for the events of a guarantee round by round, in the order in which it has them.

    Raises:
        InvalidArgument: nothing is certified, so that there is no budget that was spent.
        NotVerified: the events cost something else than is stated.
    """
    _check(guarantee, name)
    assert guarantee.epsilon is not None
    assert guarantee.delta is not None
    assert guarantee.unit is not None
    assert guarantee.neighbours is not None
    events = guarantee.events
    total = sum(_count(event) for event in events)
    most = _MOST_SAMPLED if any(isinstance(event, PoissonGaussianEvent) for event in events) else _MOST
    step = max(1, -(-total // most))
    course = Spending([0], [0.0], [""], [], guarantee.delta, guarantee.unit, guarantee.neighbours)
    before = 0
    for place, event in enumerate(events):
        count = _count(event)
        for done in sorted({*range(step, count, step), count}):
            cost = epsilon_of([*events[:place], _part(event, done)], guarantee.delta, neighbours=guarantee.neighbours)
            course.rounds.append(before + done)
            course.epsilons.append(min(rounded_up(cost), guarantee.epsilon))
            course.whats.append(event.what)
        course.ends.append(len(course.rounds) - 1)
        before += count
    return course


def budget_spent(courses: Mapping[str, Spending], ax: Any = None) -> Any:
    """Draw the epsilon spent over rounds, of releases by name; a marker ends each kind of event.

    Releases that protect users and such that protect ratings are refused together: their epsilons share no axis.
    """
    units = sorted({course.unit for course in courses.values()})
    if len(units) != 1:
        raise InvalidArgument("some of these releases protect users and some ratings: draw them apart")
    ax = axes(ax)
    for place, (name, course) in enumerate(courses.items()):
        colour, marker = nth_style(place)
        label = f"{name} (δ = {course.delta:g}, {course.neighbours})"
        every_round = len(course.rounds) == course.rounds[-1] + 1
        ax.plot(
            course.rounds,
            course.epsilons,
            drawstyle="steps-post" if every_round else "default",
            color=colour,
            marker=marker,
            markevery=course.ends,
            label=label,
            lw=1.8 - 0.2 * (place % 4),
        )
    ax.set(xlabel="rounds released", ylabel=f"ε per {units[0]}, of all rounds so far", ylim=(0, None))
    ax.xaxis.get_major_locator().set_params(integer=True)
    legend_below(ax)
    return ax


def _check(guarantee: Guarantee, name: str) -> None:
    if guarantee.mode == "none":
        raise InvalidArgument(f"{name} has no guarantee, and so no budget that was spent: leave it out")
    if guarantee.mode == "paper":
        raise InvalidArgument(f"{name} rests on a paper's claim, which no accountant can add up: nothing to draw")
    if guarantee.seeded:
        raise InvalidArgument(f"{name} has noise from a seed, which protects nobody: there is no budget to draw")
    verdict = verify(guarantee)
    if not verdict.ok:
        raise NotVerified(f"{name} is not drawn: {verdict.reason}")


def _count(event: Event) -> int:
    return 1 if isinstance(event, ClaimEvent) else event.count


def _part(event: Event, done: int) -> Event:
    """Return the first rounds of an event; each releases the same number of numbers."""
    if isinstance(event, ClaimEvent) or done == event.count:
        return event
    return replace(event, count=done, coordinates=-(-event.coordinates * done // event.count))


def spending_json(course: Spending) -> dict[str, Any]:
    """Return what is drawn, as plain JSON types."""
    rows = zip(course.rounds, course.epsilons, course.whats, strict=True)
    return {
        "delta": course.delta,
        "unit": course.unit,
        "neighbours": course.neighbours,
        "rounds": [{"round": number, "epsilon": epsilon, "what": what} for number, epsilon, what in rows],
    }
