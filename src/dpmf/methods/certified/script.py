"""What a public half may ask, agreed beforehand, so that a person can rebuild every question from a few numbers.

Where people answer for themselves, whoever asks sends numbers that were released before (item factors, say), and each
person makes the question of them and of what was agreed: names, shapes, clips, radii. So nobody takes a bound from
whoever asks. Where one party holds all ratings, the same script makes the questions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.certified.plan import Plan
from dpmf.methods.certified.questions import Question

LARGEST = 1e6  # of any number that is told: whoever sends more has gone astray
_LEAST_PENALTY = 1e-300


class Crowd(NamedTuple):
    """People who answer for themselves, each with a share of the noise.

    Attributes:
        n_users: how many take part in a round, which is public.
        n_shares: how many shares of noise are sure to be in a sum, and known to nobody else.
    """

    n_users: int
    n_shares: int


class Told(NamedTuple):
    """An array that comes with a question.

    Attributes:
        name: by which `Script.questions` finds it.
        dtype: in bytes, little-endian.
        shape: of the array.
        least, most: the range of its numbers.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    least: float = -LARGEST
    most: float = LARGEST

    def holds(self, array: NDArray[Any]) -> bool:
        """Return whether an array has the right shape and numbers within the range; NaN is not."""
        if array.shape != self.shape:
            return False
        return not array.size or bool(array.min() >= self.least and array.max() <= self.most)


def penalties(name: str, count: int, unit: float = 1.0) -> Told:
    """Return the description of penalties, which are above 0, and in proportion to squared ratings in units."""
    return Told(name, "<f8", (count,), least=_LEAST_PENALTY, most=LARGEST * max(unit, 1.0) ** 2)


def numbers(name: str, shape: tuple[int, ...], unit: float = 1.0) -> Told:
    """Return the description of factors or biases of either sign, for ratings in units."""
    most = LARGEST * max(unit, 1.0)
    return Told(name, "<f4", shape, least=-most, most=most)


def within_reach(array: NDArray[np.float32], unit: float = 1.0) -> NDArray[np.float32]:
    """Return a copy of public numbers in the range that `numbers` allows: nobody is asked to fit anything else.

    Whether a fit to larger numbers fails would depend on a person's ratings, and a failure ends a run for all to see.
    """
    most = np.float32(LARGEST * max(unit, 1.0))
    return np.nan_to_num(np.clip(array, -most, most), copy=False, nan=0.0)


class Round(NamedTuple):
    """Questions that are asked at once, because none depends on the answer to another.

    Attributes:
        stage: the place of the stage of the plan that they belong to.
        releases: what they release.
    """

    stage: int
    releases: tuple[str, ...]


class Script(ABC):
    """The rounds of a conversation. Subclasses are frozen dataclasses of public facts.

    Attributes:
        plan: what the rounds release.
    """

    plan: Plan

    @property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds, in order; unless a subclass says otherwise, all that a stage releases is asked for at once."""
        return tuple(Round(place, stage.releases) for place, stage in enumerate(self.plan.stages()))

    @property
    def places(self) -> int | None:
        """How many places there are, where everybody has to know their own; None where nobody has one."""
        return None

    @abstractmethod
    def told(self, releases: Sequence[str]) -> tuple[Told, ...]:
        """Return what comes with the questions of a round that makes these releases."""

    @abstractmethod
    def questions(self, releases: Sequence[str], told: Mapping[str, NDArray[Any]]) -> tuple[Question, ...]:
        """Return the questions of a round: one for each release, made of what is told and of what was agreed."""

    @abstractmethod
    def spell(self, questions: Sequence[Question]) -> dict[str, NDArray[Any]]:
        """Return what has to be told for others to make the same questions."""

    def terms(self, what: str, n_users: int) -> int:
        """Return how many bounds can add up in one number of a release; usually one for each of the people asked."""
        return n_users

    def constants(self) -> dict[str, Any]:
        """Return what was agreed, in JSON values, as far as neither plan nor rounds say it."""
        return {}


def number(told: Mapping[str, NDArray[Any]], name: str) -> float:
    """Return a single number that was told."""
    return float(np.asarray(told[name]).reshape(-1)[0])
