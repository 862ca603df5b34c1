"""Alternating least squares, private with a proof: the certified method, and the default.

A rating is predicted as mean + b_i + c_j + u_i·v_j. Everybody fits their own b_i and u_i; c_j and v_j are made of sums
over everybody, which are released with noise. Nothing else that depends on a person leaves. With an infinite epsilon
it is plain alternating least squares, and not private. For implicit feedback, what counts is which items people have,
and not how they rate them: see `dpmf.methods.als.implicit`.

>>> from dpmf.privacy import Budget
>>> from dpmf.ratings.synthetic import make
>>> model = ALS(n_factors=2, n_epochs=2, budget=Budget(epsilon=5)).fit(make(100, 40), n_threads=1)
>>> print(model.guarantee)
(5.0, 1e-06)-DP per user, add-remove, certified; releases item factors, item biases and the configuration
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.cluster import Ray
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.methods.als.certified import PublicALS
from dpmf.methods.als.continued import (
    CONTINUES,
    assumption_of,
    before_of,
    check_start,
    n_factors_of,
    record_of,
    with_ranking_of,
)
from dpmf.methods.als.defaults import FACTORS, IMPLICIT_FACTORS, Settings, plain_defaults, private_defaults
from dpmf.methods.als.descriptions import described_publicly, described_record
from dpmf.methods.als.implicit import (
    IMPLICIT_ASSUMPTION,
    confidence_of,
    fit_implicit,
    fit_implicit_on,
    implicit_release,
)
from dpmf.methods.als.implicit_certified import PublicImplicitALS
from dpmf.methods.als.plain import fit_explicit, fit_explicit_on
from dpmf.methods.als.plan import ALSPlan, ImplicitPlan
from dpmf.methods.als.popularity import by_popularity, orders_by_ratings
from dpmf.methods.base import Callback, RunOptions
from dpmf.methods.certified.method import CertifiedMethod, Given
from dpmf.methods.certified.plan import FactorRule
from dpmf.methods.certified.planned import Shape
from dpmf.methods.certified.script import Crowd
from dpmf.methods.checks import check_private, not_negative, positive, public_facts, whole
from dpmf.model import Model, Release, Ridge
from dpmf.model.learnt import LEARNT
from dpmf.privacy import Budget, Guarantee
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.features import features_of, further_of
from dpmf.ratings.table import MOST_COUNT
from dpmf.ratings.trim import trimmed

MOST_PRIVATE_FACTORS = 256
MOST_PRIVATE_ROUNDS = 10_000
_OF_IMPLICIT = ("alpha", "counts", "most_count")
_FACTORS_CHOSEN = "The number of factors was not declared: it follows from the number of users as released, with noise."


@dataclass(frozen=True)
class ALS(CertifiedMethod):
    """Configuration of the method: public facts only.

    Attributes:
        n_factors: K, the length of the factor vectors; 0 for item biases alone. None chooses.
        n_epochs: the number of rounds. None chooses.
        budget: how much privacy loss is allowed; `Budget(math.inf)` says explicitly that nothing has to be private.
        regularization: the penalty on users' factors. None chooses.
        feedback: whether ratings count ("explicit"), or which items people have, whatever their rating ("implicit").
        alpha: for implicit feedback, how much more an item that a person has weighs than one that they do not have.
            None chooses.
        counts: for implicit feedback of which it is known how often people had an item, what larger counts are worth in
            people's fits: a quarter of alpha for every doubling ("log"), alpha times the count ("linear"), or nothing
            ("ignored"). None is "log". Durations are counts, too, in a unit of which the shortest counts as 1.
        most_count: the count from which on an item weighs no more. None chooses.
        moments: whether the users' second moments are measured once for all items ("shared") or for every item
            ("per-item"); the latter costs noise, and pays for large epsilon only.
        cap: how many ratings of a user count towards the sums at most; None for all. The user's weight is the same.
        traits: whether people's own tastes go by what the list of items says, such as genres and years, too, in a
            certified run on ratings.
        items_public: whether item ids that were found in the data are asserted to be a public list.
        seed: fixes the public start, and which ratings count if there is a cap.
        noise_seed: research only; the same noise every time, and no guarantee.
    """

    name: ClassVar[str] = "als"
    modes: ClassVar[tuple[str, ...]] = ("certified",)
    feedbacks: ClassVar[tuple[str, ...]] = ("explicit", "implicit")
    turn: ClassVar[str] = "round"
    takes: ClassVar[Mapping[str, tuple[str, ...]]] = {"start": ("certified",)}
    caps_fits: ClassVar[bool] = False

    n_factors: int | None = None
    n_epochs: int | None = None
    budget: Budget = field(kw_only=True)
    regularization: float | None = None
    feedback: Literal["explicit", "implicit"] = "explicit"
    alpha: float | None = None
    counts: Literal["log", "linear", "ignored"] | None = None
    most_count: float | None = None
    moments: Literal["shared", "per-item"] = "shared"
    cap: int | None = None
    traits: bool = True
    items_public: bool = False
    seed: int = 0
    noise_seed: int | None = None

    def __post_init__(self) -> None:
        check_private(self)
        private = self.budget.is_finite
        if self.n_factors is not None:
            whole("n_factors", self.n_factors, least=0, **({"most": MOST_PRIVATE_FACTORS} if private else {}))
        if self.n_epochs is not None:
            whole("n_epochs", self.n_epochs, **({"most": MOST_PRIVATE_ROUNDS} if private else {}))
        if self.cap is not None:
            whole("cap", self.cap)
        if self.regularization is not None:
            positive("regularization", self.regularization)
        if self.moments not in ("shared", "per-item"):
            raise InvalidArgument(f"moments={self.moments!r} is not known: choose shared or per-item")
        if self.feedback not in ("explicit", "implicit"):
            raise InvalidArgument(f"feedback={self.feedback!r} is not known: choose explicit or implicit")
        if self.alpha is not None:
            not_negative("alpha", self.alpha)
        if self.counts not in (None, "log", "linear", "ignored"):
            raise InvalidArgument(f"counts={self.counts!r} is not known: choose log, linear or ignored")
        if self.most_count is not None:
            positive("most_count", self.most_count)
            if not 1 <= self.most_count <= MOST_COUNT:
                raise InvalidArgument(f"most_count={self.most_count!r} should be from 1 to {MOST_COUNT:.0f}")
        meaningless = {
            **{name: getattr(self, name) is not None and not self.is_implicit for name in _OF_IMPLICIT},
            "moments": self.moments != "shared" and self.is_implicit,
        }
        for name, given in meaningless.items():
            if given:
                raise InvalidArgument(f"{name} means nothing for {self.feedback} feedback: leave it out")
        if self.budget.unit != "user":
            raise InvalidArgument(f"unit={self.budget.unit!r}: ALS protects users, which protects ratings too")

    @property
    def kind(self) -> str:
        """What kind of run it is: "certified", or "none" with an infinite epsilon."""
        return "certified" if self.budget.is_finite else "none"

    @property
    def is_implicit(self) -> bool:
        """Whether it counts which items people have, not how they rate them."""
        return self.feedback == "implicit"

    @property
    def n_turns(self) -> int | None:
        """How many rounds there are at most."""
        return self.resolve().n_epochs

    @property
    def most_factors(self) -> int:
        """The number of factors, or the most that a private run chooses."""
        return self.resolve().factors.most

    @property
    def folds_in(self) -> bool:
        """Whether users' factors are fitted to their own ratings alone: always."""
        return True

    @property
    def spreads(self) -> bool:
        """Whether it can run on the workers of a cluster: always."""
        return True

    def without_factors(self) -> ALS | None:
        """Return a run of item biases, or of popularity, alone; without privacy biases are no reference."""
        if self.is_implicit:
            return replace(self, n_factors=0, alpha=None)
        return replace(self, n_factors=0, traits=False) if self.kind == "certified" else None

    def resolve(self) -> Settings:
        """Return the settings of a run, whatever was left open chosen from public facts alone."""
        facts, rule = self.facts(), IMPLICIT_FACTORS if self.is_implicit else FACTORS
        if facts["n_factors"] is not None:
            rule = FactorRule.exactly(facts["n_factors"])
        return Settings(rule, facts["n_epochs"], facts["regularization"], facts["alpha"] or 0.0)

    def usual(self) -> Mapping[str, Any]:
        """Return what is chosen for fields that are left open.

        Factors of a private run stay open: it chooses them once it has released how many users there are.
        """
        if self.budget.is_finite:
            return private_defaults(self.budget, self.is_implicit)
        return plain_defaults(self.is_implicit)

    def configuration(self) -> dict[str, Any]:
        """Return the public facts for a release."""
        facts = super().configuration()
        if not self.is_implicit:
            del facts["alpha"]
        if self.is_implicit or self.kind != "certified":
            del facts["traits"]
        for name in ("counts", "most_count"):  # what was left open, or means nothing, follows from the data
            if facts[name] is None:
                del facts[name]
        return facts

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
        start: Release | None = None,
    ) -> Model:
        """Train on ratings.

        Args:
            ratings, scale, items, columns, n_threads, callbacks, checkpoint, user_budgets, ledger, executor: as in
                `Method.fit`.
            start: an earlier certified release to start from, for a certified run on ratings that are not in it. What
                is released then is about differences from it; see docs/als.md.
        """
        options = RunOptions(thread_count(n_threads), tuple(callbacks), checkpoint, user_budgets, ledger)
        taken = self._taken(ratings, scale=scale, items=items, columns=columns)
        if start is None:
            return self._run(taken, options, n_threads, executor)
        if self.kind != "certified" or self.is_implicit:
            raise InvalidArgument("only a certified run on ratings can start from an earlier release: leave start out")
        if self.moments != "shared":
            raise InvalidArgument(f"moments={self.moments!r} cannot start from an earlier release: leave it out")
        check_start(start, self.budget, taken.scale)
        n_factors = n_factors_of(start)
        if self.n_factors not in (None, n_factors):
            raise InvalidArgument(
                f"n_factors={self.n_factors}: the release to start from has {n_factors}, and so has this run"
            )
        return replace(self, n_factors=n_factors)._run(taken, options, n_threads, executor, start)

    def _train(self, ratings: AnyRatings, options: RunOptions, start: Release | None = None) -> Model:
        if self.kind == "certified":
            return self.certify(ratings, options, None if start is None else _starting_from(start, ratings.catalogue))
        self._check_counts(ratings.scale)
        if self.noise_seed is not None:
            raise InvalidArgument("noise_seed means nothing with an infinite epsilon: leave it out, or give a budget")
        if options.cluster is not None:
            assert isinstance(ratings, StoredRatings)
            fit_there = fit_implicit_on if self.is_implicit else fit_explicit_on
            return fit_there(ratings, self.configuration(), options, options.cluster)
        assert isinstance(ratings, Ratings)
        counted = ratings if self.cap is None else trimmed(ratings, self.cap, seed=self.seed)
        plain = fit_implicit if self.is_implicit else fit_explicit
        return plain(ratings, counted, self.configuration(), options)

    def check_declared(self, ratings: AnyRatings) -> None:
        """Refuse ratings whose catalogue, or what else is needed, is not declared; and counts that are none."""
        super().check_declared(ratings)
        self._check_counts(ratings.scale)

    def _check_counts(self, scale: Scale) -> None:
        asked = {"counts": self.counts in ("log", "linear"), "most_count": self.most_count is not None}
        for name, given in asked.items():
            if given and not scale.counts:
                raise InvalidArgument(
                    f"{name}={getattr(self, name)!r} is for counts, and the data have none: name their column, such as "
                    "count=plays, or leave it out"
                )

    @property
    def label(self) -> str:
        """What checkpoints call a certified run."""
        return "private als"

    def public_half(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> PublicALS | PublicImplicitALS:
        """Return the public half of a certified run."""
        settings = self.resolve()
        rule = settings.factors if crowd is None else settings.factors.settled(self.budget.epsilon, crowd.n_users)
        facts = len(catalogue), rule, settings.n_epochs, settings.regularization, self.budget, crowd
        described = features_of(catalogue), further_of(catalogue)
        if self.is_implicit:
            confidence = confidence_of(self.facts(), scale)
            return PublicImplicitALS(ImplicitPlan(*facts, *confidence), catalogue.ids.keys, self.seed, *described)
        plan = ALSPlan(*facts, per_item=self.moments == "per-item")
        return PublicALS(plan, scale, catalogue.ids.keys, self.seed, *described, with_traits=self.traits)

    def shape_of(self, plan: Any, headcount: float | None) -> Shape:
        """Return the sizes of what a plan releases."""
        n_factors = plan.released_factors(headcount)
        if self.is_implicit:
            return Shape((n_factors,))
        return Shape((n_factors, max(n_factors, 1)), n_ranked=(0,), if_alike=True, leanings=self.traits)

    def assumptions(self, catalogue: Items, crowd: Crowd | None = None) -> Sequence[str]:
        """Return what a guarantee rests on, one sentence each."""
        public, listed = public_facts(catalogue)
        chosen = [_FACTORS_CHOSEN] if self.n_factors is None and crowd is None else []
        if self.is_implicit:
            return [IMPLICIT_ASSUMPTION, *chosen, listed, *described_publicly(catalogue)]
        return [public, *chosen, listed, *described_publicly(catalogue)]

    def release_of(
        self, public: Any, catalogue: Items, scale: Scale, configuration: Mapping[str, Any], guarantee: Guarantee
    ) -> Release:
        """Return the release of what the public half found."""
        configuration = {**configuration, **described_record(catalogue)}
        if isinstance(public, PublicImplicitALS):
            numbers = public.ridge, public.plan.confidence
            recorded = {**configuration, "n_factors": public.V.shape[1], LEARNT: public.learnt().record()}
            return implicit_release(catalogue, public.V, public.c, *numbers, recorded, guarantee)
        bias, penalty = public.ridge
        learnt, factors = public.learnt(), public.item_factors
        configuration = {**configuration, "n_factors": factors.shape[1] - learnt.beside, LEARNT: learnt.record()}
        release = Release(
            items=catalogue,
            scale=scale,
            mean=public.mean,
            item_factors=factors,
            item_biases=public.c,
            ridge=Ridge(bias=bias, factors=penalty),
            configuration=configuration,
            guarantee=guarantee,
        )
        return release if orders_by_ratings(learnt, public.c) else by_popularity(release, public.counts)


def _starting_from(start: Release, catalogue: Items) -> Given:
    """Return what a run is given by an earlier release."""
    before = before_of(start, catalogue)

    def prepare(public: PublicALS) -> PublicALS:
        public.start_from(before)
        return public

    complete = functools.partial(with_ranking_of, start)
    return Given(prepare, [assumption_of(start)], {CONTINUES: record_of(start)}, start.guarantee, complete)
