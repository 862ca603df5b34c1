"""One release that ranks and predicts ratings: EASE and alternating least squares under one budget.

Lists are ordered by the ranking, and expected ratings come from the rating model. Both halves of a certified run spend
a share of one budget, so that there is one guarantee, one entry in a ledger and one release. The number of people and
the popularity of items are measured once, for both. With an infinite epsilon both are plain, and nothing is private.

>>> from dpmf.privacy import Budget
>>> from dpmf.ratings.synthetic import make
>>> model = Joint(budget=Budget(epsilon=20)).fit(make(300, 40), n_threads=1)
>>> model.release.ranks, model.release.predicts_ratings
(True, True)
>>> print(model.guarantee)
(20.0, 1e-06)-DP per user, add-remove, certified; releases item factors, item biases, the ranking of items and the \
configuration
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dpmf.engine.store import AnyRatings
from dpmf.errors import InvalidArgument
from dpmf.methods.als import ALS
from dpmf.methods.als.certified import PublicALS
from dpmf.methods.als.descriptions import DESCRIBED
from dpmf.methods.als.plan import ALSPlan
from dpmf.methods.als.popularity import with_columns
from dpmf.methods.base import RunOptions
from dpmf.methods.certified.method import CertifiedMethod
from dpmf.methods.certified.planned import Shape
from dpmf.methods.certified.script import Crowd
from dpmf.methods.checks import check_private
from dpmf.methods.ease import EASE
from dpmf.methods.joint.certified import PublicJoint
from dpmf.methods.joint.defaults import LEAST_SHARE, MEASURED_FACTORS, MOST_GIVEN, ranking_share
from dpmf.methods.joint.plan import JointPlan
from dpmf.model import Model, Release
from dpmf.model.learnt import LEARNT
from dpmf.privacy import Budget, Guarantee
from dpmf.privacy.calibration import part_of
from dpmf.ratings import Items, Scale
from dpmf.ratings.features import features_of, further_of


@dataclass(frozen=True)
class Joint(CertifiedMethod):
    """Configuration of the method: public facts only.

    Attributes:
        budget: how much privacy loss is allowed; `Budget(math.inf)` says explicitly that nothing has to be private.
        share: the part of the budget that the ranking gets, from 0.01 to 0.99; the rating model gets the rest. Shares
            are of gdp², by which noise adds up. None chooses. Without a finite epsilon it means nothing.
        head, n_users, links: of the ranking, as those of `EASE`.
        n_factors, n_epochs, regularization: of the rating model, as those of `ALS`.
        traits: whether people's own tastes go by what the list of items says, such as genres and years, too.
        items_public: whether item ids that were found in the data are asserted to be a public list.
        seed: fixes the public start of the rating model.
        noise_seed: research only; the same noise every time, and no guarantee.
    """

    name: ClassVar[str] = "joint"
    modes: ClassVar[tuple[str, ...]] = ("certified",)
    turn: ClassVar[str] = "round"
    releases: ClassVar[Sequence[str]] = ("item factors", "item biases", "the ranking of items", "the configuration")

    n_factors: int | None = None
    n_epochs: int | None = None
    budget: Budget = field(kw_only=True)
    share: float | None = None
    head: int | None = None
    n_users: int | None = None
    regularization: float | None = None
    links: bool | None = None
    traits: bool = True
    items_public: bool = False
    seed: int = 0
    noise_seed: int | None = None

    def __post_init__(self) -> None:
        check_private(self)
        if self.share is not None and not (
            isinstance(self.share, int | float) and LEAST_SHARE <= self.share <= 1 - LEAST_SHARE
        ):
            ends = f"{LEAST_SHARE:g} to {1 - LEAST_SHARE:g}"
            raise InvalidArgument(
                f"share={self.share!r} should be a number from {ends}: the ranking's part of the budget"
            )
        if self.budget.unit != "user":
            raise InvalidArgument(f"unit={self.budget.unit!r}: Joint protects users, which protects ratings too")
        self._rating_model(self.budget), self._ranking(self.budget)  # each refuses what it cannot use

    def _rating_model(self, budget: Budget) -> ALS:
        names = ("n_factors", "n_epochs", "regularization", "traits", "items_public", "seed", "noise_seed")
        return ALS(budget=budget, **{name: getattr(self, name) for name in names})

    def _ranking(self, budget: Budget) -> EASE:
        names = ("head", "n_users", "links", "items_public", "seed", "noise_seed")
        return EASE(budget=budget, **{name: getattr(self, name) for name in names})

    @property
    def halves(self) -> tuple[EASE, ALS]:
        """The ranking and the rating model, each with its part of the budget: choices follow from what it can find."""
        if not self.budget.is_finite:
            return self._ranking(self.budget), self._rating_model(self.budget)
        share = self.facts()["share"]
        return self._ranking(part_of(self.budget, share)), self._rating_model(part_of(self.budget, 1 - share))

    @property
    def kind(self) -> str:
        """What kind of run it is: "certified", or "none" with an infinite epsilon."""
        return "certified" if self.budget.is_finite else "none"

    @property
    def n_turns(self) -> int | None:
        """How many rounds there are at most."""
        return self._rating_model(self.budget).n_turns

    @property
    def most_factors(self) -> int:
        """The number of factors, or the most that a private run chooses."""
        most = self._rating_model(self.budget).most_factors
        return max(most, MOST_GIVEN) if self.kind == "certified" and self.n_factors is None else most

    @property
    def folds_in(self) -> bool:
        """Whether a user is known by their own ratings alone: always."""
        return True

    @property
    def spreads(self) -> bool:
        """Whether it can run on the workers of a cluster: always."""
        return True

    def without_factors(self) -> Joint | EASE:
        """Return a run of item biases and popularity alone; without privacy, where biases are no reference, of that."""
        if self.kind == "certified":
            return replace(self, n_factors=0, head=0, traits=False)
        return self._ranking(self.budget).without_factors()

    def usual(self) -> Mapping[str, Any]:
        """Return what is chosen for fields that are left open; a certified run chooses factors and head itself."""
        usual = self._rating_model(self.budget).usual()
        share = ranking_share(self.budget.epsilon, self.n_users) if self.budget.is_finite else None
        return {**usual, "share": share}

    def configuration(self) -> dict[str, Any]:
        """Return the public facts for a release."""
        facts = super().configuration()
        if self.budget.is_finite:
            return facts
        del facts["traits"]
        return {**facts, "share": None}

    def _train(self, ratings: AnyRatings, options: RunOptions) -> Model:
        if self.kind == "certified":
            about = ratings.users_about if self.n_users is None else self.n_users
            return replace(self, n_users=about).certify(ratings, options)
        ranking, rating_model = self.halves
        rated = rating_model._train(ratings, options)
        ranked = ranking._train(ratings, replace(options, callbacks=(), checkpoint=None))
        release = combined(rated.release, ranked.release, self.configuration())
        return replace(rated, release=release, seen_weights=ranked.seen_weights)

    def public_half(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> PublicJoint:
        """Return the public half of a certified run."""
        ranking, rating_model = self.halves
        first = ranking.public_half(catalogue, scale, crowd)
        known = tuple(part.what for part in first.plan.parts())
        settings, left = rating_model.resolve(), rating_model.budget
        rule, given = (settings.factors, 0) if self.n_factors is not None else (MEASURED_FACTORS, MOST_GIVEN)
        if crowd is not None:
            rule = rule.settled(left.epsilon, crowd.n_users)
        facts = len(catalogue), rule, settings.n_epochs, settings.regularization, left, crowd
        plan = ALSPlan(*facts, known=known, given=given)
        described = features_of(catalogue), further_of(catalogue)
        second = PublicALS(plan, scale, catalogue.ids.keys, self.seed, *described, with_traits=self.traits)
        return PublicJoint(JointPlan(first.plan, second.plan, self.facts()["share"], self.budget), first, second)

    def shape_of(self, plan: Any, headcount: float | None) -> Shape:
        """Return the sizes of what a plan releases: of factors, those that nobody found are left out."""
        n_factors, heads = range(max(plan.most_factors, 1) + 1), plan.ranking.released_heads(headcount)
        return Shape(n_factors, n_ranked=heads, leanings=self.traits)

    def assumptions(self, catalogue: Items, crowd: Crowd | None = None) -> Sequence[str]:
        """Return what a guarantee rests on, one sentence each."""
        told = [sentence for half in self.halves for sentence in half.assumptions(catalogue, crowd)]
        return list(dict.fromkeys(told))

    def release_of(
        self, public: Any, catalogue: Items, scale: Scale, configuration: Mapping[str, Any], guarantee: Guarantee
    ) -> Release:
        """Return the release of what the public half found."""
        assert isinstance(public, PublicJoint)
        ranking, rating_model = self.halves
        facts = catalogue, scale, configuration, guarantee
        rated = rating_model.release_of(public.ratings, *facts)
        # Where people are told of factors their number is fixed, and those that nobody found are 0.
        unfound = ~rated.item_factors[:, : rated.n_measured_factors].any(axis=0)
        rated = replace(rated, item_factors=np.delete(rated.item_factors, np.flatnonzero(unfound), axis=1))
        release = combined(rated, ranking.release_of(public.ranking, *facts), configuration)
        learnt = replace(public.ratings.learnt(), popular=public.ranking.learnt().popular)
        return replace(release, configuration={**release.configuration, LEARNT: learnt.record()}, guarantee=guarantee)


def combined(rated: Release, ranked: Release, configuration: Mapping[str, Any]) -> Release:
    """Return one release of a rating model and a ranking."""
    found = {"n_factors": rated.n_measured_factors, "head": ranked.configuration["head"]}
    found |= {name: rated.configuration[name] for name in (DESCRIBED,) if name in rated.configuration}
    return replace(with_columns(rated), ranking=ranked.ranking, configuration={**configuration, **found})
