"""What a method supplies to be certified: the public half of a conversation, and the release of what that found.

Everything else, from the ledger to the noise, is `certify`, whoever answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol

from dpmf.engine.store import AnyRatings
from dpmf.errors import InvalidArgument
from dpmf.methods.base import Method, RunOptions
from dpmf.methods.certified.conversation import PublicHalf
from dpmf.methods.certified.plan import Plan
from dpmf.methods.certified.planned import Expected, PlanRecord, Shape, with_plan
from dpmf.methods.certified.run import RELEASES, Terms, certify
from dpmf.methods.certified.script import Crowd
from dpmf.methods.checks import declared, public_facts
from dpmf.methods.foldin import folded
from dpmf.model import Model, Release
from dpmf.privacy import Budget, Guarantee
from dpmf.ratings import Items, Scale


class Learner(Protocol):
    """What people who answer for themselves agree to compute: a `CertifiedMethod`, or a method with its profiles."""

    @property
    def name(self) -> str:
        """Of the method."""

    @property
    def kind(self) -> str:
        """What kind of run it is, as of `Method`."""

    @property
    def releases(self) -> Sequence[str]:
        """What is published, a few words each."""

    @property
    def personal(self) -> bool:
        """Whether it builds on a release whose users chose an epsilon of their own."""

    @property
    def plan_version(self) -> int:
        """Of its plans, as of `Method`."""

    def plan_facts(self) -> dict[str, Any]:
        """Return what its plan depends on that is not in the configuration, in JSON values."""

    def unit_for(self, mode: str) -> str:
        """Return what a guarantee of this mode protects: "user" or "rating"."""

    def facts(self) -> dict[str, Any]:
        """Return all settings by name."""

    def configuration(self) -> dict[str, Any]:
        """Return the public facts for a release."""

    def public_half(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> PublicHalf:
        """Return the public half of a run, as of `CertifiedMethod`."""

    def release_of(
        self, public: Any, catalogue: Items, scale: Scale, configuration: Mapping[str, Any], guarantee: Guarantee
    ) -> Release:
        """Return the release of what the public half found."""

    def assumptions(self, catalogue: Items, crowd: Crowd | None = None) -> Sequence[str]:
        """Return what a guarantee rests on, one sentence each."""

    def check_declared(self, ratings: AnyRatings) -> None:
        """Refuse ratings whose scale or catalogue is not declared."""


@dataclass(frozen=True)
class Given:
    """What a run is given that is public, beside its settings.

    Attributes:
        prepare: takes the public half of a run, and returns it ready.
        assumptions: what the guarantee rests on, one sentence each.
        record: what the release says of it, in JSON values.
        before: the guarantee of a release that this one starts from: the guarantee is that of both.
        complete: takes the release that was made, and returns it with what is kept of that one.
    """

    prepare: Callable[[Any], Any] = lambda public: public
    assumptions: Sequence[str] = ()
    record: Mapping[str, Any] = field(default_factory=dict)
    before: Guarantee | None = None
    complete: Callable[[Release], Release] = lambda release: release


@dataclass(frozen=True)
class CertifiedMethod(Method):
    """A method with a mode that is certified.

    Attributes:
        caps_fits: whether ratings beyond a user's cap do not count in the user's own fit either.
        releases, personal: as of `Learner`.
    """

    caps_fits: ClassVar[bool] = True
    releases: ClassVar[Sequence[str]] = RELEASES
    personal: ClassVar[bool] = False

    @abstractmethod
    def public_half(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> PublicHalf:
        """Return the public half of a run.

        Args:
            catalogue: of items.
            scale: of ratings.
            crowd: people who answer for themselves; None where one party holds all ratings.
        """

    @abstractmethod
    def release_of(
        self, public: Any, catalogue: Items, scale: Scale, configuration: Mapping[str, Any], guarantee: Guarantee
    ) -> Release:
        """Return the release of what the public half found."""

    def plan_of(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> Plan:
        """Return the plan of a run; arguments as those of `public_half`, whose plan it is."""
        return self.public_half(catalogue, scale, crowd).plan

    def shape_of(self, plan: Any, headcount: float | None) -> Shape:
        """Return the sizes of what a plan releases, given the number of users as released, if it was."""
        return Shape((plan.most_factors,))

    def plan_facts(self) -> dict[str, Any]:
        """Return nothing: the plan follows from the configuration."""
        return {}

    @classmethod
    def expected(cls, settings: Mapping[str, Any], release: Release, record: PlanRecord) -> Expected:
        """Return what a certified release of these settings should hold, by the plan that a run would make."""
        if record.more:
            raise InvalidArgument(f"field {min(record.more)!r} in the record of its plan is unknown")
        given: dict[str, Any] = {"budget": budget_of(release, record), **known_settings(cls, settings)}
        method = cls(**given)
        plan = method.plan_of(release.items, release.scale, record.crowd)
        return Expected(plan.guaranteed()[1], method.shape_of(plan, record.headcount))

    def assumptions(self, catalogue: Items, crowd: Crowd | None = None) -> Sequence[str]:
        """Return what a guarantee rests on, one sentence each; arguments as those of `public_half`."""
        return public_facts(catalogue)

    @property
    def label(self) -> str:
        """What checkpoints call a certified run of this method."""
        return f"certified {self.name}"

    def check_declared(self, ratings: AnyRatings) -> None:
        """Refuse ratings whose scale or catalogue is not declared."""
        declared(ratings, self.facts()["items_public"], needs_scale=not self.is_implicit)

    def certify(self, ratings: AnyRatings, options: RunOptions, given: Given | None = None) -> Model:
        """Return a model whose release is certified.

        Args:
            ratings, options: of the run.
            given: what is public beside the settings, if anything is.
        """
        self.check_declared(ratings)
        facts, given = self.facts(), given or Given()
        public = given.prepare(self.public_half(ratings.catalogue, ratings.scale))
        more: dict[str, Any] = {"cap": facts.get("cap"), "caps_fits": self.caps_fits, "releases": self.releases}
        assumptions = [*self.assumptions(ratings.catalogue), *given.assumptions]
        terms = Terms.of(self.label, {**facts, **given.record}, assumptions, **more)
        if given.before is not None:  # refused, if at all, before anything is spent
            Guarantee.certified_by(*public.plan.guaranteed(), releases=self.releases).after(given.before)
        found = certify(public, ratings, terms, options)
        if given.before is not None:
            found = replace(found, guarantee=found.guarantee.after(given.before))
        about = ratings.catalogue, ratings.scale, {**self.configuration(), **given.record}
        release = with_plan(given.complete(self.release_of(public, *about, found.guarantee)), self, found)
        return folded(release, ratings, found.history, found.resources, options.cluster)


def budget_of(release: Release, record: PlanRecord) -> Budget:
    """Return the budget that a run had."""
    guarantee = release.guarantee
    assert guarantee.delta is not None
    assert guarantee.unit is not None
    assert guarantee.neighbours is not None
    return Budget.recorded(record.epsilon, guarantee.delta, guarantee.unit, guarantee.neighbours)


def known_settings(method: type[Method], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings, or refuse one that a method does not have."""
    known = {field.name for field in fields(method)} - {"budget", "noise_seed"}
    for name in settings:
        if name not in known:
            raise InvalidArgument(f"{method.name} has no setting {name!r} in this version of dpmf")
    return dict(settings)
