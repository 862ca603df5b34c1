"""The questions of certified least squares on implicit feedback; docs/proofs/als.md has the bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.als_implicit import (
    Confidence,
    ImplicitItems,
    implicit_squared_errors,
    prepare_items,
    solve_implicit,
)
from dpmf.kernels.dense import rescale_rows
from dpmf.kernels.implicit_sums import ImplicitSettings, add_held_out_factors, add_implicit_moments
from dpmf.methods.als.plan import FACTORS, MOMENTS, ImplicitPlan
from dpmf.methods.certified.questions import Array, Counts, Fit, Fitted, Floats, Integers, People, Question, Rated
from dpmf.methods.certified.script import Script, Told, number, numbers, penalties

RADIUS = 1.0
"""The longest factors of a user that count in full."""


@dataclass(frozen=True, eq=False)
class ImplicitFit:
    """What people fit their factors to, so that c_j + u·v_j is near 1 for what they have and near 0 for the rest.

    Attributes:
        V: factors of items, shape (n_items, K).
        c: popularity of items, shape (n_items,).
        ridge: the penalty on a person's factors.
        confidence: how much more an item that a person has weighs than one that they do not have.
        length: if above 0, factors are only a first guess, and get this length.
    """

    V: Floats
    c: Floats
    ridge: float
    confidence: Confidence
    length: float = 0.0

    @property
    def n_factors(self) -> int:
        """K."""
        return int(self.V.shape[1])

    @property
    def unit(self) -> float:
        """What errors are in: the unit of the scores."""
        return 1.0

    @cached_property
    def items(self) -> ImplicitItems:
        """The items, with the part of the normal equations that is the same for everybody."""
        return prepare_items(self.V, self.c, self.ridge)

    def solve(self, rated: Rated, first: int, last: int, fitted: Fitted) -> None:
        """Let people first..last-1 fit their own factors, fitted[i] (out); nobody has a bias."""
        solve_implicit(rated.csr, first, last, self.items, self.confidence, fitted.U)
        if self.length > 0:
            rescale_rows(first, last, self.length, fitted.U)

    def squared_errors(self, rated: Rated, first: int, last: int, fitted: Fitted) -> float:
        """Return the squares of 1 less the scores of what people have, summed."""
        return float(implicit_squared_errors(rated.csr.pattern, first, last, self.V, self.c, fitted.U))

    def same_as(self, other: Fit) -> bool:
        """Return whether everybody's factors come out the same."""
        if not isinstance(other, ImplicitFit):
            return False
        numbers = [(one.ridge, one.confidence, one.length) for one in (self, other)]
        return numbers[0] == numbers[1] and np.array_equal(self.c, other.c) and np.array_equal(self.V, other.V)


@dataclass(frozen=True, eq=False)
class ImplicitMoments(Question):
    """What are the second moments of (u_i, 1) over people, who count by 1/√n for the n items they have?

    Attributes:
        what: the name of the release.
        fit: what to fit factors to.
        weights: of items, relative to each other.
        lift: what 1/√n is multiplied by; people with fewer than lift² items count in full.
        radius: the longest factors.
    """

    what: str
    fit: ImplicitFit
    weights: Array
    lift: float
    radius: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum: the triangle of a symmetric matrix."""
        K = self.fit.n_factors
        return ((K + 1) * (K + 2) // 2,)

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return self.radius**2 + 1

    def needs(self) -> ImplicitFit:
        """Return what people have to fit before they can answer."""
        return self.fit

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add everybody's moments to sums (out)."""
        assert fitted is not None
        of, whose = people.counted, (self.weights, people.shares, fitted.U)
        add_implicit_moments(of.csr.pattern, first, last, *whose, self.lift, self.radius, steps, sums)


@dataclass(frozen=True, eq=False)
class HeldOutFactors(Question):
    """What factors do those have who have an item, and how many are they?

    Attributes:
        what: the name of the release.
        fit: what to fit factors to, for every item without that item.
        weights: of items, relative to each other.
        radius: the longest factors.
        height: what is added beside the factors, and counts people.
    """

    what: str
    fit: ImplicitFit
    weights: Array
    radius: float
    height: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""
        return len(self.fit.V), self.fit.n_factors + 1

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return math.hypot(self.radius, self.height)

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add everybody's factors to sums (out)."""
        fit, of, own = self.fit, people.counted, people.solving
        numbers = ImplicitSettings(fit.confidence, fit.length, self.radius, self.height)
        whose = self.weights, people.shares
        add_held_out_factors(of.csr, own.csr, first, last, *whose, fit.items, numbers, steps, sums)


@dataclass(frozen=True)
class ImplicitScript(Script):
    """The rounds of certified least squares on implicit feedback.

    Attributes:
        plan: what they release.
    """

    plan: ImplicitPlan

    def told(self, releases: Sequence[str]) -> tuple[Told, ...]:
        """Return what comes with the questions of a round."""
        if FACTORS not in releases:
            return ()
        n_items, K = self.plan.n_items, self.plan.most_factors
        lift = Told("lift", "<f8", (1,), least=1.0)
        length = Told("length", "<f8", (1,), least=0.0)
        return penalties("ridge", 1), length, lift, numbers("c", (n_items,)), numbers("V", (n_items, K))

    def questions(self, releases: Sequence[str], told: Mapping[str, NDArray[Any]]) -> tuple[Question, ...]:
        """Return the questions of a round."""
        weights = np.ones(self.plan.n_items)
        if FACTORS not in releases:
            return tuple(Counts(what, weights) for what in releases)
        fit = ImplicitFit(told["V"], told["c"], number(told, "ridge"), self.plan.confidence, number(told, "length"))
        return (
            ImplicitMoments(MOMENTS, fit, weights, number(told, "lift"), RADIUS),
            HeldOutFactors(FACTORS, fit, weights, RADIUS, self.plan.height),
        )

    def spell(self, questions: Sequence[Question]) -> dict[str, NDArray[Any]]:
        """Return what has to be told for others to make the same questions."""
        first = questions[0]
        if not isinstance(first, ImplicitMoments):
            return {}
        fit, numbers = first.fit, {"ridge": first.fit.ridge, "length": first.fit.length, "lift": first.lift}
        return {"c": fit.c, "V": fit.V, **{name: np.array([value]) for name, value in numbers.items()}}

    def constants(self) -> dict[str, Any]:
        """Return what was agreed beside plan and rounds."""
        agreed: dict[str, Any] = {"radius": RADIUS, "height": self.plan.height, "alpha": self.plan.alpha}
        most, linear = self.plan.confidence[1:]
        return {**agreed, "most_count": most, "linear": linear} if most > 1 else agreed
