"""Certified ranking, the public half: which items do people like, and which of them together?

Released are, each with Gaussian noise: the number of people, unless it was declared; how much they like every item; and
the matrix Σ z z' over the items that they like most, the head, z being what a person likes scaled to length 1. Where
there are too few people for the latter, its share of the budget measures once more how much they like every item.
Everything else is made of these numbers alone: see docs/proofs/ease.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.certified.conversation import Conversation
from dpmf.methods.certified.plan import Stage
from dpmf.methods.certified.questions import Array, Headcount, Noisy
from dpmf.methods.ease.defaults import Ramp
from dpmf.methods.ease.plan import PAIRS, POPULARITY, USERS, EasePlan
from dpmf.methods.ease.questions import EaseScript, ItemPairs, Preferences
from dpmf.methods.ease.shrinkage import Spectrum, full_matrix, shrink_spectrum


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

    Attributes:
        n_users: how many people there are, as declared or as released with noise.
        counts: how much people like every item.
        head: ascending positions of the items that pairs were measured of.
        pairs: the triangle of the matrix over the head; None as long as there is none.
    """

    plan: EasePlan
    ramp: Ramp
    n_users: float = field(init=False, default=1.0)
    counts: Measured = field(init=False)
    head: NDArray[np.int32] = field(init=False)
    pairs: Measured | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.counts = Measured(np.zeros(self.plan.n_items), 1.0)
        self.head = np.zeros(0, np.int32)

    @property
    def script(self) -> EaseScript:
        """What may be asked, where people answer for themselves."""
        return EaseScript(self.plan, self.ramp)

    def converse(self, stage: Stage) -> Conversation:
        """Yield the questions of a stage, and make public state of the noisy answers."""
        return self._measure_pairs() if PAIRS in stage.releases else self._measure_counts()

    def _measure_counts(self) -> Conversation:
        """Ask how many people there are, and how much they like every item; choose the head."""
        if self.plan.counts_users:
            (count,) = yield (Headcount(USERS),)
            self.n_users = max(float(count.values[0]), 1.0)
        else:
            self.n_users = float(self.plan.known_users or 1)
        (counts,) = yield (self._preferences(POPULARITY),)
        self.counts = Measured(counts.values, counts.sd)
        size = self.plan.head_for(self.n_users)
        popular = np.argsort(-self.counts.values, kind="stable")
        self.head = np.sort(popular[:size]).astype(np.int32)

    def _measure_pairs(self) -> Conversation:
        """Ask what people like together; without a head, once more how much they like every item."""
        if not len(self.head):
            (counts,) = yield (self._preferences(PAIRS),)
            self.counts = self.counts.averaged(counts)
            return
        (pairs,) = yield (ItemPairs(PAIRS, self.plan.n_items, self.head, self.ramp),)
        self.pairs = Measured(pairs.values, pairs.sd)

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
        for name, measured in (("counts", self.counts), ("pairs", self.pairs)):
            if measured is not None:
                found |= {name: measured.values, f"{name} sd": np.array([measured.sd])}
        return found

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""
        self.n_users = float(tensors["n_users"][0])
        self.head = np.array(tensors["head"], np.int32)
        self.counts = Measured(np.array(tensors["counts"]), float(tensors["counts sd"][0]))
        if "pairs" in tensors:
            self.pairs = Measured(np.array(tensors["pairs"]), float(tensors["pairs sd"][0]))
