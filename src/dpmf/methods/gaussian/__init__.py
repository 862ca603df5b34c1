"""Matrix factorization by full gradients, with Gaussian noise on them (Mugdho and Imtiaz 2023, and a certified kin).

A rating is predicted as a centre plus u_i·v_j. Without a finite epsilon it is plain descent along full gradients
(`dpmf.methods.gaussian.descent`). With one there are two modes. "paper" takes the published steps: noise on the
gradient of user factors, none on that of item factors, and a claim that does not cover what is released
(`dpmf.methods.gaussian.claim`). "certified" swaps the sides: everybody's gradient with respect to items is clipped as a
whole, and noise goes on the sum, which is proven to be private for users (`dpmf.methods.gaussian.certified`).

>>> import math
>>> from dpmf.ratings import Ratings
>>> ratings = Ratings.of([1, 1, 2, 2], [1, 2, 1, 2], [5, 1, 4, 2], scale=(1, 5))
>>> model = GaussianGD(n_factors=2, n_epochs=5, budget=Budget(math.inf)).fit(ratings, n_threads=1)
>>> len(model.history)
5
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from dpmf.engine.store import AnyRatings
from dpmf.errors import InvalidArgument
from dpmf.methods.base import RunOptions, Section, settings_of
from dpmf.methods.certified.script import Crowd
from dpmf.methods.certified.steps import PublicSteps, SteppingMethod
from dpmf.methods.checks import check_given, check_private, check_sizes, not_negative, positive
from dpmf.methods.gaussian import certified
from dpmf.methods.gaussian.claim import Claim, claim_section, eps_i_for
from dpmf.methods.gaussian.defaults import MEANINGLESS, ClaimSettings, Settings, defaults_for
from dpmf.methods.gaussian.run import fit_descent
from dpmf.model import Model
from dpmf.privacy import Budget
from dpmf.ratings import Items, Ratings, Scale

MOST_FACTORS, MOST_EPOCHS = 1 << 16, 1 << 20
LEAST_EPS_I, MOST_EPS_I = 1e-9, 1e9  # beyond them noise, or the lack of it, is all there is


@dataclass(frozen=True)
class GaussianGD(SteppingMethod):
    """Configuration of the method: public facts only.

    Attributes:
        n_factors: K, the length of the factor vectors. None chooses, here and below; docs/gaussian.md says what.
        n_epochs: J, the number of iterations; with a `tolerance`, the most.
        budget: how much privacy loss is allowed, or claimed; `Budget(math.inf)` says explicitly that nothing has to be
            private. In mode "paper" its epsilon is the overall claim, and its delta is not used: that is `delta_r`.
        mode: what kind of guarantee a finite epsilon is: "certified", or "paper", a published claim. With an infinite
            one "paper" takes the published steps without noise, and "certified" quicker ones.
        learning_rate: in mode "paper" the paper's step size. With an infinite epsilon, relative to what the row with
            most ratings allows. In mode "certified", the standard deviation of the noise that all steps together leave
            on a factor.
        regularization: the penalty on squared factors; in mode "certified", on those of users. With an infinite epsilon
            it is multiplied by the root of a row's number of ratings.
        centering: what predictions start from: "raw" is 0, as published, and "mean" is the mean of the training
            ratings, or in mode "certified" the middle of the scale, with biases of users and items.
        clip: C, to what length item factors are clipped in the gradient of user factors; in mode "paper" only.
        eps_i: of one iteration, in mode "paper". None solves for it, so that all iterations together have the epsilon
            of the budget; given, it overrides that, and the claim is what follows from it.
        delta_i: of one iteration, in mode "paper".
        delta_r: of all iterations together, in mode "paper".
        tolerance: stop once the training error changes by less than this; the paper's is 1e-4. It makes the number of
            iterations depend on the ratings, which the claim does not cover, so there is none in mode "certified".
        items_public: whether item ids that were found in the data are asserted to be a public list.
        seed: fixes the start.
        noise_seed: research only; the same noise every time, and no claim.
    """

    name: ClassVar[str] = "gaussian"
    modes: ClassVar[tuple[str, ...]] = ("certified", "paper")
    turn: ClassVar[str] = "iteration"

    n_factors: int | None = None
    n_epochs: int | None = None
    budget: Budget = field(kw_only=True)
    mode: Literal["certified", "paper"] = "certified"
    learning_rate: float | None = None
    regularization: float | None = None
    centering: Literal["raw", "mean"] | None = None
    clip: float | None = None
    eps_i: float | None = None
    delta_i: float | None = None
    delta_r: float | None = None
    tolerance: float | None = None
    items_public: bool = False
    seed: int = 0
    noise_seed: int | None = None

    def __post_init__(self) -> None:
        check_private(self)
        check_given(self, positive, "learning_rate", "clip", "eps_i", "tolerance")
        check_given(self, not_negative, "regularization")
        check_sizes(self, n_factors=MOST_FACTORS, n_epochs=MOST_EPOCHS)
        for name in ("delta_i", "delta_r"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, float) and 0 < value < 1):
                raise InvalidArgument(f"{name}={value!r} should be a number between 0 and 1")
        if self.centering not in (None, "raw", "mean"):
            raise InvalidArgument(f"centering={self.centering!r} is not known: choose raw or mean")
        if self.eps_i is not None and not LEAST_EPS_I <= self.eps_i <= MOST_EPS_I:
            raise InvalidArgument(f"eps_i={self.eps_i!r} should be between {LEAST_EPS_I:g} and {MOST_EPS_I:g}")
        if self.is_private and self.mode == "certified" and self.budget.unit != "user":
            raise InvalidArgument(f"unit={self.budget.unit!r}: GaussianGD protects users")
        for name in MEANINGLESS[self.kind]:
            if getattr(self, name) is not None:
                what = f"mode={self.mode!r}" if self.is_private else "an infinite epsilon"
                raise InvalidArgument(f"{name} means nothing with {what}: leave it out")

    @property
    def kind(self) -> str:
        """What `dpmf.methods.gaussian.defaults` calls it."""
        if self.is_private:
            return self.mode
        return "published" if self.mode == "paper" else "none"

    @property
    def is_private(self) -> bool:
        """Whether there is a finite epsilon, be it a claim only."""
        return self.budget.is_finite

    @property
    def n_turns(self) -> int | None:
        """How many iterations there are at most."""
        return self.resolve().n_epochs

    def usual(self) -> Mapping[str, Any]:
        """Return what is chosen for fields that are left open."""
        usual = defaults_for(self.kind)
        if self.kind != "paper" or self.eps_i is not None:
            return usual
        chosen = {name: getattr(self, name) or usual[name] for name in ("n_epochs", "delta_i", "delta_r")}
        eps_i = eps_i_for(self.budget.epsilon, chosen["n_epochs"], chosen["delta_i"], chosen["delta_r"])
        if not LEAST_EPS_I <= eps_i <= MOST_EPS_I:
            raise InvalidArgument(
                f"epsilon={self.budget.epsilon:g} makes eps_i={eps_i:.3g} of every iteration: choose one for which "
                f"it is between {LEAST_EPS_I:g} and {MOST_EPS_I:g}"
            )
        return {**usual, "eps_i": eps_i}

    @classmethod
    def private_fields(cls, mode: str, epsilon: float, delta: float | None = None, **more: Any) -> dict[str, Any]:
        """Return the fields that an epsilon sets; a claim is about a rating that is replaced, at a delta of its own."""
        found = super().private_fields(mode, epsilon, delta, **more)
        if mode == "paper" and math.isfinite(epsilon):
            if more.get("neighbours") == "add-remove":
                raise InvalidArgument("neighbours='add-remove': the claim is about a rating that is replaced")
            if delta is not None:
                found["delta_r"] = delta
        return found

    def resolve(self) -> Settings:
        """Return the settings of a run, whatever was left open chosen from public facts alone."""
        return settings_of(Settings, self.facts())

    def _train(self, ratings: AnyRatings, options: RunOptions) -> Model:
        if self.kind == "certified":
            return self.certify(ratings, options)
        assert isinstance(ratings, Ratings)
        return fit_descent(self, ratings, options)

    def public_half(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> PublicSteps:
        """Return the public half of a certified run."""
        return certified.public_half(self, catalogue, scale, crowd)

    def plan_of(self, catalogue: Items, scale: Scale, crowd: Crowd | None = None) -> certified.FullBatchPlan:
        """Return the plan of a certified run."""
        return certified.full_batch_plan(self, len(catalogue), crowd)

    def claim(self, scale: Scale, n_iterations: int) -> Claim:
        """Return what is claimed after a number of iterations on a scale, in mode "paper"."""
        chosen = settings_of(ClaimSettings, self.facts())
        width = scale.hi - scale.lo
        return Claim(chosen.eps_i, chosen.delta_i, chosen.delta_r, width, chosen.clip, n_iterations)

    def report(self, model: Model, user_budgets: Mapping[Any, float] | None = None) -> dict[str, Any]:
        """Return the claim of mode "paper", by its formula and by the accountant."""
        if model.guarantee.mode != "paper":
            return {}
        return {"claim": self.claim(model.release.scale, len(model.history)).to_json()}

    def sections(self, report: Mapping[str, Any]) -> Iterator[Section]:
        """Yield the claim of mode "paper"."""
        if "claim" in report:
            yield claim_section(report["claim"])
