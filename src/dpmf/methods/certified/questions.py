"""What people are asked for in the rounds of private least squares, and how they answer.

A question is public through and through: it is made of what was released before, and of public constants. Whoever has
it and their own ratings has all that their answer needs: they fit their own bias and factors to what it says, and add
whole numbers, steps of a public grid, to a sum. However their ratings look, the Euclidean length of what they add is
at most steps times the question's `reach`; see docs/proofs/als.md. One person answers as many do, to the same bits.

>>> ann = People(*(Answers(np.array([0, 2]), np.array([0, 1], np.int32), np.float32([4, 5])) for _ in "12"), np.ones(1))
>>> sums = np.zeros(2, np.int64)
>>> add_answers(Counts("item popularity", np.ones(2)), ann, 0, 1, 1000.0, sums)
>>> sums.tolist()
[707, 707]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.bounded_sums import SAFETY, add_counts, add_item_moments, add_moments
from dpmf.kernels.held_out import HeldOut, add_held_out_residuals
from dpmf.kernels.ridge import solve_people
from dpmf.methods.als.plan import PrivatePlan

Array = NDArray[np.float64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Fit:
    """What people fit their bias and factors to, so that mean + b + c_j + u·v_j is close to their ratings.

    Attributes:
        mean: what every prediction starts from.
        c: biases of items, shape (n_items,).
        V: factors of items, shape (n_items, K).
        ridge_b, ridge_u: penalties on a person's bias and factors.
        length: if above 0, factors are only a first guess: they get this length, and do not predict.
    """

    mean: float
    c: Floats
    V: Floats
    ridge_b: float
    ridge_u: float
    length: float = 0.0

    def asks_the_same_as(self, other: Fit) -> bool:
        """Return whether everybody's bias and factors come out the same."""
        numbers = [(one.mean, one.ridge_b, one.ridge_u, one.length) for one in (self, other)]
        return numbers[0] == numbers[1] and np.array_equal(self.c, other.c) and np.array_equal(self.V, other.V)


@dataclass(frozen=True)
class Headcount:
    """How many people are there? Everybody counts by their share."""

    what: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""
        return (1,)

    @property
    def reach(self) -> float:
        """The greatest length of what a person adds."""
        return 1.0

    def sensitivity(self, plan: PrivatePlan) -> float:
        """Return the greatest distance of the sums of neighbours."""
        return self.reach * plan.count_replaced


@dataclass(frozen=True, eq=False)
class Counts:
    """How much weight do people give to every item that they rated?

    Attributes:
        what: the name of the release.
        weights: of items, not negative, relative to each other; everybody scales them.
    """

    what: str
    weights: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""
        return self.weights.shape

    @property
    def reach(self) -> float:
        """The greatest length of what a person adds."""
        return 1.0

    def sensitivity(self, plan: PrivatePlan) -> float:
        """Return the greatest distance of the sums of neighbours."""
        return self.reach * plan.count_replaced


@dataclass(frozen=True, eq=False)
class Residuals:
    """By how much do ratings differ from what a person's other ratings predict, and what factors go with that?

    Attributes:
        what: the name of the release.
        weights: of items, as above.
        fit: what to predict from.
        clip: where residuals are cut off.
        radius: the longest factors.
        height: the factor that stands for the bias.
    """

    what: str
    weights: Array
    fit: Fit
    clip: float
    radius: float
    height: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""
        n_items, n_factors = self.fit.V.shape
        return n_items, n_factors + 1

    @property
    def reach(self) -> float:
        """The greatest length of what a person adds."""
        return self.clip * math.hypot(self.radius if self.fit.V.shape[1] else 0.0, self.height)

    def sensitivity(self, plan: PrivatePlan) -> float:
        """Return the greatest distance of the sums of neighbours."""
        return self.reach * plan.replaced


@dataclass(frozen=True, eq=False)
class Moments:
    """What are the second moments of people's factors?

    Attributes:
        what: the name of the release.
        fit: what to fit factors to.
        radius: the longest factors.
        weights: of items, as above, for moments of every item; None for those of all people alike.
    """

    what: str
    fit: Fit
    radius: float
    weights: Array | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum: triangles of symmetric matrices."""
        n_items, n_factors = self.fit.V.shape
        triangle = n_factors * (n_factors + 1) // 2
        return (triangle,) if self.weights is None else (n_items, triangle)

    @property
    def reach(self) -> float:
        """The greatest length of what a person adds."""
        return self.radius**2

    def sensitivity(self, plan: PrivatePlan) -> float:
        """Return the greatest distance of the sums of neighbours."""
        return self.reach * plan.replaced


Question: TypeAlias = Headcount | Counts | Residuals | Moments


class Noisy(NamedTuple):
    """What comes back: a sum with noise, in units, and the standard deviation of the noise."""

    values: Array
    sd: float


class Asking(Protocol):
    """Whoever puts questions to people, and sees to it that sums come back with noise."""

    def ask(self, *questions: Question) -> tuple[Noisy, ...]:
        """Return the noisy sums of everybody's answers."""

    def forfeit(self, what: str) -> None:
        """Give up a release of the plan that is not needed."""


class Rated(Protocol):
    """Ratings of some people, one after the other; `Ratings` has more."""

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Where the ratings of each person begin, and where the last ones end."""

    @property
    def items(self) -> NDArray[np.int32]:
        """Places in the catalogue."""

    @property
    def values(self) -> Floats:
        """The ratings."""


class Answers(NamedTuple):
    """Ratings of some people, as `Rated` has them."""

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: Floats

    def __repr__(self) -> str:
        return f"Answers({len(self.indptr) - 1} people)"


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Those who answer, with all that their answers depend on.

    Attributes:
        solving: all ratings, to which people fit their own bias and factors.
        counted: the ratings that count towards sums, perhaps fewer.
        shares: what part of the full weight each person has, from 0 to 1.
    """

    solving: Rated
    counted: Rated
    shares: Array


def solve(fit: Fit, solving: Rated, first: int, last: int, b: Floats, U: Floats) -> None:
    """Let people first..last-1 fit their own bias b[i] (out) and factors U[i] (out)."""
    solve_people(
        solving.indptr, solving.items, solving.values, first, last, fit.V, fit.c, fit.mean, fit.ridge_b, fit.ridge_u,
        0.0, b, U,
    )  # fmt: skip
    if fit.length > 0:
        with np.errstate(all="ignore"):  # a warning would tell of a person
            lengths = np.linalg.norm(U[first:last], axis=1, keepdims=True)
            scales = np.where(lengths > 0, fit.length / np.maximum(lengths, 1e-30), 0.0)
            U[first:last] *= scales.astype(np.float32)


def add_answers(
    question: Question,
    people: People,
    first: int,
    last: int,
    steps: float,
    sums: NDArray[np.int64],
    U: Floats | None = None,
) -> None:
    """Add the answers of people first..last-1 to sums (out), in steps of the grid.

    Args:
        question: what is asked.
        people: whose answers.
        first, last: which of them.
        steps: of the grid, per unit.
        sums: of the question's shape.
        U: everybody's factors, if they have solved for them before; found here otherwise.
    """
    counted, solving, shares = people.counted, people.solving, people.shares
    if isinstance(question, Headcount):
        add_people(shares[first:last], steps, sums)
    elif isinstance(question, Counts):
        add_counts(counted.indptr, counted.items, first, last, question.weights, shares, steps, sums)
    elif isinstance(question, Residuals):
        fit = question.fit
        numbers = HeldOut(
            fit.mean, fit.ridge_b, fit.ridge_u, fit.length, question.clip, question.radius, question.height
        )
        add_held_out_residuals(
            counted.indptr, counted.items, counted.values, solving.indptr, solving.items, solving.values, first, last,
            question.weights, shares, fit.c, fit.V, numbers, steps, sums,
        )  # fmt: skip
    else:
        if U is None:
            n_users, n_factors = len(shares), question.fit.V.shape[1]
            U = np.zeros((n_users, n_factors), np.float32)
            solve(question.fit, solving, first, last, np.zeros(n_users, np.float32), U)
        if question.weights is None:
            add_moments(first, last, shares, U, question.radius, steps, sums)
        else:
            add_item_moments(
                counted.indptr, counted.items, first, last, question.weights, shares, U, question.radius, steps, sums
            )


def add_people(shares: Array, steps: float, sums: NDArray[np.int64]) -> None:
    """Add the number of people to sums (out), shape (1,), everybody by their share. Bound: the share, at most 1."""
    valid = np.where((shares >= 0) & (shares <= 1), shares, 0.0)
    sums += np.trunc(SAFETY * valid * steps).astype(np.int64).sum(keepdims=True)
