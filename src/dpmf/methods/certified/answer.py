"""Answerers: whoever holds ratings and sums everybody's answers to a question, exactly and without noise.

Integers add up to the same total in any order, so sums are the same for any number of threads, in memory and from disk.

>>> from dpmf.methods.certified.questions import Headcount
>>> from dpmf.ratings.synthetic import make
>>> people = RatingsAnswerer(make(50, 40), np.ones(50), n_threads=1)
>>> [sums.tolist() for sums in people.answer([Asked(Headcount("people"), steps=1000.0)])]
[[49950]]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.layout import equal_masses
from dpmf.engine.store import AnyRatings, parts_of
from dpmf.engine.threads import run_tasks
from dpmf.methods.certified.questions import Array, Fit, Fitted, Integers, People, Question, Rated
from dpmf.ratings import Ratings
from dpmf.ratings.subset import select_users
from dpmf.ratings.trim import trimmed

_FIT_TASKS_PER_THREAD = 16


class Asked(NamedTuple):
    """A question as it is put to people.

    Attributes:
        question: what is asked.
        steps: of the grid, per unit.
        participants: who takes part, shape (n_users,); None for everybody.
    """

    question: Question
    steps: float
    participants: NDArray[np.bool_] | None = None


class Errors(NamedTuple):
    """Squared errors of some people: exact sums, so that those of parts add up to the same in any order.

    Attributes:
        squared: their sum, in steps that float64 adds up exactly.
        n_ratings: that they are on.
        unit: of an error.
    """

    squared: float = 0.0
    n_ratings: int = 0
    unit: float = 1.0

    def __add__(self, other: Errors) -> Errors:  # type: ignore[override]
        """Return those of both."""
        return Errors(self.squared + other.squared, self.n_ratings + other.n_ratings, other.unit)

    @property
    def root_mean(self) -> float:
        """The root mean squared error."""
        return self.unit * math.sqrt(self.squared / max(self.n_ratings, 1))


class Answered(NamedTuple):
    """What some people answered.

    Attributes:
        sums: of their answers to each question.
        errors: of those who answered questions that track them.
    """

    sums: list[Integers]
    errors: Errors

    def __add__(self, other: Answered) -> Answered:  # type: ignore[override]
        """Return what both answered; sums of this one are changed in place."""
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine += theirs
        return Answered(self.sums, self.errors + other.errors)


class Answerer(Protocol):
    """Whoever can sum everybody's answers."""

    @property
    def n_users(self) -> int:
        """How many people there are: private, unless a method says otherwise."""

    def answer(self, asked: Sequence[Asked]) -> list[Integers]:
        """Return the exact sum of everybody's answers to each question, in steps of its grid."""

    def error(self, fit: Fit | None) -> float:
        """Return the training error of a fit, or of those who answered last: for the holder of the data."""


class RatingsAnswerer:
    """People whose ratings are in one place, in memory or on disk.

    Ratings on disk are read once per call, some users at a time.

    Args:
        ratings: all ratings.
        shares: what part of the full weight each user has.
        n_threads: how many threads to use.
        cap: how many ratings of a user count towards sums; None for all.
        seed: of the choice of those that count.
        positions: of users whose ratings are in memory among all users, if these are a part of them.
    """

    def __init__(
        self,
        ratings: AnyRatings,
        shares: Array,
        n_threads: int,
        *,
        cap: int | None = None,
        seed: int = 0,
        positions: Integers | None = None,
    ) -> None:
        self._ratings, self._shares, self._n_threads = ratings, shares, n_threads
        self._cap, self._seed = cap, seed
        self._everybody: People | None = None
        if isinstance(ratings, Ratings):
            where = np.arange(len(shares)) if positions is None else positions
            self._everybody = self._people(ratings, where, shares)
        self._fitted: tuple[Fit, Fitted] | None = None
        self._last = Errors()

    @property
    def n_users(self) -> int:
        """How many people there are."""
        return len(self._shares)

    def answer(self, asked: Sequence[Asked]) -> list[Integers]:
        """Return the exact sum of everybody's answers to each question, in steps of its grid."""
        answered = self.answered(asked)
        if answered.errors.n_ratings:
            self._last = answered.errors
        return answered.sums

    def error(self, fit: Fit | None) -> float:
        """Return the root mean squared error of a fit over all ratings, or of those who answered last."""
        return (self._last if fit is None else self.errors(fit)).root_mean

    def answered(self, asked: Sequence[Asked]) -> Answered:
        """Return the sums of everybody's answers, and errors if any question tracks them."""
        totals = [[np.zeros(one.question.shape, np.int64) for _ in range(self._n_threads)] for one in asked]
        errors = Errors()
        for part in self._parts():
            for one, sums in zip(asked, totals, strict=True):
                people = one.question.prepared(self._selected(part, one.participants))
                fitted = self._fit(one.question.needs(), people)
                self._add(one, people, fitted, sums)
                if one.question.tracks_error:
                    errors += self._errors(one.question.needs(), people, fitted)
        for sums in totals:
            while len(sums) > 1:
                sums[0] += sums.pop()
        return Answered([sums[0] for sums in totals], errors)

    def errors(self, fit: Fit) -> Errors:
        """Return the squared errors of a fit over all ratings."""
        found = Errors()
        for people in self._parts():
            found += self._errors(fit, people, self._fit(fit, people))
        return found

    def _parts(self) -> Iterator[People]:
        if self._everybody is not None:
            yield self._everybody
            return
        for positions, part in parts_of(self._ratings):
            yield self._people(part, positions, self._shares[positions])

    def _people(self, ratings: Ratings, positions: Integers, shares: Array) -> People:
        counted = ratings if self._cap is None else trimmed(ratings, self._cap, seed=self._seed)
        return People(ratings, counted, shares, positions)

    def _selected(self, people: People, participants: NDArray[np.bool_] | None) -> People:
        if participants is None:
            return people
        chosen = np.flatnonzero(participants[people.positions])
        solving = _of_users(people.solving, chosen)
        counted = solving if people.counted is people.solving else _of_users(people.counted, chosen)
        return People(solving, counted, people.shares[chosen], people.positions[chosen])

    def _fit(self, fit: Fit | None, people: People) -> Fitted | None:
        """Let people fit their bias and factors, unless all of them have just done so."""
        if fit is None:
            return None
        keeps = people is self._everybody
        if keeps and self._fitted is not None and fit.same_as(self._fitted[0]):
            return self._fitted[1]
        n_people = len(people.shares)
        fitted = Fitted(np.zeros(n_people, np.float32), np.zeros((n_people, fit.n_factors), np.float32))

        def solve(_: int, first: int, last: int) -> None:
            fit.solve(people.solving, first, last, fitted)

        over_people(people.solving, solve, _FIT_TASKS_PER_THREAD * self._n_threads, self._n_threads)
        if keeps:
            self._fitted = fit, fitted
        return fitted

    def _add(self, asked: Asked, people: People, fitted: Fitted | None, sums: list[Integers]) -> None:
        def add(task: int, first: int, last: int) -> None:
            asked.question.add(people, fitted, first, last, asked.steps, sums[task])

        over_people(people.counted, add, self._n_threads, self._n_threads)

    def _errors(self, fit: Fit | None, people: People, fitted: Fitted | None) -> Errors:
        if fit is None or fitted is None:
            return Errors()
        squared = np.zeros(self._n_threads)

        def measure(task: int, first: int, last: int) -> None:
            squared[task] = fit.squared_errors(people.solving, first, last, fitted)

        over_people(people.solving, measure, self._n_threads, self._n_threads)
        return Errors(float(squared.sum()), len(people.solving.items), fit.unit)


def over_people(rated: Rated, work: Callable[[int, int, int], Any], n_tasks: int, n_threads: int) -> None:
    """Call work(task, first, last) for ranges of people with about the same number of ratings."""
    starts = equal_masses(np.diff(rated.indptr) + 1, n_tasks).tolist()
    run_tasks(lambda task: work(task, starts[task], starts[task + 1]), n_tasks, n_threads)


def _of_users(rated: Rated, chosen: Integers) -> Ratings:
    assert isinstance(rated, Ratings)
    return replace(select_users(rated, chosen), timestamps=None)
