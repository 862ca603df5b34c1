"""Certified ranking, the public half: which items do people like, and which of them together?

Released are, each with Gaussian noise: the number of people, unless it was declared; how much they like every item; and
the matrix Σ z z' over the items that they like most, the head, z being what a person likes scaled to length 1. If
titles link enough items, linked pairs are measured on their own before that, all over the catalogue. Where there are
too few people for pairs, their share of the budget measures once more how much people like every item; where the head
is but a small part of what people like, it measures linked pairs once more.
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
from dpmf.methods.ease.defaults import LEAST_IN_HEAD
from dpmf.methods.ease.links import LinkedSums, likely_counts, linked_sums
from dpmf.methods.ease.plan import LINKS, PAIRS, POPULARITY, USERS, EasePlan, counted_users
from dpmf.methods.ease.questions import EaseScript, ItemPairs, LinkedPairs, Preferences
from dpmf.methods.ease.shrinkage import Spectrum, full_matrix, shrink_spectrum
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

    Attributes:
        n_users: how many people there are, as declared or as released with noise.
        counts: how much people like every item.
        head: ascending positions of the items that pairs were measured of.
        pairs: the triangle of the matrix over the head; None as long as there is none.
        linked: the sums over linked pairs; None as long as there are none.
    """

    plan: EasePlan
    ramp: Ramp
    links: Links | None = None
    n_users: float = field(init=False, default=1.0)
    counts: Measured = field(init=False)
    head: NDArray[np.int32] = field(init=False)
    pairs: Measured | None = field(init=False, default=None)
    linked: Measured | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.counts = Measured(np.zeros(self.plan.n_items), 1.0)
        self.head = np.zeros(0, np.int32)

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
        """Ask what people like together; if there is no head, or one that says little, once more what was asked."""
        if not len(self.head):
            yield from self._count_again(PAIRS)
        elif self.linked is not None and self._head_says_little():
            (linked,) = yield (self._linked_pairs(PAIRS),)
            self.linked, self.head = self.linked.averaged(linked), np.zeros(0, np.int32)
        else:
            (pairs,) = yield (ItemPairs(PAIRS, self.plan.n_items, self.head, self.ramp),)
            self.pairs = Measured(pairs.values, pairs.sd)

    def _count_again(self, what: str) -> Conversation:
        (counts,) = yield (self._preferences(what),)
        self.counts = self.counts.averaged(counts)

    def _head_says_little(self) -> bool:
        """Return whether the head is a small part of what people like, and links say something."""
        if not self.plan.may_repeat_links or self.linked_sums() is None:
            return False
        likely = likely_counts(self.counts.values, self.counts.sd)
        return bool(likely[self.head].sum() < LEAST_IN_HEAD * likely.sum())

    def linked_sums(self) -> LinkedSums | None:
        """Return what is known of Σ z z' for linked pairs; None if nothing is."""
        if self.linked is None or self.links is None:
            return None
        likely = likely_counts(self.counts.values, self.counts.sd)
        return linked_sums(self.linked.values, self.linked.sd, self.links, likely)

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

    def fit_after(self, stage: Stage) -> None:
        """Return None: people have nothing to fit."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far, functions of noisy sums all of it."""
        found = {"n_users": np.array([self.n_users]), "head": self.head}
        for name, measured in (("counts", self.counts), ("pairs", self.pairs), ("linked", self.linked)):
            if measured is not None:
                found |= {name: measured.values, f"{name} sd": np.array([measured.sd])}
        return found

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""
        self.n_users = float(tensors["n_users"][0])
        head, n_items = np.array(tensors["head"]), self.plan.n_items
        if head.dtype != np.int32 or not set(head.tolist()) <= set(range(n_items)) or (head[1:] <= head[:-1]).any():
            raise ValueError("the head should be ascending positions in the catalogue")  # kernels rely on it
        sizes = {"counts": n_items, "pairs": len(head) * (len(head) + 1) // 2}
        for name, size in sizes.items():
            if name in tensors and tensors[name].shape != (size,):
                raise ValueError(f"{name} has the shape {tensors[name].shape}")
        self.head = head
        self.counts = Measured(np.array(tensors["counts"]), float(tensors["counts sd"][0]))
        self.pairs, self.linked = (
            Measured(np.array(tensors[name]), float(tensors[f"{name} sd"][0])) if name in tensors else None
            for name in ("pairs", "linked")
        )
