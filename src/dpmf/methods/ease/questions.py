"""The questions of the certified ranking method; docs/proofs/ease.md has the bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.grid import checksum_of
from dpmf.kernels.csr import Csr
from dpmf.kernels.item_pairs import Ramp, add_group_pairs, add_item_pairs, add_preferences
from dpmf.kernels.linked_pairs import add_linked_pairs
from dpmf.methods.certified.questions import Fitted, Headcount, Integers, People, Question
from dpmf.methods.certified.script import Script, Told
from dpmf.methods.ease.plan import LINKS, PAIRS, USERS, EasePlan
from dpmf.ratings.titles import Links

Positions = NDArray[np.int32]
_LARGEST = 1e300  # JSON knows no infinity


@dataclass(frozen=True, eq=False)
class Preferences(Question):
    """How much do people like items?

    Attributes:
        what: the name of the release.
        n_items: the size of the catalogue.
        ramp: the weight of a rating.
    """

    what: str
    n_items: int
    ramp: Ramp
    nonnegative = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum."""
        return (self.n_items,)

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return 1.0

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add everybody's weights, scaled to length 1, to sums (out)."""
        places = np.arange(self.n_items, dtype=np.int32)
        add_preferences(people.counted.csr, first, last, self.ramp, places, people.shares, steps, sums)


@dataclass(frozen=True, eq=False)
class ItemPairs(Question):
    """How much do people like items of the head together?

    Attributes:
        what: the name of the release.
        n_items: the size of the catalogue.
        head: ascending positions of the items that are asked about.
        ramp: the weight of a rating.
    """

    what: str
    n_items: int
    head: Positions
    ramp: Ramp
    nonnegative = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum: the triangle of a symmetric matrix."""
        return (len(self.head) * (len(self.head) + 1) // 2,)

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return 1.0

    @cached_property
    def places(self) -> Positions:
        """The row of every item of the catalogue, or -1."""
        places = np.full(self.n_items, -1, np.int32)
        places[self.head] = np.arange(len(self.head), dtype=np.int32)
        return places

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add products of everybody's weights, scaled to length 1 over the head, to sums (out)."""
        add_item_pairs(people.counted.csr, first, last, self.ramp, self.places, people.shares, steps, sums)


@dataclass(frozen=True, eq=False)
class GroupPairs(Question):
    """How much do people like groups of items together, each by what they like most of it?

    Attributes:
        what: the name of the release.
        groups: shape (n_items,), the group of every item, named by its first member.
        head: ascending positions of the first members of groups that are asked about.
        ramp: the weight of a rating.
    """

    what: str
    groups: Positions
    head: Positions
    ramp: Ramp
    nonnegative = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum: every pair once."""
        return (len(self.head) * (len(self.head) - 1) // 2,)

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return 1.0

    @cached_property
    def places(self) -> Positions:
        """The row of every item of the catalogue, which is that of its group, or -1."""
        return rows_of_groups(self.groups, self.head)

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add products of everybody's weights of groups, scaled to length 1 over pairs of the head, to sums (out)."""
        csr, size = people.counted.csr, len(self.head)
        add_group_pairs(csr, first, last, self.ramp, self.places, size, people.shares, steps, sums)


def rows_of_groups(groups: Positions, head: Positions) -> Positions:
    """Return which group of the head every item belongs to, or -1."""
    places = np.full(len(groups), -1, np.int32)
    places[head] = np.arange(len(head), dtype=np.int32)
    return places[groups]


@dataclass(frozen=True, eq=False)
class LinkedPairs(Question):
    """How much do people like items together whose titles are linked?

    Attributes:
        what: the name of the release.
        n_items: the size of the catalogue.
        links: the pairs that are asked about.
        ramp: the weight of a rating.
    """

    what: str
    n_items: int
    links: Links
    ramp: Ramp
    nonnegative = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sum: all pairs, and what they weigh together."""
        return (len(self.links) + 1,)

    @property
    def reach(self) -> float:
        """The greatest length of one person's contribution."""
        return 1.0

    @cached_property
    def linked(self) -> Csr:
        """The links of every item to later ones, with their weights."""
        starts = np.searchsorted(self.links.first, np.arange(self.n_items + 1))
        return Csr(starts.astype(np.int64), self.links.second, link_weights(self.links))

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add everybody's linked pairs, scaled to length 1, to sums (out)."""
        add_linked_pairs(people.counted.csr, first, last, self.ramp, self.linked, people.shares, steps, sums)


def link_weights(links: Links) -> NDArray[np.float32]:
    """Return how much linked pairs count beside each other: close ones more, as more people like both."""
    return np.sqrt(links.similarity).astype(np.float32)


@dataclass(frozen=True)
class EaseScript(Script):
    """The rounds of the certified ranking method.

    Attributes:
        plan: what they release.
        ramp: the weight of a rating.
        links: of the catalogue, if they are measured.
    """

    plan: EasePlan
    ramp: Ramp
    links: Links | None = field(default=None, compare=False)

    def told(self, releases: Sequence[str]) -> tuple[Told, ...]:
        """Return what comes with the questions of a round: the head."""
        if PAIRS not in releases:
            return ()
        return (Told("head", "<i4", (self.plan.most_head,), least=0, most=self.plan.n_items - 1),)

    def questions(self, releases: Sequence[str], told: Mapping[str, NDArray[Any]]) -> tuple[Question, ...]:
        """Return the questions of a round; whoever is told of a head makes it ascend, without repetitions."""
        n_items = self.plan.n_items
        if LINKS in releases:
            assert self.links is not None
            return (LinkedPairs(LINKS, n_items, self.links, self.ramp),)
        if PAIRS not in releases:
            return tuple(
                Headcount(what) if what == USERS else Preferences(what, n_items, self.ramp) for what in releases
            )
        head = np.sort(np.asarray(told["head"], np.int32))
        return (ItemPairs(PAIRS, n_items, head, self.ramp),)

    def spell(self, questions: Sequence[Question]) -> dict[str, NDArray[Any]]:
        """Return what has to be told for others to make the same questions."""
        first = questions[0]
        return {"head": first.head} if isinstance(first, ItemPairs) else {}

    def constants(self) -> dict[str, Any]:
        """Return what was agreed beside plan and rounds."""
        agreed: dict[str, Any] = {name: max(getattr(self.ramp, name), -_LARGEST) for name in ("none", "full")}
        if self.ramp.counts:
            agreed["counts"] = True
        if self.links is not None:
            agreed["links"] = (
                f"{len(self.links)} {checksum_of((self.links.first, self.links.second, self.links.similarity)):08x}"
            )
        return agreed
