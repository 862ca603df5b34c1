"""The questions of certified least squares on ratings; docs/proofs/als.md has the bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmf.kernels.bounded_sums import add_item_moments, add_moments
from dpmf.kernels.held_out import HeldOutSettings, add_held_out_residuals
from dpmf.kernels.ridge import Penalties, solve_people, squared_errors
from dpmf.methods.certified.questions import Array, Fit, Fitted, Floats, Integers, People, Question, Rated


@dataclass(frozen=True, eq=False)
class RidgeFit:
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

    @property
    def n_factors(self) -> int:
        """K."""
        return int(self.V.shape[1])

    def solve(self, rated: Rated, first: int, last: int, fitted: Fitted) -> None:
        """Let people first..last-1 fit their own bias and factors, fitted[i] (out)."""
        b, U = fitted
        penalties = Penalties(self.ridge_b, self.ridge_u, 0.0)
        solve_people(rated.csr, first, last, self.V, self.c, self.mean, penalties, b, U)
        if self.length > 0:
            with np.errstate(all="ignore"):  # a warning would tell of a person
                lengths = np.linalg.norm(U[first:last], axis=1, keepdims=True)
                scales = np.where(lengths > 0, self.length / np.maximum(lengths, 1e-30), 0.0)
                U[first:last] *= scales.astype(np.float32)

    def squared_errors(self, rated: Rated, first: int, last: int, fitted: Fitted) -> float:
        """Return the squared errors of people first..last-1, summed."""
        return float(squared_errors(rated.csr, first, last, self.V, self.c, self.mean, *fitted))

    def same_as(self, other: Fit) -> bool:
        """Return whether everybody's bias and factors come out the same."""
        if not isinstance(other, RidgeFit):
            return False
        numbers = [(one.mean, one.ridge_b, one.ridge_u, one.length) for one in (self, other)]
        return numbers[0] == numbers[1] and np.array_equal(self.c, other.c) and np.array_equal(self.V, other.V)


@dataclass(frozen=True, eq=False)
class Residuals(Question):
    """By how much do ratings differ from what a person's other ratings predict, and what factors go with that?

    Attributes:
        what: the name of the release.
        weights: of items, not negative, relative to each other; everybody scales them to length 1.
        fit: what to predict from.
        clip: where residuals are cut off.
        radius: the longest factors.
        height: the factor that stands for the bias.
    """

    what: str
    weights: Array
    fit: RidgeFit
    clip: float
    radius: float
    height: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""
        return len(self.fit.V), self.fit.n_factors + 1

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return self.clip * math.hypot(self.radius if self.fit.n_factors else 0.0, self.height)

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add residuals times factors to sums (out); every rating is predicted from the person's others."""
        fit, of, own = self.fit, people.counted, people.solving
        numbers = HeldOutSettings(fit.mean, fit.ridge_b, fit.ridge_u, fit.length, self.clip, self.radius, self.height)
        whose = self.weights, people.shares
        add_held_out_residuals(of.csr, own.csr, first, last, *whose, fit.V, fit.c, numbers, steps, sums)


@dataclass(frozen=True, eq=False)
class Moments(Question):
    """What are the second moments of people's factors?

    Attributes:
        what: the name of the release.
        fit: what to fit factors to.
        radius: the longest factors.
        weights: of items, as above, for moments of every item; None for those of all people alike.
    """

    what: str
    fit: RidgeFit
    radius: float
    weights: Array | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum: triangles of symmetric matrices."""
        K = self.fit.n_factors
        triangle = K * (K + 1) // 2
        return (triangle,) if self.weights is None else (len(self.fit.V), triangle)

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return self.radius**2

    def needs(self) -> RidgeFit:
        """Return what people have to fit before they can answer."""
        return self.fit

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add the moments of everybody's factors to sums (out)."""
        assert fitted is not None
        shares, of = people.shares, people.counted
        if self.weights is None:
            add_moments(first, last, shares, fitted.U, self.radius, steps, sums)
        else:
            whose = self.weights, shares, fitted.U
            add_item_moments(of.csr.pattern, first, last, *whose, self.radius, steps, sums)
