"""One run, many canaries: whole users of whom each is there or not by a coin, and guesses about all of them at once.

The cheap variant for data of real size: one run instead of hundreds. Canaries rate one item each, no two the same, so
that their answers are at right angles wherever numbers belong to items. What a guess is right by is what remains of the
releases after subtracting the crowd; guesses are made of the highest and the lowest scores, the others are passed over.

References: `dpmf.audit.statistics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.audit.findings import Finding, Progress, silent
from dpmf.audit.persons import Person
from dpmf.audit.statistics import (
    READING,
    VERDICT,
    Array,
    gdp_at,
    one_run_epsilon,
    one_run_gdp,
    one_run_p_value,
)
from dpmf.audit.subject import Pair, Subject
from dpmf.audit.transcript import overhear
from dpmf.audit.two_worlds import loss
from dpmf.methods.certified.questions import Integers
from dpmf.privacy import GaussianEvent
from dpmf.privacy.accounting import gdp_of
from dpmf.privacy.gaussian import gaussian_epsilon
from dpmf.streams import generator

CANARIES = 400
_SIMULATED = 200  # runs, to choose the number of guesses before any guess is made
_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)  # of canaries to guess, of which one is chosen


@dataclass(frozen=True, eq=False)
class Guessed:
    """What was guessed in one run.

    Attributes:
        scores: of all canaries, larger if they are likelier to be there.
        there: who was.
    """

    scores: Array
    there: NDArray[np.bool_]

    def correct(self, guesses: int) -> int:
        """Return the number of correct guesses: half say that the highest are there, half that the lowest are not."""
        order = np.argsort(self.scores, kind="stable")
        low, high = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
        return int(np.count_nonzero(~self.there[low]) + np.count_nonzero(self.there[high]))


class _Moved(NamedTuple):
    """The rows of a release that a canary moves, and what is in them in either world."""

    rows: Integers
    first: Integers
    second: Integers

    @classmethod
    def of(cls, first: Integers, second: Integers) -> _Moved:
        rows = np.flatnonzero(
            (first != 0).reshape(len(first), -1).any(1) | (second != 0).reshape(len(second), -1).any(1)
        )
        return cls(rows, first[rows], second[rows])


def canaries_of(subject: Subject, count: int) -> list[Pair]:
    """Return canaries: people with one item, or with two, liked and disliked, whichever moves releases farther.

    Where people are replaced, a canary has one item or the next; where values are protected, a rating has one value or
    the other.
    """
    n_items, lo, hi = subject.crowd.n_items, subject.crowd.scale.lo, subject.crowd.scale.hi
    firsts = range(0, n_items - 1, 2)
    if subject.protects_values:
        return [Pair(_fan(item, value=lo), _fan(item, value=hi)) for item in range(min(n_items, count))]
    if subject.budget.neighbours == "replace":
        return [Pair(_fan(item + 1, value=hi), _fan(item, value=hi)) for item in firsts][:count]
    single = [Pair(None, _fan(item, value=hi)) for item in range(n_items)]
    double = [Pair(None, Person.of([item, item + 1], [hi, lo], "canary")) for item in firsts]
    asked = [one.asked for one in overhear(subject, subject.world([]))]
    kinds = [kind for kind in (single, double) if kind]
    return max(kinds, key=lambda pairs: _squared(subject.shift(asked, pairs[0])))[:count]


def _fan(item: int, *, value: float) -> Person:
    return Person.of([item], [value], "canary")


def _squared(shifts: Sequence[Integers]) -> float:
    return sum(float(np.square(one.astype(np.float64)).sum()) for one in shifts)


def guess(subject: Subject, pairs: Sequence[Pair], progress: Progress = silent) -> Guessed:
    """Carry out one run, and score every canary.

    Args:
        subject: with as many targets as there are canaries.
        pairs: the canaries.
        progress: is told of canaries that were scored.
    """
    there = generator(subject.seed, "audit canaries").random(len(pairs)) < 0.5
    people = [pair.second if one else pair.first for pair, one in zip(pairs, there, strict=True)]
    row_of = np.cumsum([one is not None for one in people]) - 1 + subject.crowd.n_users
    said = overhear(subject, subject.world(people))
    asked, residues = [one.asked for one in said], [one.released - one.sums for one in said]
    moved = []
    for place, pair in enumerate(pairs):
        progress(place, "canaries")
        answers = (subject.answers(asked, one, place) for one in pair)
        moved.append([_Moved.of(*both) for both in zip(*answers, strict=True)])
        for one, residue, (rows, first, second) in zip(asked, residues, moved[-1], strict=True):
            own = second if there[place] else first  # nothing, where nobody is there
            if people[place] is not None and (one.participants is None or one.participants[row_of[place]]):
                residue[rows] += own  # what remains after subtracting everybody but the canaries
    events = [subject.events[one.what] for one in said]
    scores = [
        sum(
            loss(residue[one.rows], one.first, one.second, event)
            for residue, one, event in zip(residues, own, events, strict=True)
        )
        for own in moved
    ]
    return Guessed(np.array(scores), there)


def guesses_for(gdp: float, canaries: int, delta: float, seed: int) -> int:
    """Return how many guesses to make: as many as show most, on average, of scores N(0, 1) and N(gdp, 1).

    It is decided before anything is run, and from public numbers, so no guess has to be paid for by another.
    """
    rng = generator(seed, "audit guesses")
    there = rng.random((_SIMULATED, canaries)) < 0.5
    made = [Guessed(rng.normal(size=canaries) + gdp * one, one) for one in there]

    def shown(guesses: int) -> tuple[float, float]:
        right = round(float(np.mean([one.correct(guesses) for one in made])))
        by_chance = one_run_p_value(canaries, guesses, right, 0.0, 0.0)
        return one_run_epsilon(canaries, guesses, right, delta, READING), -by_chance

    return max((max(round(share * canaries), 2) for share in _SHARES), key=shown)


def judge(guessed: Guessed, guesses: int, epsilon: float, delta: float, gdp: float | None) -> Finding:
    """Return what guesses say about a guarantee; arguments as those of `dpmf.audit.two_worlds.judge`."""
    canaries, correct = len(guessed.scores), guessed.correct(guesses)
    shown = one_run_epsilon(canaries, guesses, correct, delta, READING)
    p_value = one_run_p_value(canaries, guesses, correct, epsilon, delta)
    best = one_run_epsilon(canaries, canaries, canaries, delta, READING)
    figures = {
        "canaries": canaries, "guesses": guesses, "correct": correct, "epsilon_one_run": shown, "p_value": p_value,
        "epsilon": epsilon, "delta": delta, "best_possible": best,
    }  # fmt: skip
    rows: list[tuple[object, ...]] = [
        ("guaranteed", f"ε = {epsilon:g}", f"at δ = {delta:g}"),
        ("guesses that are right", f"{correct} of {guesses}", f"about {canaries} canaries"),
        ("shown (Steinke et al. 2023)", f"ε ≥ {shown:.3f}", f"p = {p_value:.3g} of as many, if the guarantee holds"),
    ]
    violated = p_value < VERDICT
    if gdp is not None:
        mu, sure = (one_run_gdp(canaries, guesses, correct, error) for error in (READING, VERDICT))
        by_gaussian = gaussian_epsilon(mu, delta) if mu else 0.0
        violated = violated or sure > gdp
        figures |= {"mu_one_run": mu, "mu_planned": gdp, "epsilon_f_dp": by_gaussian}
        figures["best_possible_f_dp"] = gaussian_epsilon(one_run_gdp(canaries, canaries, canaries, READING), delta)
        rows.append(("shown (Mahloujifar et al. 2024)", f"ε ≥ {by_gaussian:.3f}", f"μ ≥ {mu:.4f} of {gdp:.4f} planned"))
    rows.append(("could be shown at best", f"ε ≥ {best:.3f}", f"if all {canaries} guesses were right"))
    sentence = f"{correct} of {guesses} guesses are right, which shows ε ≥ {shown:.3f} of {epsilon:g}"
    return Finding("one_run", "One run, many canaries", not violated, sentence, ("", "", ""), rows, figures)


def examine(subject: Subject, *, canaries: int = CANARIES, progress: Progress = silent) -> Finding:
    """Audit one run with as many canaries as there are items, or fewer."""
    pairs = canaries_of(subject, canaries)
    count = len(pairs)
    whole = replace(subject, n_targets=count)
    people = [pair.second for pair in pairs]
    budget, _ = whole.public(whole.world(people)).plan.guaranteed()
    events = list(whole.events.values())
    gaussian = all(isinstance(one, GaussianEvent) for one in events)
    gdp = gdp_of(events) if gaussian else None
    at_most = gdp_at(budget.epsilon, budget.delta) if gdp is None else gdp
    guesses = guesses_for(at_most, count, budget.delta, subject.seed)
    return judge(guess(whole, pairs, progress), guesses, budget.epsilon, budget.delta, gdp)
