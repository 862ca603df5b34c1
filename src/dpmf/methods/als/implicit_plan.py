"""What a private run on implicit feedback will release, known before it starts.

>>> from dpmf.privacy import Budget
>>> plan = ObservedPlan(n_items=100, n_factors=2, n_rounds=3, user_ridge=1.0, alpha=1.0, budget=Budget(1))
>>> [stage.name for stage in plan.stages()], len(plan.events())
(['the count of items', 'round 1', 'round 2', 'round 3'], 4)
"""

from __future__ import annotations

from dataclasses import dataclass

from dpmf.methods.als.plan import FACTORS, MOMENTS, POPULARITY, USERS, FactorRule, PrivatePlan, Stage
from dpmf.privacy.budget import Budget
from dpmf.privacy.calibration import Part, gaussian_events
from dpmf.privacy.events import GaussianEvent

_FACTORS, _FACTOR_POINT = (4, 16), 10_000  # fewest and most; where they begin to grow, in epsilon times users
_USER_SHARE = 0.0005
_POPULARITY_SHARES = (0.2, 0.4, 0.8)  # least, for an epsilon of 1, and most
_SHARE_EXPONENT = 1.0
_LEAST_EPSILON = 1e-3  # the share is at its most long before; a power of a much smaller number would overflow
_MOMENT_SHARE = 0.01
_FORGET = 0.3  # of what earlier rounds found: it was about other factors of people
_HEIGHTS = (0.25, 0.5)  # for an epsilon of 1 and more, and of half of that and less


@dataclass(frozen=True)
class ObservedPlan(PrivatePlan):
    """What is public about a run before it starts.

    Attributes:
        n_items: the size of the catalogue.
        n_factors: K; with 0 there is popularity only. None lets the number of users decide, once it is released.
        n_rounds: how often factors are measured.
        user_ridge: the penalty on a person's factors, relative to the mean square of an item's.
        alpha: how much more an item that a person has weighs in the fit than one that they do not have.
        budget: what may be spent.
    """

    n_items: int
    n_factors: int | None
    n_rounds: int
    user_ridge: float
    alpha: float
    budget: Budget

    def events(self) -> tuple[GaussianEvent, ...]:
        """Return what will be released, with as much noise as the budget asks for."""
        m, K, T = self.n_items, self.most_factors, self.n_rounds
        users = Part(USERS, _USER_SHARE, 1, 1)
        if not K:
            return gaussian_events(self.budget, [users, Part(POPULARITY, 1 - _USER_SHARE, 1, m)])
        share = self.popularity_share
        left = 1 - _USER_SHARE - share
        triangle = (K + 1) * (K + 2) // 2
        return gaussian_events(
            self.budget,
            [
                users,
                Part(POPULARITY, share, 1, m),
                Part(MOMENTS, _MOMENT_SHARE * left, T, T * triangle),
                Part(FACTORS, (1 - _MOMENT_SHARE) * left, T, T * m * (K + 1)),
            ],
        )

    def stages(self) -> tuple[Stage, ...]:
        """Return the parts of the run, in order; together they make every release once."""
        rounds = range(self.n_rounds if self.most_factors else 0)
        return (
            Stage("the count of items", (USERS, POPULARITY)),
            *(Stage(f"round {number + 1}", (MOMENTS, FACTORS), number) for number in rounds),
        )

    @property
    def rule(self) -> FactorRule:
        """How K is chosen."""
        return FactorRule(*_FACTORS, _FACTOR_POINT)

    @property
    def forget(self) -> float:
        """How much less earlier measurements count in a round."""
        return _FORGET

    @property
    def height(self) -> float:
        """How much popularity counts beside the factors: the less there is to spend, the more."""
        least, most = _HEIGHTS
        return min(max(least / self.budget.epsilon, least), most)

    @property
    def popularity_share(self) -> float:
        """The part of the budget that popularity gets before the rounds: with little to spend, it is what remains."""
        least, usual, most = _POPULARITY_SHARES
        epsilon = max(self.budget.epsilon, _LEAST_EPSILON)
        return float(min(max(usual * epsilon**-_SHARE_EXPONENT, least), most))
