"""What a certified run will release, known before it starts.

>>> FactorRule(2, 16, 10_000, 1_000).number(1.0, 40_000)
4
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.certified.personal import gaussian_shares
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.events import Event
from dpmf.privacy.mechanism import PlannedEvent


class Stage(NamedTuple):
    """A part of a run that is carried out as a whole, or lost.

    Attributes:
        name: in words.
        releases: what it releases, in this order.
        round: the number of the round, from 0; None for what comes before the rounds.
        essential: whether nothing can be learnt without it.
    """

    name: str
    releases: tuple[str, ...]
    round: int | None = None
    essential: bool = False


class Plan(ABC):
    """The releases of a run and what they cost. Subclasses are frozen dataclasses of public facts.

    Attributes:
        budget: what may be spent.
    """

    budget: Budget

    @property
    @abstractmethod
    def most_factors(self) -> int:
        """The most factors that an item may get."""

    @property
    @abstractmethod
    def sum_size(self) -> int:
        """The most numbers that are asked for at once, and the size of each thread's sum."""

    @property
    def working_size(self) -> int:
        """How many numbers are in memory, at the most, beside sums and what is made of them one for one."""
        return 0

    @abstractmethod
    def events(self) -> tuple[PlannedEvent, ...]:
        """Return what will be released, with as much noise as the budget asks for."""

    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """Return the parts of the run, in order; together they make every release once."""

    def guaranteed(self) -> tuple[Budget, tuple[Event, ...]]:
        """Return the budget of everything that the guarantee covers, and its events: usually those of this run."""
        return self.budget, self.events()

    def shares(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what part of the full weight users have who want to pay this much at most."""
        events = self.events()
        gaussian = [event for event in events if isinstance(event, GaussianEvent)]
        assert len(gaussian) == len(events)
        return gaussian_shares(epsilons, self.budget, gaussian)


@dataclass(frozen=True)
class FactorRule:
    """How many factors a run has, if nobody gave a number.

    Attributes:
        least, most: the fewest and the most.
        point: up to this, in epsilon times users, there are the fewest; from there on they grow with its root.
        nothing: up to this there are none: there is only noise to be found.

    >>> rule = FactorRule(2, 16, 10_000, 1_000)
    >>> [rule.number(1.0, users) for users in (500, 5_000, 40_000, 10**9)]
    [0, 2, 4, 16]
    """

    least: int
    most: int
    point: float
    nothing: float = 0.0

    @classmethod
    def exactly(cls, n_factors: int) -> FactorRule:
        """Return the rule that always gives one number."""
        return cls(n_factors, n_factors, 1.0, -1.0)

    @property
    def is_settled(self) -> bool:
        """Whether it always gives one number."""
        return self.least == self.most and self.nothing < 0

    def settled(self, epsilon: float, n_users: int) -> FactorRule:
        """Return the rule that always gives the number for a count of users that is public."""
        return self.exactly(self.number(epsilon, n_users))

    def number(self, epsilon: float, n_users: float) -> int:
        """Return the number of factors for a noisy count of users."""
        mass = epsilon * n_users
        return round(min(max(self.least * math.sqrt(mass / self.point), self.least), self.most)) * (mass > self.nothing)
