"""A certified run of full gradient descent: noise on the gradient of items; docs/proofs/gaussian.md has the proof.

It is the method of Mugdho and Imtiaz with its sides swapped. They add noise on the side of users, whose factors need
not be published, and none on that of items, whose factors are. Here everybody's gradient with respect to all items is
clipped as a whole to a length of C, and the sum of all gets Gaussian noise on every coordinate, J times; everybody's
own factors stay with them. A user who comes or goes moves a sum by C, and one who is replaced by another moves it by
2C. With noise of standard deviation σ times that, the whole run is sqrt(J)/σ-Gaussian private.

>>> from dpmf.privacy import Budget
>>> plan = FullBatchPlan(n_items=100, n_factors=2, n_steps=16, noise_sd=0.5, budget=Budget(5))
>>> round(math.sqrt(plan.n_steps) / plan.event.noise_multiplier, 3)  # the gdp that epsilon 5 allows
1.02
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import AnyRatings
from dpmf.methods.centre import NO_BIAS
from dpmf.methods.certified.shares import personal_shares
from dpmf.methods.certified.steps import CLIP, Centre, ClippedSteps, StepPlan
from dpmf.methods.certified.steps_run import Callback, CertifiedSteps
from dpmf.methods.checks import declared
from dpmf.model import Model
from dpmf.privacy import GaussianEvent
from dpmf.privacy.calibration import Part, gaussian_events
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Scale

if TYPE_CHECKING:
    from dpmf.methods.gaussian import GaussianGD


@dataclass(frozen=True)
class FullBatchPlan(StepPlan):
    """What is public about a run before it starts; J is the number of its steps."""

    @cached_property
    def event(self) -> GaussianEvent:
        """What will be released, with as much noise as the budget asks for."""
        (event,) = gaussian_events(self.budget, [Part(self.what, 1.0, self.n_steps, self.coordinates)])
        return event

    @property
    def sensitivity(self) -> float:
        """How far the sums of two neighbouring data sets can be apart."""
        return CLIP * (2 if self.budget.neighbours == "replace" else 1)


def fit_certified(
    method: GaussianGD,
    ratings: AnyRatings,
    n_threads: int,
    callbacks: tuple[Callback, ...],
    checkpoint: Checkpoint | None,
    user_budgets: Mapping[Any, float] | None,
    ledger: Ledger | None,
) -> Model:
    """Return a model whose release is certified; arguments as in `GaussianGD.fit`, with everything chosen."""
    assert method.budget is not None
    assert method.n_factors is not None
    assert method.n_epochs is not None
    assert method.learning_rate is not None
    assert method.regularization is not None
    declared(ratings, method.items_public)
    plan = FullBatchPlan(ratings.n_items, method.n_factors, method.n_epochs, method.learning_rate, method.budget)
    shares = personal_shares(ratings.user_ids, method.budget, [plan.event], user_budgets)
    centre = centre_of(method.centering or "mean", ratings.scale, method.n_factors)
    ridge, averaged, seed = method.regularization, -(-plan.n_steps // 2), method.seed

    def start(counted: AnyRatings, mechanism: Mechanism, _: Noise, n_threads: int) -> ClippedSteps:
        return ClippedSteps(plan, counted, shares, mechanism, centre, ridge, averaged, seed, n_threads)

    run = CertifiedSteps(method, plan, shares, bool(user_budgets), None, start)
    return run.fit(ratings, n_threads, callbacks, checkpoint, ledger)


def centre_of(centering: str, scale: Scale, n_factors: int) -> Centre:
    """Return where predictions start: the middle of the scale, or 0 and without any biases."""
    if centering == "mean":
        return Centre(scale.middle)
    return Centre(0.0, bias_ridge=NO_BIAS, height=0.0, start_sd=1 / math.sqrt(n_factors))
