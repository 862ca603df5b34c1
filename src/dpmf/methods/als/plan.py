"""What a certified run of alternating least squares will release, for ratings and for implicit feedback.

>>> from dpmf.methods.als.defaults import FACTORS
>>> plan = ALSPlan(n_items=100, factors=FactorRule.exactly(2), n_rounds=3, user_ridge=0.5, budget=Budget(1))
>>> [stage.name for stage in plan.stages()][-1], len(plan.events())
('round 3', 6)
>>> implicit = ImplicitPlan(n_items=100, factors=FACTORS, n_rounds=3, user_ridge=1.0, budget=Budget(1), alpha=1.0)
>>> [stage.name for stage in implicit.stages()], len(implicit.events())
(['the count of items', 'round 1', 'round 2', 'round 3'], 4)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpmf.errors import InvalidArgument
from dpmf.kernels.als_implicit import Confidence
from dpmf.methods.als.defaults import bias_height, popularity_height, popularity_share
from dpmf.methods.als.known import above_noise
from dpmf.methods.certified.plan import FactorRule, Plan, Stage
from dpmf.methods.certified.questions import Headcount
from dpmf.methods.certified.script import Crowd
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.calibration import Part, gaussian_events

USERS, POPULARITY, WEIGHTS = "number of users", "item popularity", "item weights"
BIASES, MOMENTS, FACTORS = "item biases", "user moments", "item factors"
_SHARES = {USERS: 0.0005, POPULARITY: 0.03, WEIGHTS: 0.03}
_BIAS_SHARE = 0.05
_MOMENT_SHARE = 0.001
_ITEM_MOMENT_SHARE = 0.1
_BIAS_PASSES, _LONE_BIAS_PASSES = 1, 6  # before the rounds, and where there are none
_IMPLICIT_MOMENT_SHARE = 0.01
_ESTIMATES = 8  # arrays as large as factors and biases, while these are estimated
_MATRICES = 5  # of an item, while its factors are solved for


@dataclass(frozen=True)
class _Rounds(Plan):
    """What is public about a run before it starts.

    Attributes:
        n_items: the size of the catalogue.
        factors: how many factors there will be; with 0 there are item biases, or popularity, only.
        n_rounds: how often factors are measured.
        user_ridge: the penalty on a user's factors, relative to what their assumed spread suggests.
        budget: what may be spent.
        crowd: those who answer for themselves; None where one party holds all ratings, whose number is private then.
    """

    n_items: int
    factors: FactorRule
    n_rounds: int
    user_ridge: float
    budget: Budget
    crowd: Crowd | None = None

    @property
    def most_factors(self) -> int:
        """The most factors that an item may get."""
        return self.factors.most

    @property
    def working_size(self) -> int:
        """How many numbers are in memory beside sums: estimates of factors, and what they are computed from."""
        return _ESTIMATES * self.n_items * (self.most_factors + 1)

    def n_factors(self, n_users: float) -> int:
        """Return K for a noisy count of users."""
        return self.factors.number(self.budget.epsilon, n_users)

    def released_factors(self, headcount: float | None) -> int:
        """Return K, given the number of users as it was released, if it was."""
        if self.factors.is_settled:
            return self.most_factors
        if headcount is None:
            raise InvalidArgument("the number of users, from which that of factors follows, is missing")
        return self.n_factors(above_noise(headcount, users_sd(self.events(), self.budget.neighbours)))

    def events(self) -> tuple[GaussianEvent, ...]:
        """Return what will be released, with as much noise as the budget asks for."""
        return gaussian_events(self.budget, self.parts())

    def parts(self) -> list[Part]:
        """Return the releases, and the part of the budget that each of them gets; every share of noise is counted."""
        n_shares = 1 if self.crowd is None else self.crowd.n_shares
        return [replace(part, coordinates=part.coordinates * n_shares) for part in self._parts()]

    @abstractmethod
    def _parts(self) -> list[Part]:
        """Return the releases, each drawn once, and the part of the budget that each of them gets."""

    def _round_stages(self) -> tuple[Stage, ...]:
        rounds = range(self.n_rounds if self.most_factors else 0)
        return tuple(Stage(f"round {number + 1}", (MOMENTS, FACTORS), number) for number in rounds)


@dataclass(frozen=True)
class ALSPlan(_Rounds):
    """What is public about a run on ratings before it starts.

    Attributes:
        per_item: whether second moments are measured for every item, not once for all.
        known: releases that another half of the same run makes, so that this one does not: see `PublicALS.learn_from`.
        given: the most factors that the other half may give: where none are measured here they are used as they are,
            else measuring starts from them.
    """

    per_item: bool = False
    known: tuple[str, ...] = ()
    given: int = 0

    @property
    def most_fitted(self) -> int:
        """The most factors that people fit their own to."""
        return max(self.most_factors, self.given)

    @property
    def sum_size(self) -> int:
        """The most numbers that are asked for at once: those of a round."""
        m, K = self.n_items, self.most_factors
        return m * (K + 1) + self._moment_size

    @property
    def working_size(self) -> int:
        """How many numbers are in memory beside sums: matrices of every item, too, where moments are per item."""
        return super().working_size + (_MATRICES * self.n_items * self.most_factors**2 if self.per_item else 0)

    @property
    def _moment_size(self) -> int:
        triangle = self.most_factors * (self.most_factors + 1) // 2
        return self.n_items * triangle if self.per_item else triangle

    def _parts(self) -> list[Part]:
        m, K, T = self.n_items, self.most_factors, self.n_rounds
        parts = [Part(name, _SHARES[name], 1, 1 if name == USERS else m) for name in self._counts]
        left = 1 - sum(_SHARES[name] for name in self._counts)
        if not K:
            return [*parts, Part(BIASES, left, self._passes, self._passes * m)]
        left -= _BIAS_SHARE
        share, size = _ITEM_MOMENT_SHARE if self.per_item else _MOMENT_SHARE, self._moment_size
        return [
            *parts,
            Part(BIASES, _BIAS_SHARE, self._passes, self._passes * m),
            Part(MOMENTS, share * left, T, T * size),
            Part(FACTORS, (1 - share) * left, T, T * m * (K + 1)),
        ]

    def stages(self) -> tuple[Stage, ...]:
        """Return the parts of the run, in order; together they make every release once."""
        first = Stage("the count of ratings", self._counts, essential=self.measures(POPULARITY))
        passes = [Stage(f"pass {number + 1} over item biases", (BIASES,)) for number in range(self._passes)]
        return first, *passes, *self._round_stages()

    def measures(self, what: str) -> bool:
        """Return whether this is released: not what is known from elsewhere, nor a number of users that is public."""
        return what not in self.known and not (what == USERS and self.crowd is not None)

    @property
    def _counts(self) -> tuple[str, ...]:
        return tuple(what for what in (USERS, POPULARITY, WEIGHTS) if self.measures(what))

    @property
    def _passes(self) -> int:
        return _BIAS_PASSES if self.most_factors else _LONE_BIAS_PASSES

    def height(self, n_users: float) -> float:
        """Return how much the bias counts beside the factors, for a noisy count of users."""
        return bias_height(self.budget.epsilon, n_users)


@dataclass(frozen=True)
class ImplicitPlan(_Rounds):
    """What is public about a run on implicit feedback before it starts.

    Attributes:
        alpha: how much more an item that a person has weighs in the fit than one that they do not have.
        most_count, linear: how much that depends on how often they had it, see `Confidence`.
    """

    alpha: float = 1.0
    most_count: float = 1.0
    linear: bool = False

    @property
    def confidence(self) -> Confidence:
        """The extra weight of an item in a person's fit."""
        return Confidence(self.alpha, self.most_count, self.linear)

    @property
    def sum_size(self) -> int:
        """The most numbers that are asked for at once: those of a round."""
        K = self.most_factors
        return self.n_items * (K + 1) + (K + 1) * (K + 2) // 2

    def _parts(self) -> list[Part]:
        m, K, T = self.n_items, self.most_factors, self.n_rounds
        users = [] if self.crowd is not None else [Part(USERS, _SHARES[USERS], 1, 1)]
        left = 1 - sum(part.share for part in users)
        if not K:
            return [*users, Part(POPULARITY, left, 1, m)]
        share = popularity_share(self.budget.epsilon)
        left -= share
        triangle = (K + 1) * (K + 2) // 2
        return [
            *users,
            Part(POPULARITY, share, 1, m),
            Part(MOMENTS, _IMPLICIT_MOMENT_SHARE * left, T, T * triangle),
            Part(FACTORS, (1 - _IMPLICIT_MOMENT_SHARE) * left, T, T * m * (K + 1)),
        ]

    def stages(self) -> tuple[Stage, ...]:
        """Return the parts of the run, in order; together they make every release once."""
        counts = (USERS, POPULARITY) if self.crowd is None else (POPULARITY,)
        return Stage("the count of items", counts, essential=True), *self._round_stages()

    @property
    def height(self) -> float:
        """How much popularity counts beside the factors."""
        return popularity_height(self.budget.epsilon)


def users_sd(events: Sequence[GaussianEvent], neighbours: str) -> float:
    """Return the standard deviation of the noise on the number of people, where that is released."""
    (event,) = (event for event in events if event.what == USERS)
    return event.noise_multiplier * Headcount(USERS).sensitivity(neighbours)
