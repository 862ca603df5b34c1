"""Where factors of users come from if not from the ratings that items are fitted to: a public table, or a release.

What `ObjectivePerturbation` proves needs factors that do not depend on the rating that changes, or are private in
themselves. `Profiles.public` is a table that somebody asserts to be public. `Profiles.from_release` makes everybody's
factors from item factors that were released before and from their own ratings, and pays for it: it releases, for every
person, the right-hand side of their least squares with Gaussian noise. Which items somebody rated is public here, so
the left-hand side is public, too.

>>> table = Profiles.public(["ann", "bob"], np.array([[3.0, 4.0], [0.1, 0.2]]))
>>> table.n_factors, table.events(n_users=2)
(2, ())
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.grid import checksum_of
from dpmf.engine.store import AnyRatings
from dpmf.errors import InvalidArgument
from dpmf.files import digest_of
from dpmf.kernels.regression import solve_normal_equations
from dpmf.methods.certified.questions import Noisy
from dpmf.methods.objective.pattern import Pattern, offset_sums
from dpmf.methods.objective.questions import ValueSums
from dpmf.model import Release
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.calibration import Part, gaussian_events
from dpmf.privacy.events import Event
from dpmf.ratings import Scale
from dpmf.ratings.ids import Ids
from dpmf.ratings.kinds import array_of

Floats = NDArray[np.float32]
PROFILES = "right-hand sides of users' factors"
_UNEXPLAINED = 0.75  # variance of ratings that a model leaves, in squared quarters of the scale's width
_BIASES = 1 / 9  # how far users are from the mean (standard deviation), relative to the width of the scale
BIAS_PENALTY = _UNEXPLAINED / 16 / _BIASES**2  # with which a person's own bias is fitted
_USUAL_COUNT = 100  # ratings of a person, for releases whose penalty depends on it
_CONSTANT = math.sqrt(0.5)  # the first number of every profile, and the longest that all others together may be
_SPENT = ", in the release for profiles"  # after the names of events
_TABLE, _PUBLIC_SOURCE, _PAID_SOURCE = "table", "public release", "release"
_PUBLIC_TABLE = "Users' factors are a table that somebody asserts to be public: made without these ratings."
_PUBLIC_RELEASE = (
    "The release that users' factors are made with is asserted to be public: made from other people's ratings."
)
_RELEASE_TOO = (
    "What the release that users' factors are made with cost is part of this guarantee; how much to spend on them and "
    "on items was not decided by looking at it."
)


def profile_events(budget: Budget, coordinates: int) -> tuple[GaussianEvent, ...]:
    """Return what it costs to ask for right-hand sides of this many numbers."""
    return gaussian_events(budget, [Part(PROFILES, 1.0, 1, coordinates)])


class ProfileCosts(Protocol):
    """What a plan has to know of profiles; members as those of `Profiles`."""

    @property
    def n_factors(self) -> int:
        """K, the length of a profile."""

    @property
    def spent(self) -> tuple[Event, ...]:
        """What was released before, and has to be paid for here."""

    def events(self, n_users: int, n_shares: int = 1) -> tuple[GaussianEvent, ...]:
        """Return what asking people for them will release."""


@dataclass(frozen=True)
class RecordedProfiles:
    """What profiles cost, as a release records it.

    Attributes:
        n_factors: K.
        spent: what the release that they were made with cost: as stated, for that release is not at hand.
        budget: what they may cost; None for a table, which costs nothing.
        n_users: how many there are, a public number for this unit.
    """

    n_factors: int
    spent: tuple[Event, ...]
    budget: Budget | None
    n_users: int

    @classmethod
    def of(cls, recorded: Any, n_factors: int, events: Sequence[Event], n_shares: int) -> RecordedProfiles:
        """Return what `Profiles.recorded` says, for a release with these events."""
        source = recorded.get("source") if isinstance(recorded, dict) else None
        if source == _TABLE:
            return cls(n_factors, (), None, 1)
        if source not in (_PUBLIC_SOURCE, _PAID_SOURCE):
            raise InvalidArgument(f"the source {source!r} of profiles in the record of its plan is unknown")
        spent = tuple(event for event in events if event.what.endswith(_SPENT)) if source == _PAID_SOURCE else ()
        if source == _PAID_SOURCE and not spent:
            raise InvalidArgument("its profiles were paid for, and there is no event of the release for profiles")
        asked = [event for event in events if event.what == PROFILES and isinstance(event, GaussianEvent)]
        n_users = sum(event.coordinates for event in asked) // (max(n_factors - 1, 1) * n_shares)
        budget = Budget.recorded(recorded["epsilon"], recorded["delta"], "rating", "replace")
        return cls(n_factors, spent, budget, max(n_users, 1))

    def events(self, n_users: int, n_shares: int = 1) -> tuple[GaussianEvent, ...]:
        """Return what asking people for them releases."""
        return () if self.budget is None else profile_events(self.budget, n_users * (self.n_factors - 1) * n_shares)


class RatingFacts(NamedTuple):
    """What is public about ratings, where the unit is the value of one rating.

    Attributes:
        users: their ids.
        items: the catalogue's ids.
        scale: of the ratings.
        pattern: who rated what.
        n_threads: for what is computed of it.
    """

    users: Ids
    items: Ids
    scale: Scale
    pattern: Pattern
    n_threads: int


class Profiles(ABC):
    """Factors of users, or how to get them."""

    @staticmethod
    def public(user_ids: Sequence[Any] | NDArray[Any], factors: Sequence[Sequence[float]] | NDArray[Any]) -> Profiles:
        """Return a table that is asserted to be public, which the guarantee records.

        Args:
            user_ids: whose factors they are; people who are not among them count for nothing.
            factors: shape (n, K). Rows longer than 1 are shortened to it.
        """
        return _Table(user_ids, factors)

    @staticmethod
    def from_release(release: Release, budget: Budget, *, public: bool = False) -> Profiles:
        """Return profiles that are made with a release, when they are needed.

        Args:
            release: of ratings; either certified under neighbours="replace" (its cost is then added), or public.
            budget: what they may cost, with unit="rating" and neighbours="replace".
            public: assert that the release was made from other people's ratings, which the guarantee records.
        """
        return _Derived(release, budget, public)

    @property
    @abstractmethod
    def n_factors(self) -> int:
        """K, the length of a profile."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """A checksum of all that makes them what they are."""

    @property
    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """What a guarantee has to record."""

    @property
    def personal(self) -> bool:
        """Whether they rest on a release whose users chose an epsilon of their own."""
        return False

    @property
    @abstractmethod
    def spent(self) -> tuple[Event, ...]:
        """What was released before, and has to be paid for here."""

    @property
    @abstractmethod
    def recorded(self) -> dict[str, Any]:
        """What a release records of them, in JSON values: how they cost something; see `RecordedProfiles`."""

    @abstractmethod
    def check(self, ratings: AnyRatings) -> None:
        """Refuse profiles that have nothing to do with the ratings, before anything is paid."""

    @abstractmethod
    def events(self, n_users: int, n_shares: int = 1) -> tuple[GaussianEvent, ...]:
        """Return what the answer to `question` will release, given how many shares its noise is made of."""

    @abstractmethod
    def question(self, items: Ids, scale: Scale, n_users: int) -> ValueSums | None:
        """Return what people have to be asked for; None if their factors are `known`. It depends on no rating."""

    @abstractmethod
    def known(self, users: Ids) -> Floats | None:
        """Return factors that were public before, shape (n_users, K); None if people have to be asked."""

    @abstractmethod
    def factors(self, facts: RatingFacts, noisy: Noisy) -> Floats:
        """Return everybody's factors, shape (n_users, K), from the answer; whoever uses them bounds them.

        Those who did not answer get zeros.
        """


class _Table(Profiles):
    spent: tuple[Event, ...] = ()
    recorded: dict[str, Any] = {"source": _TABLE}  # noqa: RUF012
    assumptions = (_PUBLIC_TABLE,)

    def __init__(
        self, user_ids: Sequence[Any] | NDArray[Any], factors: Sequence[Sequence[float]] | NDArray[Any]
    ) -> None:
        table = np.asarray(factors)
        if table.ndim != 2 or not table.shape[1] or table.dtype.kind not in "iuf" or len(table) != len(user_ids):
            raise InvalidArgument(
                f"profiles are {len(user_ids)} ids and an array of shape {table.shape}: give a row of numbers for each"
            )
        with np.errstate(over="ignore"):
            self._factors = table.astype(np.float32)
        if not np.isfinite(self._factors).all():
            raise InvalidArgument("profiles hold a number that is not finite: correct the table")
        self._ids = Ids(array_of(user_ids))
        if self._ids.first_repeated() is not None:
            raise InvalidArgument("profiles have two rows for one user: leave one of them")

    @property
    def n_factors(self) -> int:
        return int(self._factors.shape[1])

    @property
    def digest(self) -> str:
        return f"table {checksum_of((self._ids.keys, self._factors)):08x}"

    def check(self, ratings: AnyRatings) -> None:
        if (self._ids.encode(ratings.user_ids.array) < 0).all():
            raise InvalidArgument("profiles name none of the people in the ratings: are these their ids?")

    def events(self, n_users: int, n_shares: int = 1) -> tuple[GaussianEvent, ...]:
        return ()

    def question(self, items: Ids, scale: Scale, n_users: int) -> None:
        return None

    def known(self, users: Ids) -> Floats:
        places = self._ids.encode(users.array)
        found: Floats = np.where(places[:, None] >= 0, self._factors[places], np.float32(0))
        return found

    def factors(self, facts: RatingFacts, noisy: Noisy) -> Floats:
        return self.known(facts.users)


class _Derived(Profiles):
    def __init__(self, release: Release, budget: Budget, public: bool) -> None:
        guarantee = release.guarantee
        if release.is_implicit:
            raise InvalidArgument("profiles need a release that was made from ratings, and this one is implicit")
        if not release.predicts:
            raise InvalidArgument("profiles need a release that predicts ratings, and this one only ranks items")
        if not budget.is_finite or (budget.unit, budget.neighbours) != ("rating", "replace"):
            raise InvalidArgument(
                f"the budget of profiles is {budget}: give a finite epsilon, unit='rating' and neighbours='replace'"
            )
        if not public and not (guarantee.certified and guarantee.neighbours == "replace"):
            raise InvalidArgument(
                f"profiles need a release that is certified with neighbours='replace', and this one is "
                f"{guarantee.mode}, {guarantee.neighbours}: train it so, or assert that it is public, made from other "
                "people's ratings (public=True)"
            )
        self._release, self._budget, self._public = release, budget, public

    @property
    def n_factors(self) -> int:
        return self._release.n_factors + 2  # a constant and a bias

    @property
    def digest(self) -> str:
        release = self._release
        numbers = np.array([release.mean, release.ridge.bias, release.ridge.factors, release.ridge.exponent])
        content = checksum_of((release.items.ids.keys, release.item_factors, release.item_biases, numbers))
        return f"release {content:08x}, {digest_of(release.guarantee.to_json())}, {self._budget}, {self._public}"

    @property
    def assumptions(self) -> tuple[str, ...]:
        if self._public:
            return (_PUBLIC_RELEASE,)
        return (_RELEASE_TOO, *self._release.guarantee.assumptions)

    @property
    def personal(self) -> bool:
        return self._release.guarantee.personal and not self._public

    @property
    def spent(self) -> tuple[Event, ...]:
        if self._public:
            return ()
        return tuple(replace(event, what=event.what + _SPENT) for event in self._release.guarantee.events)

    @property
    def recorded(self) -> dict[str, Any]:
        source = _PUBLIC_SOURCE if self._public else _PAID_SOURCE
        return {"source": source, "epsilon": self._budget.epsilon, "delta": self._budget.delta}

    def check(self, ratings: AnyRatings) -> None:
        if (self._release.items.ids.encode(ratings.catalogue.ids.array) < 0).all():
            raise InvalidArgument("the release for profiles has none of the items in the ratings: are these their ids?")

    def events(self, n_users: int, n_shares: int = 1) -> tuple[GaussianEvent, ...]:
        return profile_events(self._budget, n_users * (self.n_factors - 1) * n_shares)

    def question(self, items: Ids, scale: Scale, n_users: int) -> ValueSums:
        rows, _ = _standardized(self._release, items, scale.hi - scale.lo)
        longest = float(np.linalg.norm(rows.astype(np.float64), axis=1).max())
        return ValueSums(PROFILES, rows, longest, scale, "users", n_users)

    def known(self, users: Ids) -> None:
        return None

    def factors(self, facts: RatingFacts, noisy: Noisy) -> Floats:
        scale, side = facts.scale, facts.pattern.by_user
        _, starts = _standardized(self._release, facts.items, scale.hi - scale.lo)
        rows = self.question(facts.items, scale, side.n_rows).factors_on_grid(noisy.steps)
        right = noisy.values + offset_sums(side, rows, np.float32(scale.lo) - starts, facts.n_threads)
        found, ridge, variance = np.empty(right.shape, np.float32), unexplained(scale.hi - scale.lo), noisy.sd**2

        def solve(start: int, stop: int) -> float:
            solve_normal_equations(side.csr.pattern, start, stop, rows, ridge, variance, right, found)
            return 0.0

        side.visit(solve, facts.n_threads)
        return only_answered(_with_constant(found), noisy)


def _standardized(release: Release, items: Ids, width: float) -> tuple[Floats, Floats]:
    """Return rows z_j with which a rating is start_j + x·z_j, x having about unit variance, and start_j; all public.

    The last number of a row is for a person's own bias. Items that the release does not have get zeros.
    """
    places = release.items.ids.encode(items.array)
    known = places >= 0
    V, c = release.item_factors[places], release.item_biases[places]
    size = math.sqrt(float(np.square(V[known], dtype=np.float64).sum(axis=1).mean()))
    penalty = max(release.ridge.factors, 1e-6) * _USUAL_COUNT**release.ridge.exponent
    sd = min(math.sqrt(unexplained(width) / penalty), width / 4 / max(size, 1e-6))  # factors explain so much at most
    rows = np.c_[sd * V, np.full(len(V), _BIASES * width)]
    starts = np.where(known, release.mean + c, 0.0)
    return np.where(known[:, None], rows, 0.0).astype(np.float32), starts.astype(np.float32)


def unexplained(width: float) -> float:
    """Return what variance a model usually leaves, on a scale of this width."""
    return _UNEXPLAINED * (width / 4) ** 2


def only_answered(factors: Floats, noisy: Noisy) -> Floats:
    """Return factors of users with zeros for those who did not answer: with a profile of zeros nobody counts."""
    if noisy.answered is None:
        return factors
    kept = np.zeros_like(factors)
    kept[noisy.answered] = factors[noisy.answered]
    return kept


def _with_constant(found: Floats) -> Floats:
    """Return profiles of length 1 at most: a constant, for what items have in common for all, and what was found."""
    rest = found * np.float32(_CONSTANT / math.sqrt(found.shape[1]))
    length = np.linalg.norm(rest, axis=1, keepdims=True)
    rest *= np.minimum(1.0, _CONSTANT / np.maximum(length, 1e-30)).astype(np.float32)
    return np.concatenate([np.full((len(rest), 1), _CONSTANT, np.float32), rest], axis=1)
