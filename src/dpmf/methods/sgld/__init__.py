"""Matrix factorization by posterior sampling: stochastic gradient Langevin dynamics (Liu, Wang and Smola 2015).

A rating is predicted as mean + b_i + c_j + u_i·v_j, and factors and biases have Gaussian priors. A chain draws all of
them from their posterior distribution; see `dpmf.kernels.sgld` for the density and for the steps. Without a finite
epsilon, item factors are averaged over many draws and the precisions of the priors are learnt. With one, mode "paper"
releases a draw from a flattened posterior, on the strength of a claim (`dpmf.methods.sgld.claim`), and mode "certified"
takes other steps, of clipped gradients with noise, which are proven to be private (`dpmf.methods.sgld.certified`).
Either way everybody's own factors are then fitted to their own ratings (the paper's equation 5), as a release lets
anybody do for themselves.

>>> from dpmf.ratings import Ratings, Scale
>>> ratings = Ratings.of([1, 1, 2, 2], [1, 2, 1, 2], [5, 1, 4, 2], scale=(1, 5))
>>> model = SGLD(n_factors=2, n_epochs=5, budget=Budget(math.inf)).fit(ratings, n_threads=1)
>>> len(model.history)
5
"""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.executor import Executor
from dpmf.engine.resources import Resources
from dpmf.engine.store import AnyRatings, StoredRatings, counts_of
from dpmf.errors import InvalidArgument
from dpmf.methods.base import RunOptions, Section, settings_of
from dpmf.methods.certified.personal import personal_epsilons
from dpmf.methods.certified.script import Crowd
from dpmf.methods.certified.steps import Centre, PublicSteps, SteppingMethod
from dpmf.methods.checks import check_given, check_private, check_sizes, not_negative, positive, whole
from dpmf.methods.counted import counted_ratings
from dpmf.methods.sgld.certified import CertifiedSettings, SteppingPlan, stepping_plan
from dpmf.methods.sgld.chain import Chain
from dpmf.methods.sgld.claim import Bound, paid_section
from dpmf.methods.sgld.defaults import MEANINGLESS, ChainSettings, ClaimSettings, defaults_for, gentle_rate
from dpmf.methods.sgld.draws import BIAS_PRIOR, start_chain
from dpmf.methods.sgld.run import fit_sampled
from dpmf.methods.units import USUAL_WIDTH
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget
from dpmf.ratings import Items, Ratings, Scale

if TYPE_CHECKING:
    from dpmf.methods.sgld.convergence import Convergence

MOST_FACTORS = 1 << 16
MOST_EPOCHS, MOST_TABLE = 1 << 20, 1 << 28


@dataclass(frozen=True)
class SGLD(SteppingMethod):
    """Configuration of the method: public facts only.

    Attributes:
        n_factors: K, the length of the factor vectors.
        n_epochs: how often every rating is visited; in mode "certified", the number of steps.
        budget: how much privacy loss is allowed, or claimed; `Budget(math.inf)` says explicitly that nothing has to be
            private. The claim of mode "paper" has no delta, and that of the budget is not used there.
        mode: what kind of guarantee a finite epsilon is: "certified", or "paper", a published claim.
        learning_rate: h, the size of the steps in the first epoch, for a scale as wide as 1 to 5. It is the paper's
            eta times the number of ratings. In mode "certified", the standard deviation of the noise that all steps
            together leave on a factor, which the steps are in proportion to. None chooses, as below.
        decay: gamma; the step size in an epoch is learning_rate / epoch^gamma. Not in mode "certified".
        regularization: the precision of the priors of factors, Λ in exp(-Λ u²); where it is learnt, the one to begin
            with. In mode "certified", the penalty on users' factors.
        temperature: zeta; the posterior is raised to the power 1/zeta. Below 1 a run of mode "paper" costs more than
            claimed. Not in mode "certified".
        n_samples: how many draws, one after each of the last epochs, item factors are averaged over: by default half
            of the epochs. In mode "paper" it is 1 by default, and all draws share epsilon.
        table: how many normal numbers the table has that noise is read from; 0 for fresh numbers, which is slower. Not
            in mode "certified".
        cap: how many ratings of a user count at most, chosen at random; for a finite epsilon only.
        kappa: how far beyond the scale predictions count as they are. Like rho, in mode "paper" only.
        rho: the greatest weight of a user; those with few ratings may weigh more than 1 if it is.
        sampling_rate: with what probability a user takes part in a step; in mode "certified" only.
        items_public: whether item ids that were found in the data are asserted to be a public list.
        seed: fixes the start, the order, which ratings count, and without a finite epsilon the noise.
        noise_seed: research only; the same noise every time, and no claim.
    """

    name: ClassVar[str] = "sgld"
    modes: ClassVar[tuple[str, ...]] = ("certified", "paper")
    takes: ClassVar[Mapping[str, tuple[str, ...]]] = {"chains": ("none", "paper")}
    personal_claim: ClassVar[bool] = True

    n_factors: int | None = None
    n_epochs: int | None = None
    budget: Budget = field(kw_only=True)
    mode: Literal["certified", "paper"] = "certified"
    learning_rate: float | None = None
    decay: float | None = None
    regularization: float | None = None
    temperature: float = 1.0
    n_samples: int | None = None
    table: int | None = None
    cap: int | None = None
    kappa: float | None = None
    rho: float | None = None
    sampling_rate: float | None = None
    items_public: bool = False
    seed: int = 0
    noise_seed: int | None = None

    def __post_init__(self) -> None:
        check_private(self)
        positive("temperature", self.temperature)
        check_given(self, positive, "learning_rate", "regularization", "rho")
        check_given(self, not_negative, "decay", "kappa")
        check_given(self, whole, "cap")
        check_sizes(self, n_factors=MOST_FACTORS, n_epochs=MOST_EPOCHS, n_samples=self.n_epochs or MOST_EPOCHS)
        if self.table is not None:
            whole("table", self.table, least=0, most=MOST_TABLE)
        if self.budget.is_finite and self.budget.unit != "user":
            raise InvalidArgument(f"unit={self.budget.unit!r}: SGLD protects users")
        kind = "an infinite epsilon" if not self.budget.is_finite else f"mode={self.mode!r}"
        for name in MEANINGLESS[self.kind]:
            if getattr(self, name) is not None:
                raise InvalidArgument(f"{name} means nothing with {kind}: leave it out")
        if self.kind == "certified":
            if self.temperature != 1:
                raise InvalidArgument(f"temperature={self.temperature!r} means nothing with {kind}: leave it out")
            if self.sampling_rate is not None and not (self.sampling_rate > 0 and self.sampling_rate < 1):
                raise InvalidArgument(f"sampling_rate={self.sampling_rate!r} should be a number between 0 and 1")

    @property
    def kind(self) -> str:
        """The mode, and "none" without a finite epsilon."""
        return self.mode if self.is_private else "none"

    @property
    def streams(self) -> bool:
        """Whether ratings may stay on disk: always."""
        return True

    @property
    def n_turns(self) -> int | None:
        """How many epochs, or steps, there are."""
        return int(self.facts()["n_epochs"])

    @property
    def folds_in(self) -> bool:
        """Whether users' factors are fitted to their own ratings alone: always."""
        return True

    def usual(self) -> Mapping[str, Any]:
        """Return what is chosen for fields that are left open."""
        usual = defaults_for(self.kind, self.n_factors, self.n_epochs)
        if self.kind == "certified" or self.learning_rate is not None:
            return usual
        given = {name: getattr(self, name) for name in usual}
        chosen = {name: usual[name] if value is None else value for name, value in given.items()}
        widest = None
        if self.is_private:
            # In units every scale is as wide, and kappa may be next to nothing: no bound has a larger s than this.
            claimed = {**chosen, "kappa": 0.0, "temperature": self.temperature}
            widest = self._bound(settings_of(ClaimSettings, claimed), USUAL_WIDTH)
        return {**usual, "learning_rate": gentle_rate(chosen["regularization"], widest)}

    def resolve(self) -> ChainSettings:
        """Return the settings of a chain, whatever was left open chosen from public facts alone."""
        settings = settings_of(ChainSettings, self.facts())
        if settings.learning_rate * max(settings.regularization, BIAS_PRIOR) > 1:
            raise InvalidArgument(
                f"learning_rate={settings.learning_rate:g} is too large for regularization="
                f"{settings.regularization:g}: neither it nor their product must exceed 1"
            )
        return settings

    @property
    def spreads(self) -> bool:
        """Whether it can run on the workers of a cluster: not with the claim, whose cap needs everybody's ratings."""
        return self.kind != "paper"

    def _train(self, ratings: AnyRatings, options: RunOptions) -> Model:
        if self.kind == "certified":
            return self.certify(ratings, options)
        if options.cluster is not None:
            from dpmf.methods.sgld.spread import sampled_on

            assert isinstance(ratings, StoredRatings)
            return sampled_on(self, ratings, options, options.cluster)
        return fit_sampled(self, ratings, options)

    def public_half(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> PublicSteps:
        """Return the public half of a certified run."""
        settings = settings_of(CertifiedSettings, self.facts())
        plan, how = self.plan_of(catalogue, scale, crowd), (settings.regularization, settings.n_samples)
        return PublicSteps(plan, scale, catalogue.ids.keys, Centre(scale.middle), *how, self.seed)

    def plan_of(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> SteppingPlan:
        """Return the plan of a certified run."""
        return stepping_plan(self, len(catalogue), settings_of(CertifiedSettings, self.facts()), crowd)

    @classmethod
    def private_fields(cls, mode: str, epsilon: float, *args: Any, **more: Any) -> dict[str, Any]:
        """Return the fields that an epsilon sets; without a finite one there is no mode to choose."""
        return super().private_fields("paper" if math.isinf(epsilon) else mode, epsilon, *args, **more)

    @property
    def is_private(self) -> bool:
        """Whether there is a finite epsilon, be it a claim only."""
        return self.budget.is_finite

    def bound(self, scale: Scale) -> Bound:
        """Return how much one user can matter in a private run on a scale."""
        return self._bound(settings_of(ClaimSettings, self.facts()), scale.hi - scale.lo)

    def _bound(self, claimed: ClaimSettings, width: float) -> Bound:
        limits = claimed.cap, claimed.kappa, claimed.rho
        return Bound(self.budget.epsilon, width, *limits, claimed.temperature, claimed.n_samples)

    @contextlib.contextmanager
    def prepared(
        self, ratings: AnyRatings, user_budgets: Mapping[Any, float] | None
    ) -> Iterator[tuple[AnyRatings, NDArray[np.float64], Bound | None]]:
        """Yield the ratings that count, the weight of every user, and how much one can matter, if that is bounded.

        Whoever has weight 0 is not in the data at all.
        """
        if not self.is_private:
            yield ratings, np.ones(ratings.n_users), None
            return
        bound = self.bound(ratings.scale)
        counts = np.minimum(counts_of(ratings)[0], bound.cap)
        weights = bound.weights(counts, personal_epsilons(ratings.user_ids, self.budget, user_budgets))
        if not counts[weights > 0].any():
            raise InvalidArgument("there are no ratings to train on: everybody wants to be left out")
        with counted_ratings(ratings, bound.cap, weights > 0, seed=self.seed) as counted:
            yield counted, weights, bound

    def chain_on(
        self, counted: AnyRatings, weights: NDArray[np.float64], bound: Bound | None, resources: Resources
    ) -> Chain:
        """Return a chain at its start, on what `prepared` returns."""
        settings = self.resolve()
        noise_seed = self.seed if self.noise_seed is None else self.noise_seed
        if self.is_private and self.noise_seed is None:
            noise_seed = secrets.randbits(63)
        return start_chain(counted, weights, bound, resources, settings, seed=self.seed, noise_seed=noise_seed)

    def advance(self, chain: Chain, epoch: int, executor: Executor) -> EpochRecord:
        """Carry out an epoch, counted from 1."""
        rate = self.resolve().rate(epoch)
        record = chain.run_epoch(epoch, rate, executor)
        if not self.is_private:
            chain.learn_priors(epoch, most=1 / rate)
        return record

    def paid(self, model: Model, user_budgets: Mapping[Any, float] | None = None) -> dict[str, Any]:
        """Return what users pay in a private run, for the holder of the data; see `Bound.paid`."""
        bound = self.bound(model.release.scale)
        counts = np.minimum(np.diff(model.seen_indptr), bound.cap)
        weights = bound.weights(counts, personal_epsilons(model.user_ids, self.budget, user_budgets))
        return bound.paid(counts, weights, model.history[-1].train_rmse ** 2)

    def report(self, model: Model, user_budgets: Mapping[Any, float] | None = None) -> dict[str, Any]:
        """Return what users pay, in mode "paper"."""
        if model.guarantee.mode != "paper":
            return {}
        return {"user_epsilons": self.paid(model, user_budgets)}

    def sections(self, report: Mapping[str, Any]) -> Iterator[Section]:
        """Yield what users pay, in mode "paper"."""
        if report["mode"] == "paper":
            yield paid_section(report["user_epsilons"])

    def diagnose(
        self,
        ratings: Ratings,
        *,
        n_chains: int,
        n_threads: int | None = None,
        user_budgets: Mapping[Any, float] | None = None,
    ) -> Convergence:
        """Run more chains to see whether they agree; see `dpmf.methods.sgld.convergence`."""
        from dpmf.methods.sgld.convergence import diagnose

        return diagnose(self, ratings, n_chains=n_chains, n_threads=n_threads, user_budgets=user_budgets)
