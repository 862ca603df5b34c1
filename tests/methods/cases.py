"""Small configurations of every method in every kind of run, for tests that all of them must pass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from dpmf.engine.store import AnyRatings
from dpmf.methods import ALS, METHODS, Method, ObjectivePerturbation, configure
from dpmf.methods.objective.profiles import Profiles
from dpmf.model import Model, Release
from dpmf.privacy import Budget
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

USER = Budget(5.0)
LARGE = Budget(40.0)  # lets least squares find something in few ratings
VALUE = Budget(2.0, 1e-6, "rating", "replace")
NOTHING = Budget(math.inf)
RATINGS = make(61, 20, mean_ratings=8, seed=3)  # an odd number, so that threads have different shares


@dataclass(frozen=True)
class Case:
    """A configuration.

    Attributes:
        label: of the test.
        method: its name in the registry.
        settings: other than those for which the contract tries several values.
        stages: how many draws of noise there are in every stage of a certified run; empty for other kinds.
        essential: how many of the first stages nothing can be learnt without.
        before: how many stages come before the first round.
        profiles: where users' factors come from, if the method takes any: "public" or "release".
        diverges: settings with which it diverges; none if it cannot.
    """

    label: str
    method: str
    settings: Mapping[str, Any]
    stages: tuple[int, ...] = ()
    essential: int = 0
    before: int = 0
    profiles: str | None = None
    diverges: Mapping[str, Any] = field(default_factory=dict)

    def configured(self, **changes: Any) -> Method:
        """Return the method with some settings changed."""
        return configure(self.method, {**self.settings, **changes})

    def fit(self, ratings: AnyRatings, changes: Mapping[str, Any] | None = None, **options: Any) -> Model:
        """Train with some settings changed."""
        method = self.configured(**(changes or {}))
        if isinstance(method, ObjectivePerturbation) and self.profiles is not None:
            return method.fit(ratings, profiles=profiles_of(self.profiles), **options)
        return method.fit(ratings, **options)

    @property
    def is_seedable(self) -> bool:
        """Whether it draws noise, which may be made the same every time; the published sketch draws none."""
        return self.kind == "certified" or (self.kind == "paper" and self.method != "sketch")

    def seeded(self, noise_seed: int) -> dict[str, Any]:
        """Return the setting that makes noise the same every time, if there is any."""
        return {"noise_seed": noise_seed} if self.is_seedable else {}

    @property
    def starts_alike(self) -> bool:
        """Whether the public start is the same for every seed, because nothing in it is random."""
        alike = ("als", "als-per-item", "als-biases", "als-popularity", "joint", "joint-declared")
        exact = self.method == "objective" and self.kind == "certified"
        return self.label in alike or self.method == "ease" or exact

    @property
    def has_turns(self) -> bool:
        """Whether it learns in epochs or rounds, of which there are two at least."""
        return self.method != "ease"

    @property
    def takes_cap(self) -> bool:
        """Whether the ratings of a user that count may be capped."""
        return "cap" in METHODS[self.method].__dataclass_fields__

    @property
    def kind(self) -> str:
        """What kind of run it is."""
        return self.configured().kind

    def harder(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return settings and options that make summing harder: a cap, replaced neighbours, budgets of single users."""
        if self.method == "objective":
            return {}, {}
        cap = {"cap": 5} if self.takes_cap else {}
        wishes = {RATINGS.user_ids[3]: 0.0, RATINGS.user_ids[5]: 2.0, RATINGS.user_ids[60]: 2.0}
        budget = replace(self.settings["budget"], neighbours="replace")
        return {**cap, "budget": budget}, {"user_budgets": wishes}


SMALL = {"n_factors": 2, "n_epochs": 2}
STEPS = {"n_factors": 2, "n_epochs": 3}
SAMPLED: dict[str, Any] = {**STEPS, "sampling_rate": 0.5, "budget": USER}

CERTIFIED = (
    Case("als", "als", {**SMALL, "budget": LARGE}, (3, 1, 2, 2), 1, 2),
    Case("als-per-item", "als", {**SMALL, "moments": "per-item", "budget": LARGE}, (3, 1, 2, 2), 1, 2),
    Case("als-biases", "als", {"n_factors": 0, "budget": LARGE}, (3, 1, 1, 1, 1, 1, 1), 1, 7),
    Case("als-implicit", "als", {**SMALL, "feedback": "implicit", "budget": LARGE}, (2, 2, 2), 1, 1),
    Case("als-popularity", "als", {"n_factors": 0, "feedback": "implicit", "budget": LARGE}, (2,), 1, 1),
    Case("ease", "ease", {"head": 20, "budget": LARGE}, (2, 1), 1, 2),
    Case(
        "ease-implicit",
        "ease",
        {"head": 8, "n_users": 60, "feedback": "implicit", "budget": LARGE},
        (1, 1),
        1,
        2,
    ),
    Case("ease-popularity", "ease", {"head": 0, "budget": LARGE}, (1,), 1, 1),
    Case("joint", "joint", {**SMALL, "head": 20, "budget": LARGE}, (2, 1, 1, 1, 2, 2), 1, 4),
    Case(
        "joint-declared",
        "joint",
        {**SMALL, "head": 8, "n_users": 60, "share": 0.7, "budget": LARGE},
        (1, 1, 2, 1, 2, 2),
        1,
        4,
    ),
    Case("gaussian", "gaussian", {**STEPS, "budget": USER}, (1, 1, 1)),
    Case("gaussian-raw", "gaussian", {**STEPS, "centering": "raw", "budget": USER}, (1, 1, 1)),
    Case("sgld", "sgld", SAMPLED, (2, 2, 2)),
    Case("sketch", "sketch", {**SAMPLED, "depth": 3, "width": 7, "query": "median"}, (2, 2, 2)),
    Case("objective", "objective", {"budget": VALUE}, (2,), 1, profiles="public"),
    Case("objective-release", "objective", {"budget": VALUE}, (1, 2), 2, 1, profiles="release"),
    Case("objective-gaussian", "objective", {"budget": VALUE, "noise": "gaussian"}, (1,), 1, profiles="public"),
    Case(
        "objective-gaussian-release",
        "objective",
        {"budget": VALUE, "noise": "gaussian"},
        (1, 1),
        2,
        1,
        profiles="release",
    ),
)
PAPER = (
    Case("sgld-paper", "sgld", {**STEPS, "budget": Budget(500.0), "mode": "paper", "cap": 5}),
    Case(
        "gaussian-paper",
        "gaussian",
        {**STEPS, "budget": Budget(20.0), "mode": "paper", "learning_rate": 1e-4},
        diverges={"learning_rate": 10.0, "n_epochs": 200},
    ),
    Case("sketch-paper", "sketch", {**STEPS, "budget": Budget(2.0), "mode": "paper"}),
    Case("objective-paper", "objective", {**STEPS, "budget": Budget(2.0), "mode": "paper"}),
    Case(
        "objective-steps",
        "objective",
        {**STEPS, "budget": Budget(2.0), "mode": "paper", "solver": "steps"},
        diverges={"learning_rate": 30.0, "n_epochs": 40},
    ),
)
PLAIN = (
    Case("als-plain", "als", {**STEPS, "budget": NOTHING}),
    Case("als-plain-implicit", "als", {**STEPS, "feedback": "implicit", "budget": NOTHING}),
    Case("ease-plain", "ease", {"budget": NOTHING}),
    Case("ease-plain-implicit", "ease", {"head": 8, "feedback": "implicit", "budget": NOTHING}),
    Case("joint-plain", "joint", {**STEPS, "budget": NOTHING}),
    Case("sgd-plain", "sgd", STEPS, diverges={"learning_rate": 5.0, "n_epochs": 30}),
    Case("sgld-plain", "sgld", {**STEPS, "budget": NOTHING}, diverges={"learning_rate": 1.0, "regularization": 0.1}),
    Case("gaussian-plain", "gaussian", {**STEPS, "budget": NOTHING}),
    Case("gaussian-published", "gaussian", {**STEPS, "budget": NOTHING, "mode": "paper", "learning_rate": 1e-4}),
    Case("sketch-plain", "sketch", {**STEPS, "budget": NOTHING}, diverges={"learning_rate": 50.0}),
    Case("objective-plain", "objective", {**STEPS, "budget": NOTHING}),
    Case(
        "objective-published",
        "objective",
        {**STEPS, "budget": NOTHING, "mode": "paper"},
        diverges={"learning_rate": 1e9, "n_epochs": 20},
    ),
)
ALL = CERTIFIED + PAPER + PLAIN


def label_of(case: Case) -> str:
    """Return the name of a case in the name of a test."""
    return case.label


def bits(model: Model) -> tuple[bytes, ...]:
    """Return everything that was learnt, byte for byte."""
    of_users = model.user_factors, model.user_biases, model.rated().values
    return (*release_bits(model), *(one.tobytes() for one in of_users))


def release_bits(model: Model) -> tuple[bytes, ...]:
    """Return everything that was learnt about items, byte for byte."""
    release = model.release
    arrays = [release.item_factors, release.item_biases, np.float64(release.mean)]
    if release.ranking is not None:
        arrays += [one for one in vars(release.ranking).values() if isinstance(one, np.ndarray)]
    return tuple(one.tobytes() for one in arrays)


@cache
def profiles_of(source: str) -> Profiles:
    """Return factors of the users of `RATINGS`."""
    if source == "public":
        factors = np.random.default_rng(5).normal(0, 0.6, (RATINGS.n_users, 3))
        return Profiles.public(RATINGS.user_ids.array, factors)
    return Profiles.from_release(_release(), VALUE, public=True)


@cache
def _release() -> Release:
    return ALS(n_factors=1, n_epochs=1, budget=USER, noise_seed=1).fit(RATINGS, n_threads=1).release


def of_nobody(ratings: Ratings) -> Ratings:
    """Return ratings of which none is left."""
    return ratings.select(np.zeros(len(ratings), np.bool_))
