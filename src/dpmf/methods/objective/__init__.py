"""Matrix factorization with a perturbed objective (Hua, Xia and Zhong 2015, for a recommender whom people trust).

A rating is predicted as u_i·v_j. Factors of users are fixed first, none longer than 1; then those of items minimise
squared errors plus a random linear function of theirs. That is private for the *value* of one rating if users' factors
do not depend on it. In mode "paper" they are fitted to the same ratings, as published, and what is released carries a
claim only (`dpmf.methods.objective.claim`). In mode "certified" they are `Profiles` from elsewhere, public or private
themselves (`dpmf.methods.objective.certified`). Without a finite epsilon nothing is private: "certified" is then plain
descent with quick steps, and "paper" the published fit without noise.

>>> import math
>>> from dpmf.ratings import Ratings, Scale
>>> ratings = Ratings.of([1, 1, 2, 2], [1, 2, 1, 2], [5, 1, 4, 2], scale=(1, 5))
>>> model = ObjectivePerturbation(n_factors=2, n_epochs=5, budget=Budget(math.inf)).fit(ratings, n_threads=1)
>>> len(model.history)
5
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.cluster import Ray
from dpmf.engine.store import AnyRatings
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.methods.base import Callback, Method, RunOptions, Section
from dpmf.methods.certified.method import budget_of, known_settings
from dpmf.methods.certified.planned import Expected, PlanRecord
from dpmf.methods.checks import check_given, check_private, check_sizes, not_negative, positive, whole
from dpmf.methods.gaussian import GaussianGD
from dpmf.methods.objective.certified import expected_of, fit_certified
from dpmf.methods.objective.profiles import Profiles
from dpmf.methods.objective.run import fit_published
from dpmf.model import Model, Release
from dpmf.privacy import Budget
from dpmf.privacy.accounting import epsilon_of
from dpmf.privacy.guarantee import rounded_up
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings, Scale

MOST_FACTORS, MOST_EPOCHS = 1 << 16, 1 << 20
LEAST_EPSILON, MOST_EPSILON = 1e-9, 1e9  # beyond them noise, or the lack of it, is all there is
PUBLISHED: Mapping[str, Any] = {"n_factors": 50, "n_epochs": 100, "learning_rate": 2**-5, "regularization": 0.001}
"""The settings of Hua, Xia and Zhong (2015)."""

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "none": {},  # those of `GaussianGD`
    "published": PUBLISHED,
    "paper": {**PUBLISHED, "solver": "exact"},
    "certified": {"solver": "exact", "noise": "norm"},
}
_MEANINGLESS: Mapping[str, tuple[str, ...]] = {
    "none": ("solver", "noise", "noise_seed"),
    "published": ("solver", "noise", "noise_seed"),
    "paper": ("noise",),
    "certified": ("n_factors", "n_epochs", "learning_rate"),
}


@dataclass(frozen=True)
class ObjectivePerturbation(Method):
    """Configuration of the method: public facts only.

    Attributes:
        n_factors: K, the length of the factor vectors. None chooses, here and below; docs/objective.md says what. In
            mode "certified" it is the length of the profiles, and may not be given.
        n_epochs: N, the number of iterations of the plain fit, and of steps if the solver takes any; not in mode
            "certified", which has none.
        budget: how much privacy loss is allowed, or claimed, for item factors; `Budget(math.inf)` says explicitly that
            nothing has to be private. A certified one has unit="rating" and neighbours="replace", and what profiles
            cost comes on top of it. A claim has no delta.
        mode: what kind of guarantee a finite epsilon is: "certified", which needs profiles, or "paper", a published
            claim. With an infinite one "paper" takes the published steps, and "certified" quicker ones.
        solver: how the perturbed objective is minimised: "exact", or, in mode "paper", by "steps", as published.
        noise: on what item factors are made of, in mode "certified": of gamma-distributed length ("norm", the default),
            which costs no delta, or "gaussian", which people can draw in shares, each on their own side.
        learning_rate: γ, the step size.
        regularization: λ and μ, the penalty on squared factors of users and of items, relative to squared errors that
            are averaged; in mode "certified" that of items.
        items_public: whether item ids that were found in the data are asserted to be a public list.
        seed: fixes the start.
        noise_seed: research only; the same noise every time, and no guarantee.
    """

    name: ClassVar[str] = "objective"
    modes: ClassVar[tuple[str, ...]] = ("certified", "paper")
    turn: ClassVar[str] = "iteration"
    takes: ClassVar[Mapping[str, tuple[str, ...]]] = {"profiles": ("certified",)}
    plain_mode: ClassVar[str] = "paper"  # what the paper has; in the other mode it is gaussian

    n_factors: int | None = None
    n_epochs: int | None = None
    budget: Budget = field(kw_only=True)
    mode: Literal["certified", "paper"] = "certified"
    solver: Literal["exact", "steps"] | None = None
    learning_rate: float | None = None
    regularization: float | None = None
    items_public: bool = False
    seed: int = 0
    noise_seed: int | None = None
    noise: Literal["norm", "gaussian"] | None = None

    def __post_init__(self) -> None:
        check_private(self)
        check_given(self, positive, "learning_rate")
        check_given(self, not_negative, "regularization")
        check_sizes(self, n_factors=MOST_FACTORS, n_epochs=MOST_EPOCHS)
        if self.solver not in (None, "exact", "steps"):
            raise InvalidArgument(f"solver={self.solver!r} is not known: choose exact or steps")
        if self.noise not in (None, "norm", "gaussian"):
            raise InvalidArgument(f"noise={self.noise!r} is not known: choose norm or gaussian")
        for name in _MEANINGLESS[self.kind]:
            if getattr(self, name) is not None:
                what = f"mode={self.mode!r}" if self.is_private else "an infinite epsilon"
                raise InvalidArgument(f"{name} means nothing with {what}: leave it out")
        if self.kind == "certified":
            if self.solver == "steps":
                raise InvalidArgument("solver='steps' needs mode='paper': what stops before the minimum is not proven")
            if (self.budget.unit, self.budget.neighbours) != ("rating", "replace"):
                raise InvalidArgument(
                    f"unit={self.budget.unit!r}, neighbours={self.budget.neighbours!r}: ObjectivePerturbation protects "
                    "the value of one rating, so a certified budget needs unit='rating' and neighbours='replace'"
                )
        if self.is_private and not LEAST_EPSILON <= self.budget.epsilon <= MOST_EPSILON:
            raise InvalidArgument(
                f"epsilon={self.budget.epsilon:g} should be between {LEAST_EPSILON:g} and {MOST_EPSILON:g}, or infinite"
            )
        if self.is_private and not self.regularization and self.regularization is not None:
            raise InvalidArgument("regularization=0: an item that nobody rated would have noise without an end")

    @property
    def kind(self) -> str:
        """What the tables above call it."""
        if self.is_private:
            return self.mode
        return "published" if self.mode == "paper" else "none"

    @property
    def is_private(self) -> bool:
        """Whether there is a finite epsilon, be it a claim only."""
        return self.budget.is_finite

    @property
    def n_turns(self) -> int:
        """How many records the history of a whole run has: iterations of the fit, and steps of items if there are."""
        facts = self.facts()
        if facts["n_epochs"] is None:  # certified: items are solved for once
            return 1
        return int(facts["n_epochs"]) * (2 if facts["solver"] == "steps" else 1)

    def usual(self) -> Mapping[str, Any]:
        """Return what is chosen for fields that are left open."""
        if self.kind != "none":
            return _DEFAULTS[self.kind]
        quick = self._quick().facts()
        return {name: quick[name] for name in ("n_factors", "n_epochs", "learning_rate", "regularization")}

    def recorded(self) -> dict[str, Any]:
        """Return `facts` as checkpoints have them."""
        return _without_usual_noise(self.facts())

    def configuration(self) -> dict[str, Any]:
        """Return the public facts for a release, every choice made."""
        return _without_usual_noise(super().configuration())

    @classmethod
    def expected(cls, settings: Mapping[str, Any], release: Release, record: PlanRecord) -> Expected:
        """Return what a certified release of these settings should hold; what profiles cost before is as stated."""
        known = known_settings(cls, settings)
        n_factors = known.pop("n_factors", None)
        whole("n_factors", n_factors, most=MOST_FACTORS)
        if record.more.keys() != {"profiles"}:
            raise InvalidArgument("the record of its plan should say where profiles come from, and nothing else")
        method = cls(budget=budget_of(release, record), **known)
        return expected_of(method, n_factors, release, record)

    @classmethod
    def unit_for(cls, mode: str) -> str:
        """Return what a guarantee protects: the value of one rating."""
        return "rating"

    @classmethod
    def private_fields(cls, mode: str, epsilon: float, delta: float | None = None, **more: Any) -> dict[str, Any]:
        """Return the fields that an epsilon sets; what is protected is a rating that is replaced."""
        if math.isfinite(epsilon):
            if mode == "paper" and delta is not None:
                raise InvalidArgument("delta means nothing for the claim about objective, which has none: leave it out")
            if more.get("neighbours") == "add-remove":
                raise InvalidArgument("neighbours='add-remove': what objective protects is a rating that is replaced")
        return super().private_fields(mode, epsilon, delta, **{**more, "neighbours": "replace"})

    def _quick(self) -> GaussianGD:
        """Return the method that does the same without a guarantee."""
        names = ("n_factors", "n_epochs", "budget", "learning_rate", "regularization", "items_public", "seed")
        return GaussianGD(**{name: getattr(self, name) for name in names})

    def fit(
        self,
        ratings: AnyRatings | Any,
        *,
        scale: Scale | tuple[float, float] | None = None,
        items: Any = None,
        columns: Mapping[str, str | int | None] | None = None,
        n_threads: int | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: Checkpoint | None = None,
        user_budgets: Mapping[Any, float] | None = None,
        ledger: Ledger | None = None,
        executor: Ray | None = None,
        profiles: Profiles | None = None,
    ) -> Model:
        """Train on ratings.

        Args:
            ratings, scale, items, columns, n_threads, callbacks, checkpoint, ledger, executor: as in `Method.fit`.
            user_budgets: refused: what is protected is a rating, not a person.
            profiles: factors of users, which mode "certified" needs and nothing else takes.
        """
        if user_budgets is not None:
            raise InvalidArgument("user_budgets mean nothing here: what is protected is a rating, not a person")
        if self.kind == "certified" and not isinstance(profiles, Profiles):
            raise InvalidArgument(
                "a certified run needs users' factors that were not fitted to these ratings: give "
                "profiles=Profiles.public(…) or Profiles.from_release(…), or take mode='paper', a claim"
            )
        if self.kind != "certified" and profiles is not None:
            raise InvalidArgument(
                "profiles are for a certified run: leave them out, or give a finite epsilon and no mode"
            )
        options = RunOptions(thread_count(n_threads), tuple(callbacks), checkpoint, None, ledger)
        taken = self._taken(ratings, scale=scale, items=items, columns=columns)
        return self._run(taken, options, n_threads, executor, profiles)

    def _train(self, ratings: AnyRatings, options: RunOptions, profiles: Profiles | None = None) -> Model:
        if self.kind == "certified":
            assert profiles is not None
            return fit_certified(self, ratings, profiles, options)
        assert isinstance(ratings, Ratings)
        if self.kind == "none":
            model = self._quick()._train(ratings, options)
            return replace(model, release=replace(model.release, configuration=self.configuration()))
        return fit_published(self, ratings, options)

    def report(self, model: Model, user_budgets: Mapping[Any, float] | None = None) -> dict[str, Any]:
        """Return what the parts of a certified run cost, each by itself."""
        guarantee = model.guarantee
        if guarantee.mode != "certified":
            return {}
        assert guarantee.delta is not None
        *before, _ = guarantee.events
        profiles = rounded_up(epsilon_of(before, guarantee.delta, neighbours="replace")) if before else 0.0
        return {"parts": {"items": self.budget.epsilon, "profiles": profiles}}

    def sections(self, report: Mapping[str, Any]) -> Iterator[Section]:
        """Yield what the parts of a certified run cost."""
        if "parts" in report:
            costs = {
                "item factors, given profiles": report["parts"]["items"],
                "profiles of users": report["parts"]["profiles"],
                "together": report["epsilon"],
            }
            title = f"Paid for one rating's value: epsilon at delta {report['delta']:g}"
            yield Section(title, ("", "epsilon"), tuple(costs.items()))


def _without_usual_noise(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts without noise other than Gaussian: older files, which know no other, stay the same."""
    return {name: value for name, value in facts.items() if name != "noise" or value == "gaussian"}
