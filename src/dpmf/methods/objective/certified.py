"""Objective perturbation with users' factors from elsewhere: proven, in docs/proofs/objective.md.

With U fixed, the objective is quadratic, and what is added to it, η_j·v_j, moves nothing but the right-hand side of
the normal equations by η_j/2. So to perturb the objective is to perturb y_j = Σ_i u_i r_ij, and that is how it is done:
y is released once, on a grid, with noise of gamma-distributed length for every item of the catalogue. All else that
item factors are made of, A_j = Σ_i u_i u_i' and the number of ratings, follows from U and from who rated what, which is
public for the unit "value of one rating".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.store import AnyRatings
from dpmf.errors import BudgetExceeded
from dpmf.kernels.regression import solve_normal_equations
from dpmf.methods.als.questions import RidgeFit
from dpmf.methods.base import RunOptions
from dpmf.methods.certified.conversation import Conversation
from dpmf.methods.certified.plan import Plan, Stage
from dpmf.methods.certified.questions import Floats
from dpmf.methods.certified.run import Terms, certify
from dpmf.methods.checks import declared, public_facts
from dpmf.methods.foldin import folded
from dpmf.methods.objective.claim import ONE_VALUE, RELEASES, WHICH_RATED
from dpmf.methods.objective.items import RADIUS
from dpmf.methods.objective.pattern import Pattern, offset_sums
from dpmf.methods.objective.profiles import BIAS_PENALTY, PROFILES, Profiles, RatingFacts, unexplained
from dpmf.methods.objective.questions import ValueSums
from dpmf.model import Model, Release, Ridge
from dpmf.privacy import Budget
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.calibration import norm_event
from dpmf.privacy.events import Event
from dpmf.privacy.guarantee import rounded_up
from dpmf.privacy.mechanism import PlannedEvent

if TYPE_CHECKING:
    from dpmf.methods.objective import ObjectivePerturbation

SUMS = "sums over raters of their factors times ratings, for every item"
_SIZE = 1 / 8  # of item factors, relative to the width of the scale: where noise outweighs them, they are held back


@dataclass(frozen=True, eq=False)
class ObjectivePlan(Plan):
    """What is public about a run before it starts.

    Attributes:
        n_items, n_users: how many there are; both are public for this unit.
        profiles: where users' factors come from.
        budget: what item factors may cost; what profiles cost comes on top of it.
    """

    n_items: int
    n_users: int
    profiles: Profiles
    budget: Budget

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
        coordinates = self.n_items * self.profiles.n_factors
        return *self.profiles.events(self.n_users), norm_event(self.budget, SUMS, coordinates=coordinates)

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


@dataclass(eq=False)
class PublicObjective:
    """What a run asks people for, and what it makes of noisy sums. It knows who rated what, and no rating.

    Args:
        plan: the public facts.
        ratings: what is public about the ratings.
        regularization: the penalty on item factors, relative to the number of ratings; None lets noise decide.
    """

    plan: ObjectivePlan
    ratings: RatingFacts
    regularization: float | None
    U: Floats | None = None
    V: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.V = np.zeros((self.plan.n_items, self.plan.most_factors), np.float32)

    @property
    def script(self) -> None:
        """None: there is no sampler here that draws noise of gamma-distributed length in shares."""

    def converse(self, stage: Stage) -> Conversation:
        """Ask for users' factors, or for the sums that item factors are made of."""
        if self.U is None:
            self.U = yield from self.plan.profiles.factors(self.ratings)
        if SUMS in stage.releases:
            yield from self._solve_items(self.U)

    def _solve_items(self, U: Floats) -> Conversation:
        """Ask for the sums, and find the minimum; ratings are counted from the middle of the scale, a public number."""
        scale, items, n_threads = self.ratings.scale, self.ratings.pattern.by_item, self.ratings.n_threads
        question = ValueSums(SUMS, U, RADIUS, scale, "items", self.plan.n_items)
        (noisy,) = yield (question,)
        U = question.factors_on_grid(noisy.steps)
        offsets = np.full(len(U), scale.lo - scale.middle, np.float32)
        right = noisy.values + offset_sums(items, U, offsets, n_threads)
        V, K = np.empty(right.shape, np.float32), right.shape[1]
        if self.regularization is None:
            ridge = noisy.sd * math.sqrt(K + 1) / (_SIZE * question.width)  # sd is a scale: see `Mechanism.sd`
        else:
            ridge = self.regularization * len(self.ratings.pattern)

        def solve(start: int, stop: int) -> float:
            solve_normal_equations(items.csr.pattern, start, stop, U, ridge, 0.0, right, V)
            return 0.0

        items.visit(solve, n_threads)
        self.V = V

    @property
    def ridge(self) -> Ridge:
        """The penalties of a person's own fit to the release."""
        width = self.ratings.scale.hi - self.ratings.scale.lo
        return Ridge(BIAS_PENALTY, self.plan.most_factors * unexplained(width))

    def fit_after(self, stage: Stage) -> RidgeFit:
        """Return what everybody fits their own bias and factors to."""
        c = np.zeros(self.plan.n_items, np.float32)
        return RidgeFit(self.ratings.scale.middle, c, self.V, self.ridge.bias, self.ridge.factors)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far."""
        return {"V": self.V, **({} if self.U is None else {"U": self.U})}

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""
        self.V, self.U = np.array(tensors["V"]), np.array(tensors["U"])


def fit_certified(method: ObjectivePerturbation, ratings: AnyRatings, profiles: Profiles, options: RunOptions) -> Model:
    """Return a model whose release is certified."""
    declared(ratings, method.items_public)
    profiles.check(ratings)
    plan = ObjectivePlan(ratings.n_items, ratings.n_users, profiles, method.budget)
    ids = ratings.user_ids, ratings.catalogue.ids
    facts = RatingFacts(*ids, ratings.scale, Pattern.of(ratings), options.n_threads)
    public = PublicObjective(plan, facts, method.regularization)
    assumptions = (*public_facts(ratings.catalogue), WHICH_RATED, ONE_VALUE, *profiles.assumptions)
    settings = {**method.facts(), "profiles": profiles.digest}
    terms = Terms.of(
        "certified objective",
        settings,
        tuple(dict.fromkeys(assumptions)),
        releases=RELEASES,
        personal=profiles.personal,
    )
    found = certify(public, ratings, terms, options)
    release = Release(
        items=ratings.catalogue,
        scale=ratings.scale,
        mean=ratings.scale.middle,
        item_factors=public.V,
        item_biases=np.zeros(ratings.n_items, np.float32),
        ridge=public.ridge,
        configuration={**method.configuration(), "n_factors": profiles.n_factors},
        guarantee=found.guarantee,
    )
    return folded(release, ratings, found.history, found.resources)
