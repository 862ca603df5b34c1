"""What a method supplies to be certified: the public half of a conversation, and the release of what that found.

Everything else, from the ledger to the noise, is `certify`, whoever answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from dpmf.engine.store import AnyRatings
from dpmf.methods.base import Method, RunOptions
from dpmf.methods.certified.conversation import PublicHalf
from dpmf.methods.certified.run import RELEASES, Terms, certify
from dpmf.methods.certified.script import Crowd
from dpmf.methods.checks import declared, public_facts
from dpmf.methods.foldin import folded
from dpmf.model import Model, Release
from dpmf.privacy import Guarantee
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

    def certify(self, ratings: AnyRatings, options: RunOptions) -> Model:
        """Return a model whose release is certified."""
        self.check_declared(ratings)
        facts = self.facts()
        public = self.public_half(ratings.catalogue, ratings.scale)
        more: dict[str, Any] = {"cap": facts.get("cap"), "caps_fits": self.caps_fits, "releases": self.releases}
        terms = Terms.of(self.label, facts, self.assumptions(ratings.catalogue), **more)
        found = certify(public, ratings, terms, options)
        about = ratings.catalogue, ratings.scale, self.configuration()
        return folded(self.release_of(public, *about, found.guarantee), ratings, found.history, found.resources)
