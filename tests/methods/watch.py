"""What passes between a certified run, the people who answer it and the noise, and ways to interfere with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr
from dpmf.methods.certified.answer import Asked, RatingsAnswerer
from dpmf.methods.certified.questions import Array, Fit, Fitted, Integers, People, Rated
from dpmf.privacy.mechanism import Mechanism, PlannedEvent
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings
from dpmf.ratings.subset import select_users
from dpmf.ratings.trim import trimmed

Coins = Callable[[int, int], NDArray[np.bool_]]


class Record(NamedTuple):
    """One release: what was summed exactly, and what everybody saw of it."""

    what: str
    sums: Integers
    steps: float
    sensitivity: float
    seen: Array


class Recorder(Mechanism):
    """A mechanism that keeps the exact sums; it may show what was seen in another world instead.

    Args:
        events: the plan.
        noise: where the noise comes from.
        script: what was released in another world.
        coins: decides who takes part in a step that samples people, of their number and that of the step.
    """

    def __init__(
        self,
        events: Sequence[PlannedEvent],
        noise: Noise,
        script: Sequence[Record] | None = None,
        coins: Coins | None = None,
    ) -> None:
        super().__init__(events, noise)
        self.records: list[Record] = []
        self._coins, self._tossed = coins, 0
        self._script: Iterator[Record] | None = None if script is None else iter(script)

    def participants(self, what: str, n_people: int) -> NDArray[np.bool_] | None:
        """Toss everybody's coin, or ask whoever decides."""
        chosen = super().participants(what, n_people)
        self._tossed += 1
        return chosen if chosen is None or self._coins is None else self._coins(n_people, self._tossed)

    def release(self, what: str, sums: Integers, sensitivity: float) -> Array:
        """Keep the sums, and show what the script says, or else the sums with noise."""
        seen = super().release(what, sums, sensitivity)  # refuses what is not in the plan
        if self._script is not None:
            seen = np.resize(
                next(self._script).seen, seen.shape
            )  # numbers of another size may lead to another question
        self.records.append(Record(what, sums.copy(), self.steps(what, sensitivity), sensitivity, seen))
        return seen.copy()


class Killed(BaseException):
    """Stands for the end of the process."""


class Watch:
    """Watches all certified runs.

    Attributes:
        drawn: label and index of all noise that was drawn.
        kill_at: at which draw, counted from 1, the process ends.
        mechanisms: of the runs, in order.
        script: what the next runs see instead of their own sums.
    """

    def __init__(self) -> None:
        self.drawn: list[tuple[str, int]] = []
        self.kill_at: int | None = None
        self.mechanisms: list[Recorder] = []
        self.script: list[Record] | None = None

    def noise(self, noise_seed: int | None) -> Noise:
        """Return noise that is watched."""
        return _WatchedNoise(self, noise_seed)

    def mechanism(self, events: Sequence[PlannedEvent], noise: Noise) -> Recorder:
        """Return a mechanism that is watched."""
        self.mechanisms.append(Recorder(events, noise, self.script))
        return self.mechanisms[-1]

    @property
    def records(self) -> list[Record]:
        """What the last run released."""
        return self.mechanisms[-1].records

    def draw(self, label: str, index: int) -> None:
        """Note a draw, or die."""
        self.drawn.append((label, index))
        if len(self.drawn) == self.kill_at:
            raise Killed


class _WatchedNoise(Noise):
    __slots__ = ("_watch",)

    def __init__(self, watch: Watch, noise_seed: int | None) -> None:
        super().__init__(noise_seed)
        self._watch = watch

    def integers(self, shape: int | tuple[int, ...], label: str, index: int) -> Integers:
        self._watch.draw(label, index)
        return super().integers(shape, label, index)

    def coins(self, n: int, probability: float, label: str, index: int) -> NDArray[np.bool_]:
        self._watch.draw(label, index)
        return super().coins(n, probability, label, index)

    def words(self, shape: int | tuple[int, ...], label: str, index: int) -> NDArray[np.uint64]:
        self._watch.draw(label, index)
        return super().words(shape, label, index)


class Apart(RatingsAnswerer):
    """People who have nothing but their own ratings: each answers alone, and only the answers are added up."""

    def __init__(self, ratings: Any, shares: Array, n_threads: int, *, cap: int | None = None, seed: int = 0) -> None:
        super().__init__(ratings, shares, n_threads, cap=cap, seed=seed)
        self.everybody = [_alone(ratings, number, float(share), cap, seed) for number, share in enumerate(shares)]

    def answer(self, asked: Sequence[Asked]) -> list[Integers]:
        """Return the sum of answers that were given one by one."""
        super().answer(asked)  # for the training error, which nobody could know
        totals = []
        for one in asked:
            total = np.zeros(one.question.shape, np.int64)
            for number, person in enumerate(self.everybody):
                if one.participants is None or one.participants[number]:
                    total += answer_of(person, one)
            totals.append(total)
        return totals


def _alone(ratings: Ratings, number: int, share: float, cap: int | None, seed: int) -> People:
    own = select_users(ratings, np.array([number]))
    counted = own if cap is None else trimmed(own, cap, seed=seed)
    return People(_copied(own), _copied(counted), np.array([share]), np.array([number]))


def _copied(rated: Rated) -> Csr:
    return Csr(rated.indptr.copy(), rated.items.copy(), rated.values.copy())


def answer_of(people: People, asked: Asked) -> Integers:
    """Return the answer of some people, who fit what they have to by themselves."""
    question, sums = asked.question, np.zeros(asked.question.shape, np.int64)
    prepared, n_people = question.prepared(people), len(people.shares)
    fit: Fit | None = question.needs()
    fitted = None
    if fit is not None:
        fitted = Fitted(np.zeros(n_people, np.float32), np.zeros((n_people, fit.n_factors), np.float32))
        fit.solve(prepared.solving, 0, n_people, fitted)
    question.add(prepared, fitted, 0, n_people, asked.steps, sums)
    return sums
