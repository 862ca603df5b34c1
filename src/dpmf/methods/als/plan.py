"""What a run of private alternating least squares will release, known before it starts.

>>> from dpmf.privacy import Budget
>>> plan = Plan(n_items=100, n_factors=2, n_rounds=3, per_item=False, user_ridge=0.5, budget=Budget(1))
>>> [stage.name for stage in plan.stages()][-1], len(plan.events())
('round 3', 6)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dpmf.privacy.budget import Budget
from dpmf.privacy.calibration import Part, gaussian_events
from dpmf.privacy.events import GaussianEvent

USERS, POPULARITY, WEIGHTS = "number of users", "item popularity", "item weights"
BIASES, MOMENTS, FACTORS = "item biases", "user moments", "item factors"
_FACTORS, _FACTOR_POINT = (2, 16), 20_000  # fewest and most; where they begin to grow, in epsilon times users
_NO_FACTORS = 3_000  # up to there they may be a loss, likewise
_ROUNDS = 6
_USER_RIDGE = 0.5
_HEIGHTS, _HEIGHT_POINT = (0.5, 2.0), 5_000  # least and most; where it is 1, in epsilon times users
_HEIGHT_EXPONENT = 0.5  # of that point over epsilon times users
_SHARES = {USERS: 0.0005, POPULARITY: 0.03, WEIGHTS: 0.03}
_BIAS_SHARE = 0.05
_MOMENT_SHARE = 0.001
_ITEM_MOMENT_SHARE = 0.1
_BIAS_PASSES, _LONE_BIAS_PASSES = 1, 6  # before the rounds, and where there are none


def private_defaults() -> dict[str, Any]:
    """Return what the method chooses where nothing was said, from public facts alone; factors are chosen later."""
    return {"n_epochs": _ROUNDS, "regularization": _USER_RIDGE}


class Stage(NamedTuple):
    """A part of a run that is carried out as a whole, or lost.

    Attributes:
        name: in words.
        releases: what it releases, in this order.
        round: the number of the round, from 0; None for what comes before the rounds.
    """

    name: str
    releases: tuple[str, ...]
    round: int | None = None


@dataclass(frozen=True)
class FactorRule:
    """How many factors a run has, if nobody said how many.

    Attributes:
        least, most: the fewest and the most.
        point: up to so much in epsilon times users there are the fewest; from there on they grow with its root.
        nothing: up to so much there are none: there is only noise to be found.

    >>> rule = FactorRule(2, 16, 10_000, 1_000)
    >>> [rule.number(1.0, users) for users in (500, 5_000, 40_000, 10**9)]
    [0, 2, 4, 16]
    """

    least: int
    most: int
    point: float
    nothing: float = 0.0

    def number(self, epsilon: float, n_users: float) -> int:
        """Return the number for so many users, as counted with noise."""
        mass = epsilon * n_users
        return round(min(max(self.least * math.sqrt(mass / self.point), self.least), self.most)) * (mass > self.nothing)


class PrivatePlan(ABC):
    """What plans of private runs have in common."""

    n_factors: int | None
    budget: Budget

    @property
    @abstractmethod
    def rule(self) -> FactorRule:
        """How K is chosen, if it was not given."""

    @property
    def most_factors(self) -> int:
        """The most that K may be."""
        return self.rule.most if self.n_factors is None else self.n_factors

    def factors(self, n_users: float) -> int:
        """Return K for so many users, as released."""
        return self.rule.number(self.budget.epsilon, n_users) if self.n_factors is None else self.n_factors

    @property
    def replaced(self) -> float:
        """By how much the distance of two contributions may exceed the bound on one."""
        return 2.0 if self.budget.neighbours == "replace" else 1.0

    @property
    def count_replaced(self) -> float:
        """Likewise for contributions that have no negative part: those of two people are at right angles at most."""
        return math.sqrt(2.0) if self.budget.neighbours == "replace" else 1.0


@dataclass(frozen=True)
class Plan(PrivatePlan):
    """What is public about a run before it starts.

    Attributes:
        n_items: the size of the catalogue.
        n_factors: K; with 0 there are item biases only. None lets the number of users decide, once it is released.
        n_rounds: how often factors are measured.
        per_item: whether second moments are measured for every item, not once for all.
        user_ridge: the penalty on a user's factors, relative to what the assumed spread of factors suggests.
        budget: what may be spent.
        n_users: how many people there are, if that is public; None if it is released, with noise.
        n_shares: how many shares of noise are sure to be in a sum, where everybody adds one of their own.
    """

    n_items: int
    n_factors: int | None
    n_rounds: int
    per_item: bool
    user_ridge: float
    budget: Budget
    n_users: int | None = None
    n_shares: int = 1

    def events(self) -> tuple[GaussianEvent, ...]:
        """Return what will be released, with as much noise as the budget asks for."""
        parts = [replace(part, coordinates=part.coordinates * self.n_shares) for part in self._parts()]
        return gaussian_events(self.budget, parts)

    def _parts(self) -> list[Part]:
        m, K, T = self.n_items, self.most_factors, self.n_rounds
        parts = [Part(name, _SHARES[name], 1, 1 if name == USERS else m) for name in self._counts]
        left = 1 - sum(_SHARES[name] for name in self._counts)
        if not K:
            return [*parts, Part(BIASES, left, self._passes, self._passes * m)]
        left -= _BIAS_SHARE
        triangle = K * (K + 1) // 2
        share, size = (_ITEM_MOMENT_SHARE, m * triangle) if self.per_item else (_MOMENT_SHARE, triangle)
        return [
            *parts,
            Part(BIASES, _BIAS_SHARE, self._passes, self._passes * m),
            Part(MOMENTS, share * left, T, T * size),
            Part(FACTORS, (1 - share) * left, T, T * m * (K + 1)),
        ]

    def stages(self) -> tuple[Stage, ...]:
        """Return the parts of the run, in order; together they make every release once."""
        first = Stage("the count of ratings", self._counts)
        passes = [Stage(f"pass {number + 1} over item biases", (BIASES,)) for number in range(self._passes)]
        rounds = range(self.n_rounds if self.most_factors else 0)
        return first, *passes, *(Stage(f"round {number + 1}", (MOMENTS, FACTORS), number) for number in rounds)

    @property
    def _counts(self) -> tuple[str, ...]:
        return (USERS, POPULARITY, WEIGHTS) if self.n_users is None else (POPULARITY, WEIGHTS)

    @property
    def _passes(self) -> int:
        return _BIAS_PASSES if self.most_factors else _LONE_BIAS_PASSES

    @property
    def rule(self) -> FactorRule:
        """How K is chosen."""
        return FactorRule(*_FACTORS, _FACTOR_POINT, _NO_FACTORS)

    def height(self, n_users: float) -> float:
        """How much the bias counts beside the factors: the less can be learnt, the more.

        Args:
            n_users: how many there are, as released.
        """
        least, most = _HEIGHTS
        return float(min(max((_HEIGHT_POINT / (self.budget.epsilon * n_users)) ** _HEIGHT_EXPONENT, least), most))
