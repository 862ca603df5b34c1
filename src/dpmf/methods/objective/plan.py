"""What a certified run of objective perturbation releases, and what may be asked: public before the run starts.

Sums for items get noise of gamma-distributed length, for pure ε, or Gaussian noise, which people can draw in shares.
Nothing in plan or script depends on who rated what, so whoever knows profiles, users and catalogue can rebuild both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.grid import checksum_of
from dpmf.errors import BudgetExceeded
from dpmf.methods.certified.plan import Plan, Stage
from dpmf.methods.certified.questions import Floats, Question
from dpmf.methods.certified.script import Crowd, Script, Told, numbers
from dpmf.methods.objective.items import RADIUS
from dpmf.methods.objective.profiles import PROFILES, ProfileCosts, Profiles
from dpmf.methods.objective.questions import LEVELS, ValueSums
from dpmf.privacy import Budget
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.calibration import Part, gaussian_events, norm_event
from dpmf.privacy.events import Event
from dpmf.privacy.guarantee import rounded_up
from dpmf.privacy.mechanism import PlannedEvent
from dpmf.ratings import Scale
from dpmf.ratings.ids import Ids

SUMS = "sums over raters of their factors times ratings, for every item"


def planned_events(
    n_items: int, n_users: int, profiles: ProfileCosts, budget: Budget, noise: str, crowd: Crowd | None
) -> tuple[PlannedEvent, ...]:
    """Return the events of a plan, arguments as those of `ObjectivePlan`; every share of noise is counted."""
    n_shares = 1 if crowd is None else crowd.n_shares
    coordinates = n_items * profiles.n_factors * n_shares
    if noise == "norm":
        return *profiles.events(n_users, n_shares), norm_event(budget, SUMS, coordinates=coordinates)
    return *profiles.events(n_users, n_shares), *gaussian_events(budget, [Part(SUMS, 1.0, 1, coordinates)])


@dataclass(frozen=True, eq=False)
class ObjectivePlan(Plan):
    """What is public about a run before it starts.

    Attributes:
        n_items, n_users: how many there are; both are public for this unit.
        profiles: where users' factors come from.
        budget: what item factors may cost; what profiles cost comes on top of it.
        noise: on sums for items: of gamma-distributed length ("norm"), or "gaussian".
        crowd: those who answer for themselves; None where one party holds all ratings.
    """

    n_items: int
    n_users: int
    profiles: Profiles
    budget: Budget
    noise: Literal["norm", "gaussian"] = "norm"
    crowd: Crowd | None = None

    @property
    def most_factors(self) -> int:
        """The factors that an item gets."""
        return self.profiles.n_factors

    @property
    def sum_size(self) -> int:
        """The most numbers that are asked for at once: a row for every item, or before for every user."""
        return max(self.n_items, self.n_users if len(self.events()) > 1 else 0) * self.profiles.n_factors

    def events(self) -> tuple[PlannedEvent, ...]:
        """Return what will be released, with as much noise as the budgets ask for."""
        return planned_events(self.n_items, self.n_users, self.profiles, self.budget, self.noise, self.crowd)

    def stages(self) -> tuple[Stage, ...]:
        """Return the parts of the run."""
        first = [Stage("users' factors", (PROFILES,), essential=True)] if len(self.events()) > 1 else []
        return *first, Stage("item factors", (SUMS,), 0, essential=True)

    def guaranteed(self) -> tuple[Budget, tuple[Event, ...]]:
        """Return what everything costs: items, and the profiles that they are made with."""
        events = (*self.profiles.spent, *self.events())
        total = epsilon_of(events, self.budget.delta, neighbours=self.budget.neighbours)
        if not math.isfinite(total):
            raise BudgetExceeded(
                f"profiles and items are to be paid for, and together they cost more than can be accounted for at "
                f"delta={self.budget.delta:g}: take smaller epsilons"
            )
        return replace(self.budget, epsilon=rounded_up(total)), events

    def shares(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return full weights: what is protected is a rating, not a person."""
        return np.ones(len(epsilons))


@dataclass(frozen=True, eq=False)
class ObjectiveScript(Script):
    """The questions of a run: sums for users, unless their factors are public, and then sums for items.

    Attributes:
        plan: what they release.
        users: everybody, in the order of their places.
        items: the catalogue.
        scale: of ratings.
    """

    plan: ObjectivePlan
    users: Ids
    items: Ids
    scale: Scale

    @cached_property
    def _known(self) -> Floats | None:
        return self.plan.profiles.known(self.users)

    @cached_property
    def _profiles(self) -> ValueSums | None:
        return self.plan.profiles.question(self.items, self.scale, len(self.users))

    @property
    def places(self) -> int:
        """The number of users, each of whom has a place."""
        return len(self.users)

    def told(self, releases: Sequence[str]) -> tuple[Told, ...]:
        """Return what comes with a question: users' factors, unless everybody knows them beforehand."""
        if SUMS not in releases or self._known is not None:
            return ()
        return (numbers("U", (len(self.users), self.plan.most_factors)),)

    def questions(self, releases: Sequence[str], told: Mapping[str, NDArray[Any]]) -> tuple[Question, ...]:
        """Return the question of a round."""
        if SUMS in releases:
            return (self.sums(told["U"] if self._known is None else self._known),)
        assert self._profiles is not None
        return (self._profiles,)

    def sums(self, U: Floats) -> ValueSums:
        """Return the question for items, given users' factors, which whoever answers shortens."""
        return ValueSums(SUMS, U, RADIUS, self.scale, "items", self.plan.n_items)

    def spell(self, questions: Sequence[Question]) -> dict[str, NDArray[Any]]:
        """Return what has to be told for others to make the same question."""
        (question,) = questions
        assert isinstance(question, ValueSums)
        return {"U": question.factors} if self.told((question.what,)) else {}

    def terms(self, what: str, n_users: int) -> int:
        """Return how many ratings can be in one number: of an item one per person, of a person one per item."""
        return n_users if what == SUMS else self.plan.n_items

    def constants(self) -> dict[str, Any]:
        """Return what was agreed beside plan and rounds."""
        return {
            "radius": RADIUS,
            "levels": LEVELS,
            "profiles": self.plan.profiles.digest,
            "users": f"{len(self.users)} {checksum_of((self.users.keys,)):08x}",
        }
