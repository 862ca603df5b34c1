"""EASE, the ranking method: what people like together says what they would like next (Steck 2019).

A person's items score all others through an item-item matrix, the closed-form solution of predicting each item from all
others. It is made of one sum over people: which items they like together. With a finite epsilon that sum is released
with noise, once, and nothing else that depends on a person leaves but how popular items are, and how many people there
are. With an infinite epsilon it is plain EASE, and not private. It ranks; it predicts no ratings.

>>> from dpmf.privacy import Budget
>>> from dpmf.ratings.synthetic import make
>>> model = EASE(budget=Budget(epsilon=20)).fit(make(300, 40), n_threads=1)
>>> print(model.guarantee)
(20.0, 1e-06)-DP per user, add-remove, certified; releases the ranking of items and the configuration
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from dpmf.engine.store import AnyRatings
from dpmf.errors import InvalidArgument
from dpmf.methods.base import RunOptions
from dpmf.methods.certified.method import CertifiedMethod
from dpmf.methods.certified.planned import Shape
from dpmf.methods.certified.script import Crowd
from dpmf.methods.checks import check_private, public_facts, whole
from dpmf.methods.ease.certified import PublicEase
from dpmf.methods.ease.defaults import LEAST_COVERAGE, MOST_HEAD, ramp_of
from dpmf.methods.ease.plain import fit_plain
from dpmf.methods.ease.plan import EasePlan
from dpmf.methods.ease.ranking import ranking_of, ranking_release
from dpmf.model import Model, Release
from dpmf.model.learnt import LEARNT
from dpmf.privacy import Budget, Guarantee
from dpmf.ratings import Items, Scale
from dpmf.ratings.features import features_of, traits_of
from dpmf.ratings.titles import Links, catalogue_links

_USERS_DECLARED = "The approximate number of users is public: it was declared, not counted."
_TITLES_PUBLIC = "Titles of items are public: they say which pairs of items are linked."
_HEAD_CHOSEN = "The size of the head was not declared: it follows from the number of users as released, with noise."


@dataclass(frozen=True)
class EASE(CertifiedMethod):
    """Configuration of the method: public facts only.

    Attributes:
        budget: how much privacy loss is allowed; `Budget(math.inf)` says explicitly that nothing has to be private.
        head: how many items pairs are measured of, those that most people like; all others are ranked by popularity,
            after them. 0 ranks everything by popularity. None chooses.
        n_users: about how many users there are, if that is public: choosing the head then costs nothing. None takes
            the number that was declared with the ratings, if any.
        feedback: whether items count by their ratings ("explicit"), or all that a user has alike ("implicit").
        links: whether pairs of items with similar titles are measured on their own, with a share of the budget. None
            does so if enough of the catalogue is linked.
        items_public: whether item ids that were found in the data are asserted to be a public list.
        seed: not used; there is nothing to choose at random.
        noise_seed: research only; the same noise every time, and no guarantee.
    """

    name: ClassVar[str] = "ease"
    modes: ClassVar[tuple[str, ...]] = ("certified",)
    feedbacks: ClassVar[tuple[str, ...]] = ("explicit", "implicit")
    releases: ClassVar[Sequence[str]] = ("the ranking of items", "the configuration")

    budget: Budget = field(kw_only=True)
    head: int | None = None
    n_users: int | None = None
    feedback: Literal["explicit", "implicit"] = "explicit"
    links: bool | None = None
    items_public: bool = False
    seed: int = 0
    noise_seed: int | None = None

    def __post_init__(self) -> None:
        check_private(self)
        if self.head is not None:
            whole("head", self.head, least=0, most=MOST_HEAD)
        if self.n_users is not None:
            whole("n_users", self.n_users)
        if self.links is not None and not isinstance(self.links, bool):
            raise InvalidArgument(f"links={self.links!r} is not known: choose True or False, or leave it out")
        if self.feedback not in ("explicit", "implicit"):
            raise InvalidArgument(f"feedback={self.feedback!r} is not known: choose explicit or implicit")
        if self.budget.unit != "user":
            raise InvalidArgument(f"unit={self.budget.unit!r}: EASE protects users, which protects ratings too")

    @property
    def kind(self) -> str:
        """What kind of run it is: "certified", or "none" with an infinite epsilon."""
        return "certified" if self.budget.is_finite else "none"

    @property
    def is_implicit(self) -> bool:
        """Whether it counts which items people have, not how they rate them."""
        return self.feedback == "implicit"

    @property
    def n_turns(self) -> int:
        """The number of rounds: none, all is measured once."""
        return 0

    @property
    def most_factors(self) -> int:
        """The factors of a user: none."""
        return 0

    @property
    def folds_in(self) -> bool:
        """Whether a user is known by their own ratings alone: always."""
        return True

    @property
    def spreads(self) -> bool:
        """Whether it can run on the workers of a cluster: always, both kinds of runs ask people for sums."""
        return True

    def without_factors(self) -> EASE:
        """Return a run of popularity alone."""
        return replace(self, head=0)

    def _train(self, ratings: AnyRatings, options: RunOptions) -> Model:
        if self.kind == "certified":
            about = ratings.users_about if self.n_users is None else self.n_users
            return replace(self, n_users=about).certify(ratings, options)
        if self.noise_seed is not None:
            raise InvalidArgument("noise_seed means nothing with an infinite epsilon: leave it out, or give a budget")
        return fit_plain(ratings, self.head, self.is_implicit, self.configuration(), options)

    def public_half(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> PublicEase:
        """Return the public half of a certified run."""
        links = self._links_of(catalogue)
        plan = self._plan(catalogue, links, crowd)
        ramp = ramp_of(scale, implicit=self.is_implicit)
        return PublicEase(plan, ramp, links if plan.measures_links else None, traits_of(features_of(catalogue)))

    def _plan(self, catalogue: Items, links: Links | None, crowd: Crowd | None) -> EasePlan:
        n_links = 0 if links is None else len(links)
        return EasePlan(len(catalogue), self.head, self.n_users, self.budget, crowd, n_links)

    def _links_of(self, catalogue: Items) -> Links | None:
        """Return the links of a catalogue, if there are any and they are to be used."""
        if self.links is False or self.head == 0:
            return None
        found = catalogue_links(catalogue)
        enough = self.links or found.coverage(len(catalogue)) >= LEAST_COVERAGE
        return found if enough and len(found) else None

    def plan_of(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> EasePlan:
        """Return the plan of a run."""
        return self._plan(catalogue, self._links_of(catalogue), crowd)

    def shape_of(self, plan: Any, headcount: float | None) -> Shape:
        """Return the sizes of what a plan releases."""
        return Shape((0,), biases=False, n_ranked=plan.released_heads(headcount))

    def assumptions(self, catalogue: Items, crowd: Crowd | None = None) -> Sequence[str]:
        """Return what a guarantee rests on, one sentence each."""
        declared = [] if self.n_users is None else [_USERS_DECLARED]
        chosen = [_HEAD_CHOSEN] if self.head is None and self.n_users is None and crowd is None else []
        measured = self._plan(catalogue, self._links_of(catalogue), crowd).measures_links
        linked = [_TITLES_PUBLIC] if measured else []
        return [*public_facts(catalogue), *declared, *chosen, *linked]

    def release_of(
        self, public: Any, catalogue: Items, scale: Scale, configuration: Mapping[str, Any], guarantee: Guarantee
    ) -> Release:
        """Return the release of what the public half found."""
        assert isinstance(public, PublicEase)
        ranking = ranking_of(public)
        found = {**configuration, "head": len(ranking.items), LEARNT: public.learnt().record()}
        return ranking_release(catalogue, scale, ranking, found, guarantee, implicit=self.is_implicit)
