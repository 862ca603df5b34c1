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
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dpmf.methods.centre import NO_BIAS
from dpmf.methods.certified.script import Crowd
from dpmf.methods.certified.steps import CLIP, Centre, PublicSteps, StepPlan
from dpmf.privacy import GaussianEvent
from dpmf.privacy.calibration import Part, gaussian_events
from dpmf.ratings import Items, Scale

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


def full_batch_plan(method: GaussianGD, n_items: int, crowd: Crowd | None) -> FullBatchPlan:
    """Return what is public about a run before it starts."""
    settings = method.resolve()
    sizes = n_items, settings.n_factors, settings.n_epochs
    return FullBatchPlan(*sizes, settings.learning_rate, method.budget, crowd=crowd)


def public_half(method: GaussianGD, catalogue: Items, scale: Scale, crowd: Crowd | None) -> PublicSteps:
    """Return the public half of a certified run."""
    settings, plan = method.resolve(), full_batch_plan(method, len(catalogue), crowd)
    centre, averaged = centre_of(settings.centering, scale, settings.n_factors), -(-plan.n_steps // 2)
    return PublicSteps(plan, scale, catalogue.ids.keys, centre, settings.regularization, averaged, method.seed)


def centre_of(centering: str, scale: Scale, n_factors: int) -> Centre:
    """Return where predictions start: the middle of the scale, or 0 and without any biases."""
    if centering == "mean":
        return Centre(scale.middle)
    return Centre(0.0, bias_ridge=NO_BIAS, height=0.0, start_sd=1 / math.sqrt(n_factors))
