"""What is audited: a certified method on some ratings, with the mechanism and the answerer that it would really have.

A `Pair` is what the guarantee protects: somebody who may or may not be there, one person instead of another, or one
rating with another value. `Subject` puts either half of a pair among the others, and carries out the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.audit.persons import Person, joined, table_of
from dpmf.engine.store import AnyRatings
from dpmf.methods.base import Method
from dpmf.methods.certified.answer import Answerer, Asked, RatingsAnswerer
from dpmf.methods.certified.conversation import PublicHalf
from dpmf.methods.certified.method import CertifiedMethod, Learner
from dpmf.methods.certified.questions import Integers
from dpmf.methods.objective import ObjectivePerturbation
from dpmf.methods.objective.certified import ProfiledObjective
from dpmf.methods.objective.profiles import Profiles
from dpmf.privacy import Budget, PoissonGaussianEvent
from dpmf.privacy.mechanism import Mechanism, PlannedEvent
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings
from dpmf.ratings.ids import Ids
from dpmf.ratings.trim import trimmed
from dpmf.streams import generator

MakeMechanism = Callable[[Sequence[PlannedEvent], Noise], Mechanism]
MakeAnswerer = Callable[..., Answerer]
_PROFILE_FACTORS = 3
_AUDITED = {"n_factors": 4}  # where a run would choose by its size, so that all that is planned is asked for


class Pair(NamedTuple):
    """Two neighbours: who is there in the first world and who in the second; None for nobody."""

    first: Person | None
    second: Person | None


@dataclass(frozen=True, eq=False)
class Subject:
    """A method on ratings.

    Attributes:
        method: what is audited, with its budget; certified.
        crowd: the ratings of everybody else.
        mechanism: makes the mechanism of a run, of the plan and a source of noise.
        answerer: makes whoever sums answers, as `RatingsAnswerer` is made.
        seed: of worlds and persons; never of noise.
        n_targets: how many people there may be beside the crowd.
    """

    method: Method
    crowd: Ratings
    mechanism: MakeMechanism = Mechanism
    answerer: MakeAnswerer = RatingsAnswerer
    seed: int = 0
    n_targets: int = 1

    @classmethod
    def of(cls, method: Method, crowd: Ratings, **more: Any) -> Subject:
        """Return a subject in which all that is planned is asked for: what a run would choose by its size is set."""
        if isinstance(method, ObjectivePerturbation):
            return cls(method, crowd, **more)
        given = method.facts()
        chosen = {name: value for name, value in _AUDITED.items() if name in given and given[name] is None}
        if "head" in given:
            chosen["head"] = crowd.n_items if given["head"] is None else min(given["head"], crowd.n_items)
        return cls(replace(method, **chosen), crowd, **more)

    @property
    def budget(self) -> Budget:
        """What is guaranteed."""
        budget: Budget = self.method.facts()["budget"]
        return budget

    @property
    def protects_values(self) -> bool:
        """Whether what is protected is the value of one rating, not a person."""
        return self.budget.unit == "rating"

    @cached_property
    def ids(self) -> Ids:
        """Of the crowd and the people beside it."""
        more = [f"audited person {number}" for number in range(self.n_targets)]
        array = np.empty(self.crowd.n_users + len(more), object)
        array[:] = [*map(str, self.crowd.user_ids), *more]
        return Ids(array)

    @cached_property
    def profiles(self) -> Profiles:
        """Public factors of everybody, for the method that needs some."""
        rng = generator(self.seed, "audit profiles")
        factors = rng.normal(size=(len(self.ids), _PROFILE_FACTORS))
        return Profiles.public(self.ids.array, factors / np.linalg.norm(factors, axis=1, keepdims=True))

    def learner(self, ratings: Ratings) -> Learner:
        """Return the method as people agree to it."""
        if isinstance(self.method, ObjectivePerturbation):
            return ProfiledObjective.of(self.method, self.profiles, ratings, 1)
        assert isinstance(self.method, CertifiedMethod)
        return self.method

    def public(self, ratings: Ratings) -> PublicHalf:
        """Return the public half at its start."""
        return self.learner(ratings).public_half(ratings.catalogue, ratings.scale)

    @cached_property
    def events(self) -> dict[str, PlannedEvent]:
        """All that is planned, by name."""
        return {event.what: event for event in self.public(self.world([])).plan.events()}

    @property
    def is_sampled(self) -> bool:
        """Whether coins decide who takes part."""
        return any(isinstance(event, PoissonGaussianEvent) for event in self.events.values())

    def are_neighbours(self, pair: Pair) -> bool:
        """Return whether a pair is one that the guarantee compares, and of people whom a file could hold."""
        there = [one for one in pair if one is not None]
        both = self.protects_values or self.budget.neighbours == "replace"
        return len(there) == (2 if both else 1) and all(one.is_valid for one in there)

    def world(self, people: Sequence[Person | None]) -> Ratings:
        """Return the ratings of the crowd and of those people who are there."""
        there = [place for place, one in enumerate(people) if one is not None]
        ids = Ids(np.concatenate([self.ids.array[: self.crowd.n_users], self._target_ids(there)]))
        return joined(self.crowd, [one for one in people if one is not None], ids)

    def answers(self, asked: Sequence[Asked], person: Person | None, place: int = 0) -> list[Integers]:
        """Return the exact answers of one person, who has the given place beside the crowd."""
        if person is None:
            return [np.zeros(one.question.shape, np.int64) for one in asked]
        alone, ids = [person], self._target_ids([place])
        if self.protects_values:  # everybody has a place, and a row that depends on it
            nobody = Person.of([], [])
            alone = [nobody] * (self.crowd.n_users + place) + [person]
            ids = self.ids.array[: len(alone)]
        table = table_of(alone, self.crowd.catalogue, self.crowd.scale, Ids(ids))
        return self.people(table).answer([one._replace(participants=None) for one in asked])

    def shift(self, asked: Sequence[Asked], pair: Pair, place: int = 0) -> list[Integers]:
        """Return by how much exact sums of the second world are larger."""
        first, second = (self.answers(asked, one, place) for one in pair)
        return [two - one for one, two in zip(first, second, strict=True)]

    def people(self, ratings: AnyRatings) -> Answerer:
        """Return whoever sums the answers of these people, with caps as a run has them."""
        facts, cap = self.method.facts(), self.method.facts().get("cap")
        if cap is not None and getattr(self.method, "caps_fits", False):
            assert isinstance(ratings, Ratings)
            ratings, cap = trimmed(ratings, cap, seed=facts["seed"]), None
        return self.answerer(ratings, np.ones(ratings.n_users), 1, cap=cap, seed=facts["seed"])

    def _target_ids(self, places: Sequence[int]) -> NDArray[Any]:
        return self.ids.array[self.crowd.n_users + np.asarray(places, np.int64)]
