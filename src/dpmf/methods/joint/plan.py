"""What a certified run that ranks and predicts will release: the releases of both halves, within one budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpmf.methods.als.plan import ALSPlan, users_sd
from dpmf.methods.certified.plan import Plan, Stage
from dpmf.methods.ease.plan import EasePlan
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.calibration import Part, gaussian_events


@dataclass(frozen=True)
class JointPlan(Plan):
    """What is public about a run before it starts.

    Attributes:
        ranking: what the half that ranks releases; it comes first.
        ratings: what the half that predicts ratings releases beside that.
        share: the part of the budget, of its gdp², that the ranking gets.
        budget: what may be spent by both. The budgets of the two plans only say what each half can find: see `part_of`.
    """

    ranking: EasePlan
    ratings: ALSPlan
    share: float
    budget: Budget

    @property
    def most_factors(self) -> int:
        """The most factors that an item may get."""
        return self.ratings.most_fitted

    @property
    def sum_size(self) -> int:
        """The most numbers that are asked for at once."""
        return max(self.ranking.sum_size, self.ratings.sum_size)

    @property
    def working_size(self) -> int:
        """How many numbers are in memory beside sums."""
        return self.ranking.working_size + self.ratings.working_size

    def events(self) -> tuple[GaussianEvent, ...]:
        """Return what will be released, with as much noise as the budget asks for."""
        return gaussian_events(
            self.budget,
            [*scaled(self.ranking.parts(), self.share), *scaled(self.ratings.parts(), 1 - self.share)],
        )

    def stages(self) -> tuple[Stage, ...]:
        """Return the parts of the run, in order: those of the ranking first, whose popularity the other half uses."""
        return *self.ranking.stages(), *self.ratings.stages()

    @property
    def users_sd(self) -> float:
        """The standard deviation of the noise on the number of people, where that is released."""
        return users_sd(self.events(), self.budget.neighbours)


def scaled(parts: Sequence[Part], share: float) -> list[Part]:
    """Return parts that together get this share of a budget.

    >>> [part.share for part in scaled([Part("counts", 1.0), Part("pairs", 3.0)], 0.5)]
    [0.125, 0.375]
    """
    total = math.fsum(part.share for part in parts)
    return [replace(part, share=share * part.share / total) for part in parts]
