"""Exact sensitivity: how far anybody can move what is summed, in whole steps of its grid, beside what noise allows for.

Nothing here is random but the search: a length above its bound is a violation, whatever the chance of finding it.
Bounds are taken from the events of the plan, not from the questions: noise of 2²⁸ steps and a multiplier of s allow for
a length of 2²⁸/s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpmf.audit.findings import Finding, Progress, silent
from dpmf.audit.persons import Person, changed, known_worst, random_person
from dpmf.audit.subject import Pair, Subject
from dpmf.audit.transcript import Said, absurd, of_many, overhear
from dpmf.methods.certified.answer import Asked
from dpmf.methods.certified.questions import Integers
from dpmf.privacy import PoissonGaussianEvent
from dpmf.privacy.events import NormNoiseEvent
from dpmf.privacy.mechanism import PlannedEvent
from dpmf.privacy.noise import STEPS_PER_SD
from dpmf.privacy.norm_noise import STEPS_PER_SCALE
from dpmf.streams import generator

_RANDOM, _CLIMBS = 40, 25  # people at random, and steps of hill climbing for every event
TRANSCRIPTS = {"as released": None, "of a thousand times as many people": of_many, "of absurd size": absurd}


@dataclass(frozen=True, eq=False)
class Reach:
    """The farthest that anybody moved one event.

    Attributes:
        squared: of the length, in steps, or of the sum of the lengths of rows where noise is for rows.
        bound: what the noise allows for, in steps, exactly.
        pair: who moved it.
        transcript: which answers the questions followed.
    """

    squared: int
    bound: Fraction
    pair: Pair
    transcript: str

    @property
    def ok(self) -> bool:
        """Whether the length is within the bound: exact."""
        return self.squared <= self.bound**2

    @property
    def ratio(self) -> float:
        """The length over the bound."""
        return math.sqrt(self.squared) / float(self.bound)


def bound_of(event: PlannedEvent, pair: Pair) -> Fraction:
    """Return the length, in steps, that the noise of an event allows for.

    The noise of a sampled step is relative to one contribution, and its accountant knows that replacing one person by
    another may move the sum by two.
    """
    steps = STEPS_PER_SCALE if isinstance(event, NormNoiseEvent) else STEPS_PER_SD
    twice = 2 if isinstance(event, PoissonGaussianEvent) and None not in pair else 1
    return twice * steps / Fraction(event.noise_multiplier)


def squared_length(shift: Integers, event: PlannedEvent) -> int:
    """Return the squared length of a shift, in exact numbers; where noise is for rows, lengths of rows add up."""
    if not isinstance(event, NormNoiseEvent):
        return sum(one * one for one in shift[shift != 0].tolist())
    rows = [sum(one * one for one in row.tolist()) for row in shift[shift.any(axis=1)]]
    if len(rows) <= 1:
        return sum(rows)
    return sum(math.isqrt(one - 1) + 1 for one in rows) ** 2


@dataclass(eq=False)
class Search:
    """A search for those who matter most.

    Attributes:
        subject: what is audited.
        farthest: what was reached, by event.
        worst: the pair that is easiest to tell apart by all that a run releases, of those whom a file could hold …
        gdp: … and how easy that is: the exact shift over the noise, √Σ (length / sd)².
    """

    subject: Subject
    farthest: dict[str, Reach]
    worst: Pair
    gdp: float = 0.0

    def look_at(self, pair: Pair, transcripts: Mapping[str, Sequence[Asked]]) -> dict[str, float]:
        """Take a pair into account, and return how far it moves every event."""
        ratios: dict[str, float] = {}
        for name, asked in transcripts.items():
            total = 0.0
            for one, shift in zip(asked, self.subject.shift(asked, pair), strict=True):
                what = one.question.what
                event = self.subject.events[what]
                squared, bound = squared_length(shift, event), bound_of(event, pair)
                found = Reach(squared, bound, pair, name)
                ratios[what] = max(ratios.get(what, 0.0), found.ratio)
                total += squared / (STEPS_PER_SCALE if isinstance(event, NormNoiseEvent) else STEPS_PER_SD) ** 2
                if what not in self.farthest or found.ratio > self.farthest[what].ratio:
                    self.farthest[what] = found
            if name == "as released" and self.subject.are_neighbours(pair) and total > self.gdp**2:
                self.worst, self.gdp = pair, math.sqrt(total)
        return ratios


def search(subject: Subject, progress: Progress = silent) -> Search:
    """Search for the worst person, or the worst value of a rating: known cases, people at random, hill climbing."""
    rng, crowd = generator(subject.seed, "audit persons"), subject.crowd
    n_items, scale = crowd.n_items, crowd.scale
    said: dict[str, list[Said]] = {}
    for name, given in TRANSCRIPTS.items():
        there = random_person(n_items, scale, rng) if subject.protects_values else None
        said[name] = overhear(subject, subject.world([there]), given)
    asked = {name: [one.asked for one in found] for name, found in said.items()}
    people = [*known_worst(n_items, scale), *(random_person(n_items, scale, rng) for _ in range(_RANDOM))]
    pairs = [pair for one in people for pair in pairs_of(subject, one, rng)]
    found = Search(subject, {}, pairs[0])
    best: dict[str, tuple[float, Pair]] = {}
    for number, pair in enumerate(pairs):
        progress(number, "sensitivity")
        for what, ratio in found.look_at(pair, asked).items():
            if ratio > best.get(what, (0.0, pair))[0] and subject.are_neighbours(pair):
                best[what] = ratio, pair
    for what, (ratio, pair) in best.items():
        for step in range(_CLIMBS):
            progress(len(pairs) + step, "sensitivity")
            moved = Pair(*(one and changed(one, n_items, scale, rng) for one in pair))
            tried = pairs_of(subject, moved.second, rng)[0] if subject.protects_values and moved.second else moved
            higher = found.look_at(tried, asked).get(what, 0.0)
            if higher >= ratio:
                ratio, pair = higher, tried
    return found


def pairs_of(subject: Subject, person: Person, rng: np.random.Generator) -> list[Pair]:
    """Return neighbours of which a person is one: according to what is protected, and from what."""
    scale = subject.crowd.scale
    if subject.protects_values:
        place = int(rng.integers(len(person.items)))
        first, second = person.values.copy(), person.values.copy()
        first[place], second[place] = scale.lo, scale.hi
        return [Pair(replace(person, values=first), replace(person, values=second))]
    if subject.budget.neighbours == "add-remove":
        return [Pair(None, person)]
    opposite = replace(person, values=(scale.lo + scale.hi - person.values).astype(np.float32))
    replaced = [Pair(opposite, person), Pair(random_person(subject.crowd.n_items, scale, rng), person)]
    alone = [Pair(None, person)] if subject.is_sampled else []  # no neighbours, but what sampled steps are bounded by
    return [*replaced, *alone]


def finding(found: Search, paths: Mapping[str, bool]) -> Finding:
    """Return what a search found, and whether all ways to sum answers gave the same shift.

    Args:
        found: by the search.
        paths: whether the exact shift is that of the person alone, by answerer.
    """
    events, farthest = found.subject.events, found.farthest
    passed = all(one.ok for one in farthest.values()) and all(paths.values())
    over = [what for what, one in farthest.items() if not one.ok]
    nearest = max((one.ratio for one in farthest.values()), default=0.0)
    if over:
        sentence = f"{over[0]!r} can be moved by {farthest[over[0]].ratio:.6f} of its bound"
    elif not all(paths.values()):
        wrong = next(name for name, same in paths.items() if not same)
        sentence = f"summed by {wrong}, one person moves a sum by something else than their own answer"
    else:
        sentence = (
            f"nobody moves any sum by more than {nearest:.6f} of its bound, exactly and however answers are summed"
        )
    silent_events = [what for what in events if what not in farthest]
    notes = tuple(f"{what!r} is planned and was not asked for at this size." for what in silent_events)
    return Finding(
        "sensitivity",
        "Exact sensitivity",
        passed,
        sentence,
        ("event", "length in steps", "bound", "ratio", "whose", "answers"),
        tuple(_rows(farthest)),
        {
            "events": [
                {
                    "event": what, "length": math.sqrt(one.squared), "squared_length": str(one.squared),
                    "bound": float(one.bound), "ratio": one.ratio, "ok": one.ok, "found_by": _label(one.pair),
                    "transcript": one.transcript,
                }
                for what, one in farthest.items()
            ],
            "answerers": dict(paths),
            "exact_shift": found.gdp,
        },
        (*notes, f"Answerers that agree on exact sums: {', '.join(name for name, same in paths.items() if same)}."),
    )  # fmt: skip


def _rows(farthest: Mapping[str, Reach]) -> Iterator[tuple[object, ...]]:
    for what, one in farthest.items():
        length, bound = math.isqrt(one.squared), math.floor(one.bound)
        yield what, f"{length:,}", f"{bound:,}", f"{one.ratio:.6f}", _label(one.pair), one.transcript


def _label(pair: Pair) -> str:
    person = pair.second or pair.first
    return person.label if person is not None else ""
