"""Certified ranking, the public half: which items do people like, and which of them together?

Released are, each with Gaussian noise: the number of people, unless it was declared; how much they like every item; and
the matrix Σ z z' over the items that they like most, the head, z being what a person likes scaled to length 1. If
titles link enough items, linked pairs are measured on their own before that, all over the catalogue. Where there are
too few people for pairs, their share of the budget measures once more how much people like every item; where the head
is but a small part of what people like, it measures pairs of groups, such as series, or linked pairs once more.
Everything else is made of these numbers alone: see docs/proofs/ease.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.item_pairs import Ramp
from dpmf.methods.certified.conversation import Conversation
from dpmf.methods.certified.plan import Stage
from dpmf.methods.certified.questions import Array, Headcount, Noisy
from dpmf.methods.ease.defaults import ALL_GROUPED_MASS, FEW_LIKES, GROUPED_MASS, LEAST_IN_HEAD
from dpmf.methods.ease.links import LinkedSums, likely_counts, linked_sums
from dpmf.methods.ease.plan import LINKS, PAIRS, POPULARITY, USERS, EasePlan, counted_users
from dpmf.methods.ease.questions import EaseScript, GroupPairs, ItemPairs, LinkedPairs, Positions, Preferences
from dpmf.methods.ease.shrinkage import Matrix, Spectrum, full_matrix, shrink_spectrum
from dpmf.model.learnt import BEYOND, Learnt
from dpmf.ratings.titles import Links


@dataclass(frozen=True, eq=False)
class Measured:
    """Noisy numbers, and the standard deviation of the noise on each of them."""

    values: Array
    sd: float

    def averaged(self, other: Noisy) -> Measured:
        """Return the mean of two measurements of the same, each weighted by how precise it is."""
        own, its = 1 / self.sd**2, 1 / other.sd**2
        return Measured((own * self.values + its * other.values) / (own + its), (own + its) ** -0.5)


@dataclass(eq=False)
class PublicEase:
    """What a run asks people for, and the noisy sums that it gets. It knows no ratings.

    Args:
        plan: the public facts.
        ramp: the weight of a rating.
        links: of the catalogue, if the plan measures them.
        traits: what the catalogue says about items, shape (n_items, C); see `dpmf.ratings.features.traits_of`.

    Attributes:
        n_users: how many people there are, as declared or as released with noise.
        counts: how much people like every item.
        head: ascending positions of the items that pairs were measured of.
        pairs: the triangle of the matrix over the head; None as long as there is none.
        linked: the sums over linked pairs; None as long as there are none.
        grouped_head: ascending positions of the first members of the groups that pairs were measured of.
        grouped: the sums over pairs of these groups; None if there are none.
    """

    plan: EasePlan
    ramp: Ramp
    links: Links | None = None
    traits: Matrix = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    n_users: float = field(init=False, default=1.0)
    counts: Measured = field(init=False)
    head: NDArray[np.int32] = field(init=False)
    pairs: Measured | None = field(init=False, default=None)
    linked: Measured | None = field(init=False, default=None)
    grouped_head: NDArray[np.int32] = field(init=False)
    grouped: Measured | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.counts = Measured(np.zeros(self.plan.n_items), 1.0)
        self.head = self.grouped_head = np.zeros(0, np.int32)
        self.traits = self.traits if self.traits.size else np.zeros((self.plan.n_items, 0), np.float32)

    @property
    def script(self) -> EaseScript:
        """What may be asked, where people answer for themselves."""
        return EaseScript(self.plan, self.ramp, self.links)

    def converse(self, stage: Stage) -> Conversation:
        """Yield the questions of a stage, and make public state of the noisy answers."""
        if LINKS in stage.releases:
            return self._measure_links()
        return self._measure_pairs() if PAIRS in stage.releases else self._measure_counts()

    def _measure_counts(self) -> Conversation:
        """Ask how many people there are, and how much they like every item; choose the head."""
        if self.plan.counts_users:
            (count,) = yield (Headcount(USERS),)
            self.n_users = counted_users(float(count.values[0]))
        else:
            self.n_users = float(self.plan.known_users or 1)
        (counts,) = yield (self._preferences(POPULARITY),)
        self.counts = Measured(counts.values, counts.sd)
        size = self.plan.head_for(self.n_users)
        popular = np.argsort(-self.counts.values, kind="stable")
        self.head = np.sort(popular[:size]).astype(np.int32)

    def _measure_links(self) -> Conversation:
        """Ask which linked items people like together; without a head, once more how much they like every item."""
        if not len(self.head):
            yield from self._count_again(LINKS)
            return
        (linked,) = yield (self._linked_pairs(LINKS),)
        self.linked = Measured(linked.values, linked.sd)

    def _measure_pairs(self) -> Conversation:
        """Ask what people like together; if there is no head, or one that says little, ask for more instead."""
        if not len(self.head):
            yield from self._count_again(PAIRS)
        elif self._groups_say_more():
            popular = self._popular_groups()
            (grouped,) = yield (GroupPairs(PAIRS, self.groups, popular, self.ramp),)
            self.grouped, self.grouped_head = Measured(grouped.values, grouped.sd), popular
            self.head = self.head[:0]
        elif self.linked is not None and self._links_say_more():
            (linked,) = yield (self._linked_pairs(PAIRS),)
            self.linked, self.head = self.linked.averaged(linked), self.head[:0]
        else:
            (pairs,) = yield (ItemPairs(PAIRS, self.plan.n_items, self.head, self.ramp),)
            self.pairs = Measured(pairs.values, pairs.sd)

    def _count_again(self, what: str) -> Conversation:
        (counts,) = yield (self._preferences(what),)
        self.counts = self.counts.averaged(counts)

    def _groups_say_more(self) -> bool:
        """Return whether pairs of groups say more than links, and than the head: there, if a person likes few items."""
        least = ALL_GROUPED_MASS if self._head_is_small() else GROUPED_MASS
        enough = self.plan.budget.epsilon * self.n_users >= least
        return enough and self._typical_likes() < FEW_LIKES and self._may_replace()

    def _links_say_more(self) -> bool:
        """Return whether links say more than the head."""
        return self._head_is_small() and self._may_replace()

    def _typical_likes(self) -> float:
        """Return about how many items a person likes: n of them add √n to the counts, all weights being alike."""
        return float(self.likely.sum() / self.n_users) ** 2

    def _head_is_small(self) -> bool:
        """Return whether the head is but a small part of what people like."""
        likely = self.likely
        return float(likely[self.head].sum()) < LEAST_IN_HEAD * float(likely.sum())

    def _may_replace(self) -> bool:
        """Return whether pairs of the head may be left out: links have to say something at least."""
        return self.plan.may_replace_pairs and self.linked_sums() is not None

    def _popular_groups(self) -> Positions:
        """Return the groups that people like most, no more than there are items in the head."""
        liked = np.bincount(self.groups, self.likely, self.plan.n_items)
        members = np.bincount(self.groups, minlength=self.plan.n_items)
        popular = np.argsort(-liked, kind="stable")[: np.count_nonzero(members)]
        return np.sort(popular[: len(self.head)]).astype(np.int32)

    @property
    def groups(self) -> Positions:
        """The group of every item; an item without links is alone."""
        assert self.links is not None
        return self.links.groups(self.plan.n_items)

    @property
    def likely(self) -> Array:
        """About how much people like every item."""
        return likely_counts(self.counts.values, self.counts.sd)

    def linked_sums(self) -> LinkedSums | None:
        """Return what is known of Σ z z' for linked pairs; None if nothing is."""
        if self.linked is None or self.links is None:
            return None
        return linked_sums(self.linked.values, self.linked.sd, self.links, self.likely)

    def _linked_pairs(self, what: str) -> LinkedPairs:
        assert self.links is not None
        return LinkedPairs(what, self.plan.n_items, self.links, self.ramp)

    def _preferences(self, what: str) -> Preferences:
        return Preferences(what, self.plan.n_items, self.ramp)

    @cached_property
    def spectrum(self) -> Spectrum | None:
        """What of the matrix of pairs stands out from the noise, once that is measured; it takes a while to find."""
        return (
            None
            if self.pairs is None
            else shrink_spectrum(full_matrix(self.pairs.values, len(self.head)), self.pairs.sd)
        )

    def learnt(self) -> Learnt:
        """Return what stands out from the noise beside pairs, which the ranking shows."""
        popular = int(np.count_nonzero(self.counts.values > BEYOND * self.counts.sd))
        return Learnt(self.plan.n_items, factors=0, pairs=0, popular=popular)

    def fit_after(self, stage: Stage) -> None:
        """Return None: people have nothing to fit."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far, functions of noisy sums all of it."""
        found = {"n_users": np.array([self.n_users]), "head": self.head, "grouped head": self.grouped_head}
        known = {"counts": self.counts, "pairs": self.pairs, "linked": self.linked, "grouped": self.grouped}
        for name, measured in known.items():
            if measured is not None:
                found |= {name: measured.values, f"{name} sd": np.array([measured.sd])}
        return found

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""
        self.n_users = float(tensors["n_users"][0])
        self.head = self._ascending(tensors["head"])
        self.grouped_head = self._ascending(tensors.get("grouped head", self.head[:0]))  # there was none before
        n_pairs = len(self.grouped_head) * (len(self.grouped_head) - 1) // 2
        sizes = {"counts": self.plan.n_items, "pairs": _triangle(self.head), "grouped": n_pairs}
        for name, size in sizes.items():
            if name in tensors and tensors[name].shape != (size,):
                raise ValueError(f"{name} has the shape {tensors[name].shape}")
        self.counts = Measured(np.array(tensors["counts"]), float(tensors["counts sd"][0]))
        self.pairs, self.linked, self.grouped = (
            Measured(np.array(tensors[name]), float(tensors[f"{name} sd"][0])) if name in tensors else None
            for name in ("pairs", "linked", "grouped")
        )

    def _ascending(self, positions: NDArray[Any]) -> Positions:
        head = np.array(positions)
        known = set(range(self.plan.n_items))
        if head.dtype != np.int32 or not set(head.tolist()) <= known or (head[1:] <= head[:-1]).any():
            raise ValueError("the head should be ascending positions in the catalogue")  # kernels rely on it
        return head


def _triangle(head: Positions) -> int:
    return len(head) * (len(head) + 1) // 2
