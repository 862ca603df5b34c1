"""Objective perturbation with users' factors from elsewhere: proven, in docs/proofs/objective.md.

With U fixed, the objective is quadratic, and what is added to it, η_j·v_j, moves nothing but the right-hand side of
the normal equations by η_j/2. So to perturb the objective is to perturb y_j = Σ_i u_i r_ij, and that is how it is done:
y is released once, on a grid, with noise for every item of the catalogue. All else that item factors are made of,
A_j = Σ_i u_i u_i' and the number of ratings, follows from U and from who rated what, which is public for the unit
"value of one rating".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.store import AnyRatings
from dpmf.errors import InvalidArgument
from dpmf.kernels.regression import solve_normal_equations
from dpmf.methods.als.questions import RidgeFit
from dpmf.methods.base import RunOptions
from dpmf.methods.certified.conversation import Conversation
from dpmf.methods.certified.plan import Stage
from dpmf.methods.certified.planned import Expected, PlanRecord, Shape, with_plan
from dpmf.methods.certified.questions import Floats
from dpmf.methods.certified.run import Terms, certify
from dpmf.methods.certified.script import Crowd
from dpmf.methods.checks import declared, public_facts
from dpmf.methods.foldin import folded
from dpmf.methods.objective.claim import ONE_VALUE, RELEASES, WHICH_RATED
from dpmf.methods.objective.pattern import Pattern, offset_sums
from dpmf.methods.objective.plan import SUMS, ObjectivePlan, ObjectiveScript, planned_events
from dpmf.methods.objective.profiles import (
    BIAS_PENALTY,
    PROFILES,
    Profiles,
    RatingFacts,
    RecordedProfiles,
    only_answered,
    unexplained,
)
from dpmf.model import Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.ratings import Items, Scale
from dpmf.ratings.ids import Ids

if TYPE_CHECKING:
    from dpmf.methods.objective import ObjectivePerturbation

_SIZE = 1 / 8  # of item factors, relative to the width of the scale: where noise outweighs them, they are held back
_MOST_NUMBERS = 1 << 24  # that everybody sends at once
_AS_STATED = "what the release for profiles cost is taken as stated: verify that release, too"
_TOLD = (
    "Everybody told the recommender which items they rated, without values, and users' factors are known to all who "
    "take part."
)


@dataclass(eq=False)
class PublicObjective:
    """What a run asks people for, and what it makes of noisy sums. It knows who rated what, and no rating.

    Args:
        questions: what may be asked.
        pattern: who rated what; None for whoever asks nothing, and needs the script alone.
        regularization: the penalty on item factors, relative to the number of ratings; None lets noise decide.
        n_threads: for what is computed of the pattern.
    """

    questions: ObjectiveScript
    pattern: Pattern | None
    regularization: float | None
    n_threads: int
    U: Floats | None = None
    V: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.V = np.zeros((self.plan.n_items, self.plan.most_factors), np.float32)

    @property
    def plan(self) -> ObjectivePlan:
        """What the run releases."""
        return self.questions.plan

    @property
    def script(self) -> ObjectiveScript | None:
        """What may be asked, where people answer for themselves; None for noise that is not drawn in shares."""
        return self.questions if self.plan.noise == "gaussian" else None

    def converse(self, stage: Stage) -> Conversation:
        """Ask for users' factors, or for the sums that item factors are made of."""
        assert self.pattern is not None
        asking = self.questions
        facts = RatingFacts(asking.users, asking.items, asking.scale, self.pattern, self.n_threads)
        if PROFILES in stage.releases:
            (noisy,) = yield asking.questions(stage.releases, {})
            self.U = self.plan.profiles.factors(facts, noisy)
        elif SUMS in stage.releases:
            self.U = self.plan.profiles.known(asking.users) if self.U is None else self.U
            assert self.U is not None
            yield from self._solve_items(self.U, facts)

    def _solve_items(self, U: Floats, facts: RatingFacts) -> Conversation:
        """Ask for the sums, and find the minimum; ratings are counted from the middle of the scale, a public number."""
        scale, items, n_threads = facts.scale, facts.pattern.by_item, facts.n_threads
        question = self.questions.sums(U)
        (noisy,) = yield (question,)
        U = only_answered(question.factors_on_grid(noisy.steps), noisy)
        offsets = np.full(len(U), scale.lo - scale.middle, np.float32)
        right = noisy.values + offset_sums(items, U, offsets, n_threads)
        V, K = np.empty(right.shape, np.float32), right.shape[1]
        if self.regularization is None:
            sd = noisy.sd * math.sqrt(K + 1) if self.plan.noise == "norm" else noisy.sd  # see `Mechanism.sd`
            ridge = sd / (_SIZE * question.width)
        else:
            ridge = self.regularization * len(facts.pattern)

        def solve(start: int, stop: int) -> float:
            solve_normal_equations(items.csr.pattern, start, stop, U, ridge, 0.0, right, V)
            return 0.0

        items.visit(solve, n_threads)
        self.V = V

    @property
    def ridge(self) -> Ridge:
        """The penalties of a person's own fit to the release."""
        scale = self.questions.scale
        return Ridge(BIAS_PENALTY, self.plan.most_factors * unexplained(scale.hi - scale.lo))

    def fit_after(self, stage: Stage) -> RidgeFit:
        """Return what everybody fits their own bias and factors to."""
        c = np.zeros(self.plan.n_items, np.float32)
        return RidgeFit(self.questions.scale.middle, c, self.V, self.ridge.bias, self.ridge.factors)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far."""
        return {"V": self.V, **({} if self.U is None else {"U": self.U})}

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""
        self.V, self.U = np.array(tensors["V"]), np.array(tensors["U"])


@dataclass(frozen=True, eq=False)
class ProfiledObjective:
    """The method with its profiles: a `Learner`, which is all that people who answer for themselves agree to.

    Attributes:
        method: the settings.
        profiles: where users' factors come from.
        users: everybody, in the order of their places.
        pattern: who rated what, for whoever asks; None for people, who need not know.
        n_threads: for what is computed of the pattern.
    """

    method: ObjectivePerturbation
    profiles: Profiles
    users: Ids
    pattern: Pattern | None = None
    n_threads: int = 1
    name: ClassVar[str] = "objective"
    releases: ClassVar[Sequence[str]] = RELEASES

    @classmethod
    def of(
        cls, method: ObjectivePerturbation, profiles: Profiles, ratings: AnyRatings, n_threads: int
    ) -> ProfiledObjective:
        """Return the method for these ratings; their values are not looked at."""
        return cls(method, profiles, ratings.user_ids, Pattern.of(ratings), n_threads)

    @property
    def kind(self) -> str:
        """What kind of run it is."""
        return self.method.kind

    @property
    def personal(self) -> bool:
        """Whether profiles rest on a release whose users chose an epsilon of their own."""
        return self.profiles.personal

    def unit_for(self, mode: str) -> str:
        """Return what a guarantee protects."""
        return self.method.unit_for(mode)

    def facts(self) -> dict[str, Any]:
        """Return all settings by name."""
        return self.method.facts()

    def configuration(self) -> dict[str, Any]:
        """Return the public facts for a release."""
        return {**self.method.configuration(), "n_factors": self.profiles.n_factors}

    @property
    def plan_version(self) -> int:
        """Of its plans."""
        return self.method.plan_version

    def plan_facts(self) -> dict[str, Any]:
        """Return what the plan depends on beside the configuration: what profiles cost."""
        return {"profiles": self.profiles.recorded}

    def check_declared(self, ratings: AnyRatings) -> None:
        """Refuse ratings whose scale or catalogue is not declared, and profiles that have nothing to do with them."""
        declared(ratings, self.method.items_public)
        self.profiles.check(ratings)

    def assumptions(self, catalogue: Items, crowd: Crowd | None = None) -> Sequence[str]:
        """Return what a guarantee rests on, one sentence each."""
        told = [] if crowd is None else [_TOLD]
        stated = (*public_facts(catalogue), WHICH_RATED, ONE_VALUE, *told, *self.profiles.assumptions)
        return tuple(dict.fromkeys(stated))

    def public_half(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> PublicObjective:
        """Return the public half of a run; arguments as those of `CertifiedMethod.public_half`."""
        facts, n_users = self.method.facts(), len(self.users)
        plan = ObjectivePlan(len(catalogue), n_users, self.profiles, self.method.budget, facts["noise"], crowd)
        if crowd is not None and len(plan.stages()) > 1 and n_users * plan.most_factors > _MOST_NUMBERS:
            raise InvalidArgument(
                f"profiles from a release take an answer with a row for each of {n_users} users from everybody, which "
                "is too much: use a public table"
            )
        script = ObjectiveScript(plan, self.users, catalogue.ids, scale)
        return PublicObjective(script, self.pattern, self.method.regularization, self.n_threads)

    def release_of(
        self, public: Any, catalogue: Items, scale: Scale, configuration: Mapping[str, Any], guarantee: Guarantee
    ) -> Release:
        """Return the release of what the public half found."""
        return Release(
            items=catalogue,
            scale=scale,
            mean=scale.middle,
            item_factors=public.V,
            item_biases=np.zeros(len(catalogue), np.float32),
            ridge=public.ridge,
            configuration=configuration,
            guarantee=guarantee,
        )


def fit_certified(method: ObjectivePerturbation, ratings: AnyRatings, profiles: Profiles, options: RunOptions) -> Model:
    """Return a model whose release is certified."""
    declared(ratings, method.items_public)
    profiles.check(ratings)
    learner = ProfiledObjective.of(method, profiles, ratings, options.n_threads)
    public = learner.public_half(ratings.catalogue, ratings.scale)
    settings = {**method.recorded(), "profiles": profiles.digest}
    assumptions = learner.assumptions(ratings.catalogue)
    about = {"releases": RELEASES, "personal": profiles.personal}
    found = certify(public, ratings, Terms.of("certified objective", settings, assumptions, **about), options)
    release = learner.release_of(public, ratings.catalogue, ratings.scale, learner.configuration(), found.guarantee)
    return folded(with_plan(release, learner, found), ratings, found.history, found.resources, options.cluster)


def expected_of(method: ObjectivePerturbation, n_factors: int, release: Release, record: PlanRecord) -> Expected:
    """Return what a certified release should hold; how many users there are is what its events say."""
    events, crowd = release.guarantee.events, record.crowd
    n_shares = 1 if crowd is None else crowd.n_shares
    profiles = RecordedProfiles.of(record.more.get("profiles"), n_factors, events, n_shares)
    facts = len(release.items), profiles.n_users, profiles, method.budget, method.facts()["noise"], crowd
    shape, as_stated = Shape((n_factors,), biases=False), _AS_STATED if profiles.spent else ""
    return Expected((*profiles.spent, *planned_events(*facts)), shape, as_stated)
