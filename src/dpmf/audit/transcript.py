"""A conversation as it is overheard: every question, the exact sum of everybody's answers, and what was released of it.

A public half takes whatever answers it is given, so a transcript may also be made of given answers: those of a crowd
a thousand times as large, say, or of absurd size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dpmf.audit.subject import Subject
from dpmf.methods.certified.answer import Answerer, Asked
from dpmf.methods.certified.conversation import Partner, PublicHalf, converse
from dpmf.methods.certified.curator import Curator
from dpmf.methods.certified.questions import Array, Fit, Integers, Noisy, Question
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings


class Said(NamedTuple):
    """One release.

    Attributes:
        asked: the question, its grid and who took part.
        sums: the exact sum.
        released: what everybody saw, in steps of the grid.
    """

    asked: Asked
    sums: Integers
    released: Array

    @property
    def what(self) -> str:
        """The name of the event."""
        return self.asked.question.what

    @property
    def noise(self) -> Array:
        """What was added, in steps."""
        return self.released - self.sums


class _Overheard:
    """An answerer that notes what it was asked, and what it answered."""

    def __init__(self, people: Answerer) -> None:
        self._people = people
        self.heard: list[tuple[Asked, Integers]] = []

    @property
    def n_users(self) -> int:
        return self._people.n_users

    def answer(self, asked: Sequence[Asked]) -> list[Integers]:
        sums = self._people.answer(asked)
        self.heard += zip(asked, (one.copy() for one in sums), strict=True)
        return sums

    def error(self, fit: Fit | None) -> float:
        return 0.0  # training errors are of no interest here


class Witness:
    """A partner that passes on what a public half asks, and notes what comes back.

    Args:
        partner: who really asks people.
        shown: makes the answers that the public half gets to see, of those that came back; these by default.
    """

    def __init__(self, partner: Partner, shown: Callable[[Sequence[Noisy]], tuple[Noisy, ...]] = tuple) -> None:
        self._partner, self._shown = partner, shown
        self.said: list[tuple[Question, Noisy]] = []
        self.begin, self.forfeit = partner.begin, partner.forfeit
        self.error, self.finish = partner.error, partner.finish

    def ask(self, questions: Sequence[Question]) -> tuple[Noisy, ...]:
        """Pass on questions, and note and return what comes back."""
        answers = self._shown(self._partner.ask(questions))
        self.said += zip(questions, answers, strict=True)
        return answers

    def listen(self, public: PublicHalf) -> None:
        """Let a public half carry out its whole conversation."""
        for stage in public.plan.stages():
            converse(public, stage, self)
        self.finish()


def overhear(subject: Subject, ratings: Ratings, given: Callable[[Noisy, Integers], Array] | None = None) -> list[Said]:
    """Carry out a whole conversation with noise of a new key, and return all that was released.

    Args:
        subject: what to run.
        ratings: of everybody who answers.
        given: makes the answers that the public half gets to see, of the noisy ones and of exact sums.
    """
    public = subject.public(ratings)
    people = _Overheard(subject.people(ratings))
    mechanism = subject.mechanism(tuple(public.plan.events()), Noise())

    def shown(answers: Sequence[Noisy]) -> tuple[Noisy, ...]:
        if given is None:
            return tuple(answers)
        sums = [one for _, one in people.heard[-len(answers) :]]
        return tuple(one._replace(values=given(one, exact)) for one, exact in zip(answers, sums, strict=True))

    witness = Witness(Curator(people, mechanism, subject.budget.neighbours), shown)
    with np.errstate(all="ignore"):  # given answers may be of any size
        witness.listen(public)
    return [
        Said(asked, sums, noisy.values * asked.steps)
        for (asked, sums), (_, noisy) in zip(people.heard, witness.said, strict=True)
    ]


def of_many(noisy: Noisy, sums: Integers) -> Array:
    """Return the answer of a thousand times as many people, without noise."""
    return np.asarray(1000.0 * sums / noisy.steps)


def absurd(noisy: Noisy, sums: Integers) -> Array:
    """Return an answer that no crowd could give."""
    return np.asarray(np.sign(noisy.values) * 1e12 * (1 + np.abs(noisy.values)))
