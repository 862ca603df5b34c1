"""Certified sampling: Langevin steps on clipped gradients of sampled users; docs/proofs/sgld.md has the proof.

At every step each user takes part with probability q, by a coin of their own. Whoever does fits their own bias and
factors to their own ratings and to the items as they are, and sends the gradient of their squared error with respect to
item factors and biases, clipped as a whole to a length of C. The sum leaves through `Mechanism` with Gaussian noise of
standard deviation σC on every coordinate, and items move by η/q times it. Noise and gradient together make a step of
Langevin dynamics at the temperature η (σC/q)² / 2; nothing rests on where such a chain would end up.

>>> plan = SteppingPlan(n_items=100, n_factors=2, n_steps=4, noise_sd=0.3, budget=Budget(5), sampling_rate=0.5)
>>> plan.stages()[-1].name
'step 4'
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import AnyRatings
from dpmf.errors import InvalidArgument
from dpmf.methods.certified.shares import personal_epsilons
from dpmf.methods.certified.steps import CLIP, Centre, ClippedSteps, StepPlan
from dpmf.methods.certified.steps_run import Callback, CertifiedSteps
from dpmf.methods.checks import declared
from dpmf.model import Model
from dpmf.privacy import Budget, PoissonGaussianEvent
from dpmf.privacy.calibration import poisson_event
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise

if TYPE_CHECKING:
    from dpmf.methods.sgld import SGLD
    from dpmf.methods.sketch import Sketch

_COINS = "who takes part"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SteppingPlan(StepPlan):
    """What is public about a run before it starts; its step size is η / q.

    Attributes:
        sampling_rate: q.
    """

    sampling_rate: float

    @classmethod
    def of(cls, method: SGLD | Sketch, n_items: int, **further: Any) -> Self:
        """Return the plan of a configuration with everything chosen; further facts are those of plans with more."""
        assert method.budget is not None
        assert method.n_factors is not None
        assert method.n_epochs is not None
        assert method.sampling_rate is not None
        assert method.learning_rate is not None
        return cls(
            n_items, method.n_factors, method.n_epochs, method.learning_rate, method.budget, method.sampling_rate,
            **further,
        )  # fmt: skip

    @property
    def event(self) -> PoissonGaussianEvent:
        """What will be released, with as much noise as the budget asks for."""
        return _calibrated(self.budget, self.what, self.sampling_rate, self.n_steps, self.coordinates)

    @property
    def sensitivity(self) -> float:
        """The longest contribution of one user: what the noise multiplier of a sampled step is relative to."""
        return CLIP


@cache
def _calibrated(budget: Budget, what: str, sampling_rate: float, count: int, coordinates: int) -> PoissonGaussianEvent:
    """Return the event; the accountant takes seconds, and the same question comes again and again."""
    return poisson_event(budget, what, sampling_rate=sampling_rate, count=count, coordinates=coordinates)


def sampled_shares(epsilons: Array, plan: SteppingPlan) -> Array:
    """Return what part of the clip users get who want to pay so much at most: the noise multiplier over theirs.

    Every distinct ε takes the accountant some seconds.
    """
    wanted, place = np.unique(epsilons, return_inverse=True)
    shares = []
    for epsilon in wanted.tolist():
        if epsilon in (0.0, plan.budget.epsilon):
            shares.append(float(epsilon > 0))
            continue
        try:
            own = replace(plan, budget=replace(plan.budget, epsilon=epsilon)).event.noise_multiplier
        except InvalidArgument:  # no amount of noise would do, so nothing but leaving out does
            own = math.inf
        shares.append(min(1.0, plan.event.noise_multiplier / own))
    return np.array(shares)[place]


@dataclass(eq=False)
class SampledSteps(ClippedSteps):
    """The state of a run whose steps take a fresh sample of users each.

    Args:
        noise: tosses the coins; the other arguments are those of `ClippedSteps`.
    """

    plan: SteppingPlan
    noise: Noise

    def taking_part(self, number: int) -> NDArray[np.bool_]:
        """Toss everybody's coin."""
        return self.noise.coins(self.solving.n_users, self.plan.sampling_rate, _COINS, number)


def fit_certified(
    method: SGLD | Sketch,
    plan: SteppingPlan,
    steps: type[SampledSteps],
    ratings: AnyRatings,
    n_threads: int,
    callbacks: tuple[Callback, ...],
    checkpoint: Checkpoint | None,
    user_budgets: Mapping[Any, float] | None,
    ledger: Ledger | None,
) -> Model:
    """Return a model whose release is certified.

    Args:
        method: the configuration, with everything chosen.
        plan: its plan.
        steps: the state that carries the plan out.
        ratings, n_threads, callbacks, checkpoint, user_budgets, ledger: as in `SGLD.fit`.
    """
    assert method.regularization is not None
    assert method.n_samples is not None
    declared(ratings, method.items_public)
    shares = sampled_shares(personal_epsilons(ratings.user_ids, plan.budget, user_budgets), plan)
    centre, ridge, averaged, seed = Centre(ratings.scale.middle), method.regularization, method.n_samples, method.seed

    def start(counted: AnyRatings, mechanism: Mechanism, noise: Noise, n_threads: int) -> SampledSteps:
        return steps(plan, counted, shares, mechanism, centre, ridge, averaged, seed, n_threads, noise)

    run = CertifiedSteps(method, plan, shares, bool(user_budgets), method.cap, start)
    return run.fit(ratings, n_threads, callbacks, checkpoint, ledger)
