"""The questions of certified least squares on ratings; docs/proofs/als.md has the bounds."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.bounded_sums import add_item_moments, add_moments
from dpmf.kernels.held_out import HeldOutSettings, add_held_out_residuals
from dpmf.kernels.ridge import Penalties, solve_people, squared_errors
from dpmf.methods.als.plan import BIASES, FACTORS, MOMENTS, POPULARITY, USERS, WEIGHTS, ALSPlan
from dpmf.methods.certified.questions import (
    Array,
    Counts,
    Fit,
    Fitted,
    Floats,
    Headcount,
    Integers,
    People,
    Question,
    Rated,
)
from dpmf.methods.certified.script import Round, Script, Told, number, numbers, penalties
from dpmf.methods.units import unit_of
from dpmf.ratings import Scale

RADIUS = 1.0
"""The longest factors of a user that count in full."""

CLIP = 0.5  # where residuals are cut off, for a scale as wide as 1 to 5


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """What people fit their bias and factors to, so that mean + b + c_j + u·v_j is close to their ratings.

    Attributes:
        mean: what every prediction starts from.
        c: biases of items, shape (n_items,).
        V: factors of items, shape (n_items, K).
        ridge_b, ridge_u: penalties on a person's bias and factors.
        length: if above 0, factors are only a first guess: they get this length, and do not predict.
        n_fixed: how many of the factors, the last ones, are known: people fit their own taste to them as well, but are
            not asked about it.
        n_traits: how many of these, the last ones, are public traits of the items.
        trait_size: by what traits are multiplied.
    """

    mean: float
    c: Floats
    V: Floats
    ridge_b: float
    ridge_u: float
    length: float = 0.0
    n_fixed: int = 0
    n_traits: int = 0
    trait_size: float = 0.0

    @classmethod
    def beside(
        cls,
        mean: float,
        c: Floats,
        V: tuple[Floats, Floats],
        ridges: tuple[float, float],
        length: float,
        traits: Floats,
        size: float,
    ) -> RidgeFit:
        """Return what people fit to, given factors to ask about, known ones, and traits, unless their size is 0."""
        n_traits = traits.shape[1] if size else 0
        beside = np.hstack([*V, traits[:, :n_traits] * np.float32(size)])
        fixed = V[1].shape[1] + n_traits
        return cls(mean, c, np.ascontiguousarray(beside), *ridges, length, fixed, n_traits, size if n_traits else 0.0)

    @property
    def n_factors(self) -> int:
        """K, all included."""
        return int(self.V.shape[1])

    @property
    def n_asked(self) -> int:
        """Of how many factors people may be asked: of all that are not known."""
        return self.n_factors - self.n_fixed

    @property
    def unit(self) -> float:
        """What errors are in: the unit of the ratings."""
        return 1.0

    def solve(self, rated: Rated, first: int, last: int, fitted: Fitted) -> None:
        """Let people first..last-1 fit their own bias and factors, fitted[i] (out)."""
        b, U = fitted
        penalties = Penalties(self.ridge_b, self.ridge_u, 0.0)
        solve_people(rated.csr, first, last, self.V, self.c, self.mean, penalties, b, U)
        if self.length > 0:
            with np.errstate(all="ignore"):  # a warning would tell of a person
                guessed = U[first:last, : self.n_asked]
                lengths = np.linalg.norm(guessed, axis=1, keepdims=True)
                scales = np.where(lengths > 0, self.length / np.maximum(lengths, 1e-30), 0.0)
                guessed *= scales.astype(np.float32)

    def squared_errors(self, rated: Rated, first: int, last: int, fitted: Fitted) -> float:
        """Return the squared errors of people first..last-1, summed."""
        return float(squared_errors(rated.csr, first, last, self.V, self.c, self.mean, *fitted))

    def same_as(self, other: Fit) -> bool:
        """Return whether everybody's bias and factors come out the same."""
        if not isinstance(other, RidgeFit):
            return False
        numbers = [(one.mean, one.ridge_b, one.ridge_u, one.length, one.n_fixed) for one in (self, other)]
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
        alone: whether only residuals are asked for, and not what factors go with them.
    """

    what: str
    weights: Array
    fit: RidgeFit
    clip: float
    radius: float
    height: float
    alone: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""
        return len(self.fit.V), self._n_summed + 1

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return self.clip * math.hypot(self.radius if self._n_summed else 0.0, self.height)

    @property
    def _n_summed(self) -> int:
        return 0 if self.alone else self.fit.n_asked

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
        K = self.fit.n_asked
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


@dataclass(frozen=True)
class ALSScript(Script):
    """The rounds of certified least squares on ratings.

    Attributes:
        plan: what they release.
        scale: of ratings.
        traits: public traits of the items, shape (n_items, C); see `dpmf.ratings.features.traits_of`.
    """

    plan: ALSPlan
    scale: Scale
    traits: Floats

    @property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds: how often items are rated is asked one by one, because weights follow from popularity."""
        found = []
        for place, stage in enumerate(self.plan.stages()):
            together = [stage.releases] if stage.round is not None else [(one,) for one in stage.releases]
            found += [Round(place, releases) for releases in together]
        return tuple(found)

    def told(self, releases: Sequence[str]) -> tuple[Told, ...]:
        """Return what comes with the questions of a round."""
        n_items = self.plan.n_items
        if releases == (USERS,):
            return ()
        weights = Told("weights", "<f8", (n_items,), least=0.0)
        if not {BIASES, FACTORS} & set(releases):
            return (weights,)
        K = self.plan.most_factors
        if BIASES in releases:  # asked for before factors are, or instead
            K = 0 if K else self.plan.given
        length = Told("length", "<f8", (1,), least=0.0)
        unit = unit_of(self.scale)
        items = numbers("c", (n_items,), unit), numbers("V", (n_items, K), unit)
        size = (Told("trait size", "<f8", (1,), least=0.0),) if self.traits.shape[1] else ()
        return weights, penalties("ridges", 2, unit), length, *size, *items

    def questions(self, releases: Sequence[str], told: Mapping[str, NDArray[Any]]) -> tuple[Question, ...]:
        """Return the questions of a round."""
        return tuple(self._question(what, told) for what in releases)

    def _question(self, what: str, told: Mapping[str, NDArray[Any]]) -> Question:
        if what == USERS:
            return Headcount(what)
        weights = told["weights"]
        if what in (POPULARITY, WEIGHTS):
            return Counts(what, weights)
        ridge_b, ridge_u = told["ridges"].tolist()
        size = number(told, "trait size") if self.traits.shape[1] else 0.0
        V = told["V"], told["V"][:, :0]  # leanings would have to be told as well, and make questions longer
        length = number(told, "length")
        fit = RidgeFit.beside(self.scale.middle, told["c"], V, (ridge_b, ridge_u), length, self.traits, size)
        if what == MOMENTS:
            return Moments(what, fit, RADIUS, weights if self.plan.per_item else None)
        return Residuals(what, weights, fit, clip_of(self.scale), RADIUS, self._height(what), alone=what == BIASES)

    def _height(self, what: str) -> float:
        """Return the factor that stands for the bias: where people answer for themselves, their number is public."""
        assert self.plan.crowd is not None
        return self.plan.height(self.plan.crowd.n_users) if what == FACTORS else 1.0

    def spell(self, questions: Sequence[Question]) -> dict[str, NDArray[Any]]:
        """Return what has to be told for others to make the same questions."""
        last = questions[-1]
        if isinstance(last, Counts):
            return {"weights": last.weights}
        assert isinstance(last, Residuals)
        fit = last.fit
        ridges, length = np.array([fit.ridge_b, fit.ridge_u]), np.array([fit.length])
        size = {"trait size": np.array([fit.trait_size])} if self.traits.shape[1] else {}
        V = np.ascontiguousarray(fit.V[:, : fit.n_asked])
        return {"weights": last.weights, "ridges": ridges, "length": length, **size, "c": fit.c, "V": V}

    def constants(self) -> dict[str, Any]:
        """Return what was agreed beside plan and rounds."""
        agreed: dict[str, Any] = {
            "clip": clip_of(self.scale),
            "radius": RADIUS,
            "height": self._height(FACTORS),
            "mean": self.scale.middle,
        }
        if self.traits.shape[1]:
            agreed["traits"] = base64.b64encode(self.traits.astype("<f4").tobytes()).decode()
        return agreed


def clip_of(scale: Scale) -> float:
    """Return where residuals are cut off."""
    return CLIP * unit_of(scale)
