"""Questions: what a certified method asks people for, and the largest answer that one person can give.

A question is public through and through: it is made of what was released before, and of public constants. Whoever has
it and their own ratings has everything their answer needs. An answer is whole numbers, steps of a public grid, added to
a sum; however a person's ratings look, its Euclidean length is at most the question's `reach` times the steps per unit.
One person answers exactly as many do, to the same bits: see docs/proofs.

>>> own = Csr(np.array([0, 2]), np.array([0, 1], np.int32), np.float32([4, 5]))
>>> ann, sums = People.of(own), np.zeros(2, np.int64)
>>> Counts("item popularity", np.ones(2)).add(ann, None, 0, 1, 1000.0, sums)
>>> sums.tolist()
[707, 707]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.bounded_sums import SAFETY, add_counts
from dpmf.kernels.csr import Csr

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


class Rated(Protocol):
    """Ratings of some people, one person after the other, as `Ratings` has them."""

    @property
    def indptr(self) -> Integers:
        """Where the ratings of each person begin, and where the last ones end."""

    @property
    def items(self) -> NDArray[np.int32]:
        """Positions in the catalogue."""

    @property
    def values(self) -> Floats:
        """The ratings."""

    @property
    def csr(self) -> Csr:
        """All of that in one."""


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Those who answer, with all that their answers depend on.

    Attributes:
        solving: all ratings, to which people fit their own bias and factors.
        counted: the ratings that count towards sums, perhaps fewer.
        shares: what part of the full weight each person has, from 0 to 1.
        positions: of these people among all.
    """

    solving: Rated
    counted: Rated
    shares: Array
    positions: Integers

    @classmethod
    def of(cls, rated: Rated, shares: Array | None = None) -> Self:
        """Return everybody, all of whose ratings count."""
        n_people = len(rated.indptr) - 1
        return cls(rated, rated, np.ones(n_people) if shares is None else shares, np.arange(n_people))


class Fitted(NamedTuple):
    """What people fitted for themselves: biases, shape (n,), and factors, shape (n, K)."""

    b: Floats
    U: Floats


class Fit(Protocol):
    """What people fit their own bias and factors to before they answer."""

    @property
    def n_factors(self) -> int:
        """K."""

    def solve(self, rated: Rated, first: int, last: int, fitted: Fitted) -> None:
        """Let people first..last-1 fit their own bias and factors, fitted[i] (out)."""

    @property
    def unit(self) -> float:
        """What errors are in, in units of the ratings."""

    def squared_errors(self, rated: Rated, first: int, last: int, fitted: Fitted) -> float:
        """Return the squared errors of people first..last-1, summed: a figure for the holder of the data.

        It is a whole number of small steps, so that the errors of everybody add up to the same in any order.
        """

    def same_as(self, other: Fit) -> bool:
        """Return whether everybody's bias and factors come out the same."""


class Question(ABC):
    """One sum over people that is to be released. Subclasses are frozen dataclasses of public values.

    Attributes:
        what: the event of the plan that it is a release of.
        nonnegative: whether no contribution has a negative part: those of two people are then at right angles at most.
        tracks_error: whether the holder of the data wants the training error of those who answer.
        scales_up: whether the sum of those who answered is scaled up to stand for all, where some dropped out; else
            the public half looks at who answered.
    """

    what: str
    nonnegative: ClassVar[bool] = False
    tracks_error: ClassVar[bool] = False
    scales_up: ClassVar[bool] = True

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """The greatest Euclidean length of one person's contribution."""

    @abstractmethod
    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add the answers of people first..last-1 to sums (out), in steps of the grid per unit."""

    def needs(self) -> Fit | None:
        """Return what people have to fit before they can answer."""
        return None

    def prepared(self, people: People) -> People:
        """Return people with their ratings in the form in which this question takes them."""
        return people

    def sensitivity(self, neighbours: str) -> float:
        """Return what the noise multiplier is relative to: the greatest distance of the sums of neighbours."""
        if neighbours != "replace":
            return self.reach
        return self.reach * (math.sqrt(2.0) if self.nonnegative else 2.0)


@dataclass(frozen=True)
class Headcount(Question):
    """How many people are there? Everybody counts by their share."""

    what: str
    nonnegative = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""
        return (1,)

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return 1.0

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add the number of people to sums (out)."""
        shares = people.shares[first:last]
        valid = np.where((shares >= 0) & (shares <= 1), shares, 0.0)
        sums += np.trunc(SAFETY * valid * steps).astype(np.int64).sum(keepdims=True)


@dataclass(frozen=True, eq=False)
class Counts(Question):
    """How much weight do people give to every item that they rated?

    Attributes:
        what: the name of the release.
        weights: of items, not negative, relative to each other; everybody scales them to length 1.
    """

    what: str
    weights: Array
    nonnegative = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""
        return self.weights.shape

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return 1.0

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add everybody's weights to sums (out)."""
        add_counts(people.counted.csr.pattern, first, last, self.weights, people.shares, steps, sums)


class Noisy(NamedTuple):
    """An answer: a sum with noise.

    Attributes:
        values: the sum, in units.
        sd: of the noise, its standard deviation, or for noise of gamma-distributed length its scale.
        steps: of the grid that contributions were put on, per unit.
        answered: the positions of those in the sum, where people answer for themselves; None for everybody.
    """

    values: Array
    sd: float
    steps: float
    answered: Integers | None = None
