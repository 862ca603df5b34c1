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

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.grid import checksum_of
from dpmf.engine.store import StoredRatings
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.files import digest_of
from dpmf.methods.als.central import CentralRounds
from dpmf.methods.als.implicit import IMPLICIT_ASSUMPTION, fit_observations, implicit_defaults, model_of, release_of
from dpmf.methods.als.implicit_certified import ObservedRounds
from dpmf.methods.als.implicit_plan import ObservedPlan
from dpmf.methods.als.plain import BIAS_PART, EXPONENT, USUAL_WIDTH, factorize_ratings
from dpmf.methods.als.plan import Plan, private_defaults
from dpmf.methods.certified.run import private_run
from dpmf.methods.certified.shares import personal_shares
from dpmf.methods.checks import declared, not_negative, positive, private_method, public_facts, whole
from dpmf.methods.snapshots import fingerprint_of, identity_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Budget, Guarantee
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings
from dpmf.ratings.trim import trimmed

logger = logging.getLogger(__name__)
Callback = Callable[[EpochRecord], bool | None]
MOST_PRIVATE_FACTORS = 256
MOST_PRIVATE_ROUNDS = 10_000
_PLAIN_DEFAULTS: dict[str, Any] = {"n_factors": 128, "n_epochs": 10, "regularization": 0.7}
_FACTORS_CHOSEN = "The number of factors was not declared: it follows from the number of users as released, with noise."
_RELEASES = ("item factors", "item biases", "the configuration")


@dataclass(frozen=True)
class ALS:
    """Configuration of the method: public facts only.

    Attributes:
        n_factors: K, the length of the factor vectors; 0 for item biases alone. None chooses.
        n_epochs: the number of rounds. None chooses.
        budget: how much privacy loss is allowed; `Budget(math.inf)` says explicitly that nothing has to be private.
        regularization: the penalty on users' factors. None chooses.
        feedback: whether ratings count ("explicit"), or which items people have, whatever their rating ("implicit").
        alpha: for implicit feedback, how much more an item that a person has weighs than one that they do not have.
            None chooses.
        moments: whether the users' second moments are measured once for all items ("shared") or for every item
            ("per-item"); the latter costs noise, and pays for large epsilon only.
        cap: how many ratings of a user count towards the sums at most; None for all. The user's weight is the same.
        items_public: whether item ids that were found in the data are asserted to be a public list.
        seed: fixes the public start, and which ratings count if there is a cap.
        noise_seed: research only; the same noise every time, and no guarantee.
    """

    n_factors: int | None = None
    n_epochs: int | None = None
    budget: Budget | None = None
    regularization: float | None = None
    feedback: Literal["explicit", "implicit"] = "explicit"
    alpha: float | None = None
    moments: Literal["shared", "per-item"] = "shared"
    cap: int | None = None
    items_public: bool = False
    seed: int = 0
    noise_seed: int | None = None

    def __post_init__(self) -> None:
        private_method(self)
        assert self.budget is not None
        if self.n_factors is not None:
            whole("n_factors", self.n_factors, least=0)
        for name in ("n_epochs", "cap"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name))
        if self.regularization is not None:
            positive("regularization", self.regularization)
        if self.moments not in ("shared", "per-item"):
            raise InvalidArgument(f"moments={self.moments!r} is not known: choose shared or per-item")
        if self.feedback not in ("explicit", "implicit"):
            raise InvalidArgument(f"feedback={self.feedback!r} is not known: choose explicit or implicit")
        if self.alpha is not None:
            not_negative("alpha", self.alpha)
        for name, given in (("alpha", self.alpha is not None and not self.is_implicit),
                            ("moments", self.moments != "shared" and self.is_implicit)):  # fmt: skip
            if given:
                raise InvalidArgument(f"{name} means nothing for {self.feedback} feedback: leave it out")
        if self.budget.unit != "user":
            raise InvalidArgument(f"unit={self.budget.unit!r}: ALS protects users, which protects ratings too")

    @property
    def is_implicit(self) -> bool:
        """Whether it counts which items people have, not how they rate them."""
        return self.feedback == "implicit"

    def fit(
        self,
        ratings: Ratings | StoredRatings,
        *,
        n_threads: int | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: Checkpoint | None = None,
        user_budgets: Mapping[Any, float] | None = None,
        ledger: Ledger | None = None,
    ) -> Model:
        """Train on ratings.

        Args:
            ratings: what to learn from, in memory; a private run needs a declared catalogue, and, unless feedback is
                implicit, a declared scale.
            n_threads: all CPUs this process may use by default.
            callbacks: called with the record of each round when it ends; all rounds are carried out, because a
                guarantee says beforehand what will be released.
            checkpoint: where to keep snapshots. A run that is not private goes on from them to the same result; one
                that is, without the round that it was stopped in, for no noise is drawn twice.
            user_budgets: the epsilon of users who want another one than that of the budget, at the budget's delta; a
                larger one is no use and counts as that of the budget.
            ledger: where to enter what the run will release, before any noise is drawn.
        """
        if isinstance(ratings, StoredRatings):
            raise InvalidArgument("ALS needs the ratings in memory: allow more, or leave --memory out")
        if not len(ratings):
            raise InvalidArgument("there are no ratings to train on")
        assert self.budget is not None
        chosen, threads = self.chosen(), thread_count(n_threads)
        if self.budget.is_finite:
            return chosen._fit_privately(ratings, threads, tuple(callbacks), checkpoint, user_budgets, ledger)
        chosen._refuse_what_needs_a_budget(user_budgets, ledger)
        return chosen._fit_plainly(ratings, threads, tuple(callbacks), checkpoint)

    def chosen(self) -> ALS:
        """Return the same configuration with whatever was left open chosen, from public facts alone.

        Factors of a private run stay open: it chooses them once it has released how many users there are.
        """
        assert self.budget is not None
        if self.is_implicit:
            usual = implicit_defaults(self.budget)
        else:
            usual = private_defaults() if self.budget.is_finite else _PLAIN_DEFAULTS
        return replace(self, **{name: value for name, value in usual.items() if getattr(self, name) is None})

    def _refuse_what_needs_a_budget(self, user_budgets: Mapping[Any, float] | None, ledger: Ledger | None) -> None:
        for name, given in (("user_budgets", user_budgets), ("ledger", ledger), ("noise_seed", self.noise_seed)):
            if given is not None:
                raise InvalidArgument(f"{name} means nothing with an infinite epsilon: leave it out, or give a budget")

    def _fit_plainly(
        self, ratings: Ratings, n_threads: int, callbacks: tuple[Callback, ...], checkpoint: Checkpoint | None
    ) -> Model:
        """Alternate exact solutions for users and for items."""
        assert self.n_factors is not None
        assert self.n_epochs is not None
        assert self.regularization is not None
        counted = ratings if self.cap is None else trimmed(ratings, self.cap, seed=self.seed)
        if self.is_implicit:
            return fit_observations(ratings, counted, self._configuration(), n_threads, callbacks, checkpoint)
        found = factorize_ratings(
            counted, n_factors=self.n_factors, n_epochs=self.n_epochs, regularization=self.regularization,
            seed=self.seed, n_threads=n_threads, callbacks=callbacks, checkpoint=checkpoint,
        )  # fmt: skip
        unit = (ratings.scale.hi - ratings.scale.lo) / USUAL_WIDTH
        release = Release(
            items=ratings.catalogue,
            scale=ratings.scale,
            mean=found.mean,
            item_factors=found.item_factors,
            item_biases=found.item_biases,
            ridge=Ridge(BIAS_PART * self.regularization, self.regularization * unit, EXPONENT),
            configuration=self._configuration(),
            guarantee=Guarantee.none(),
        )
        return Model(
            release, ratings.user_ids, found.user_factors, found.user_biases, ratings.indptr, ratings.items,
            found.history,
        )  # fmt: skip

    def _fit_privately(
        self,
        ratings: Ratings,
        n_threads: int,
        callbacks: tuple[Callback, ...],
        checkpoint: Checkpoint | None,
        user_budgets: Mapping[Any, float] | None,
        ledger: Ledger | None,
    ) -> Model:
        assert self.budget is not None
        declared(ratings, self.items_public, needs_scale=not self.is_implicit)  # else the scale is not told
        plan = self._plan(ratings.n_items)
        events = plan.events()
        noise = Noise(self.noise_seed)
        if noise.seeded:
            logger.warning("%s", SEEDED)
        guarantee = Guarantee.certified_by(
            self.budget, events, releases=_RELEASES, assumptions=self._assumptions(ratings),
            seeded=noise.seeded, personal=bool(user_budgets),
        )  # fmt: skip
        shares = personal_shares(ratings.user_ids, self.budget, events, user_budgets)
        counted = ratings if self.cap is None else trimmed(ratings, self.cap, seed=self.seed)
        identity = partial(self._identity, ratings, shares, guarantee)
        with private_run(checkpoint, identity, plan.stages(), noise.seeded) as run:
            run.enter(ledger, ratings.name or "release", guarantee)
            mechanism = Mechanism(events, noise)
            state: CentralRounds | ObservedRounds
            if isinstance(plan, ObservedPlan):
                state = ObservedRounds(plan, ratings, counted, shares, mechanism, self.seed, n_threads)
            else:
                state = CentralRounds(plan, ratings, counted, shares, mechanism, self.seed, n_threads)
            history = run.carry_out(state, callbacks)
            mechanism.finish()
        return self._model(ratings, state, guarantee, history)

    def _identity(self, ratings: Ratings, shares: NDArray[np.float64], guarantee: Guarantee) -> dict[str, Any]:
        """Return what makes two private runs the same run."""
        settings = {"name": "private als", **asdict(self)}
        del settings["budget"]  # stands by itself, so that a refusal names it
        return identity_of(
            settings, ratings, fingerprint_of(ratings), budget=str(self.budget),
            user_budgets=f"{checksum_of((shares,)):08x}", guarantee=digest_of(guarantee.to_json()),
        )  # fmt: skip

    def _plan(self, n_items: int) -> Plan | ObservedPlan:
        assert self.budget is not None
        assert self.n_epochs is not None
        assert self.regularization is not None
        if self.n_factors is not None:
            whole("n_factors", self.n_factors, least=0, most=MOST_PRIVATE_FACTORS)
        whole("n_epochs", self.n_epochs, most=MOST_PRIVATE_ROUNDS)
        if self.is_implicit:
            assert self.alpha is not None
            return ObservedPlan(n_items, self.n_factors, self.n_epochs, self.regularization, self.alpha, self.budget)
        return Plan(
            n_items, self.n_factors, self.n_epochs, self.moments == "per-item", self.regularization, self.budget
        )  # fmt: skip

    def _assumptions(self, ratings: Ratings) -> list[str]:
        public, catalogue = public_facts(ratings.catalogue)
        return [
            IMPLICIT_ASSUMPTION if self.is_implicit else public,
            *([_FACTORS_CHOSEN] if self.n_factors is None else []),
            catalogue,
        ]

    def _model(
        self,
        ratings: Ratings,
        state: CentralRounds | ObservedRounds,
        guarantee: Guarantee,
        history: tuple[EpochRecord, ...],
    ) -> Model:
        if isinstance(state, ObservedRounds):
            configuration = {**self._configuration(), "n_factors": state.V.shape[1]}
            release = release_of(ratings, state.V, state.c, state.ridge, state.plan.alpha, configuration, guarantee)
            return model_of(release, ratings, state.U, history)
        public, bias, factors = state.public, *state.public.ridge
        release = Release(
            items=ratings.catalogue,
            scale=ratings.scale,
            mean=public.mean,
            item_factors=public.V,
            item_biases=public.c,
            ridge=Ridge(bias=bias, factors=factors),
            configuration={**self._configuration(), "n_factors": public.V.shape[1]},
            guarantee=guarantee,
        )
        seen: tuple[NDArray[np.int64], NDArray[np.int32]] = (ratings.indptr, ratings.items)
        return Model(release, ratings.user_ids, state.fitted.U, state.fitted.b, *seen, history)

    def _configuration(self) -> dict[str, Any]:
        """Return the public facts; a noise seed is not written down, and the budget is in the guarantee."""
        hidden = ("budget", "noise_seed", *(() if self.is_implicit else ("alpha",)))
        return {"method": "als", **{name: value for name, value in asdict(self).items() if name not in hidden}}
