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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.methods.checks import configuration_of, not_negative, positive, private_method, whole
from dpmf.methods.gaussian.certified import fit_certified
from dpmf.methods.gaussian.claim import Claim, eps_i_for
from dpmf.methods.gaussian.defaults import MEANINGLESS, defaults_for
from dpmf.methods.gaussian.run import fit_descent
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings, Scale

Callback = Callable[[EpochRecord], bool | None]
MOST_FACTORS, MOST_EPOCHS = 1 << 16, 1 << 20
LEAST_EPS_I, MOST_EPS_I = 1e-9, 1e9  # beyond them noise, or the lack of it, is all there is


@dataclass(frozen=True)
class GaussianGD:
    """Configuration of the method: public facts only.

    Attributes:
        n_factors: K, the length of the factor vectors. None chooses, here and below; docs/gaussian.md says what.
        n_epochs: J, the number of iterations; with a `tolerance`, the most.
        budget: how much privacy loss is allowed, or claimed; `Budget(math.inf)` says explicitly that nothing has to be
            private. In mode "paper" its epsilon is the overall claim, and its delta is not used: that is `delta_r`.
        mode: what kind of promise a finite epsilon is: "certified", or "paper", a published claim. With an infinite one
            "paper" takes the published steps without noise, and "certified" quicker ones.
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

    n_factors: int | None = None
    n_epochs: int | None = None
    budget: Budget | None = None
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
        private_method(self)
        assert self.budget is not None
        for name, check in (("learning_rate", positive), ("regularization", not_negative), ("clip", positive),
                            ("eps_i", positive), ("tolerance", positive)):  # fmt: skip
            if getattr(self, name) is not None:
                check(name, getattr(self, name))
        for name, least, most in (("n_factors", 1, MOST_FACTORS), ("n_epochs", 1, MOST_EPOCHS)):  # fmt: skip
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), least=least, most=most)
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
        assert self.budget is not None
        return self.budget.is_finite

    def chosen(self) -> GaussianGD:
        """Return the same configuration with whatever was left open chosen, from public facts alone."""
        usual = defaults_for(self.kind)
        chosen = replace(self, **{name: value for name, value in usual.items() if getattr(self, name) is None})
        if self.kind != "paper" or self.eps_i is not None:
            return chosen
        assert chosen.budget is not None
        assert chosen.n_epochs is not None
        assert chosen.delta_i is not None
        assert chosen.delta_r is not None
        eps_i = eps_i_for(chosen.budget.epsilon, chosen.n_epochs, chosen.delta_i, chosen.delta_r)
        if not LEAST_EPS_I <= eps_i <= MOST_EPS_I:
            raise InvalidArgument(
                f"epsilon={chosen.budget.epsilon:g} makes eps_i={eps_i:.3g} of every iteration: choose one for which "
                f"it is between {LEAST_EPS_I:g} and {MOST_EPS_I:g}"
            )
        return replace(chosen, eps_i=eps_i)

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
            ratings: what to learn from, in memory or, in mode "certified", on disk; the result is the same. A private
                run needs a declared scale and catalogue.
            n_threads: all CPUs this process may use by default. It changes the speed, never the result.
            callbacks: called with the record of each iteration when it ends; one that returns True ends the training,
                but for a certified run, which says beforehand what it will release.
            checkpoint: where to keep snapshots. A run without noise goes on from them to the same result, one of mode
                "paper" with other noise, unless it is seeded; a certified one without the step that it was stopped in.
            user_budgets: the epsilon of users who want a smaller one than that of the budget; in mode "certified" only.
            ledger: where to enter what the run will release, before any noise is drawn; a claim counts as unbounded.
        """
        if not len(ratings):
            raise InvalidArgument("there are no ratings to train on")
        chosen, threads = self.chosen(), thread_count(n_threads)
        if self.kind == "certified":
            return fit_certified(chosen, ratings, threads, tuple(callbacks), checkpoint, user_budgets, ledger)
        if isinstance(ratings, StoredRatings):
            raise InvalidArgument("GaussianGD needs the ratings in memory, unless it is certified: allow more")
        return fit_descent(chosen, ratings, threads, tuple(callbacks), checkpoint, user_budgets, ledger)

    def claim(self, scale: Scale, n_iterations: int) -> Claim:
        """Return what is claimed after so many iterations on a scale, in mode "paper"."""
        chosen = self.chosen()
        assert chosen.eps_i is not None
        assert chosen.delta_i is not None
        assert chosen.delta_r is not None
        assert chosen.clip is not None
        return Claim(chosen.eps_i, chosen.delta_i, chosen.delta_r, scale.hi - scale.lo, chosen.clip, n_iterations)

    def configuration(self) -> dict[str, Any]:
        """Return the public facts; a noise seed is not written down, and the budget is in the guarantee."""
        return configuration_of("gaussian", self)
