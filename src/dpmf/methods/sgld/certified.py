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
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.methods.certified.script import Crowd
from dpmf.methods.certified.steps import CLIP, StepPlan
from dpmf.privacy import Budget, PoissonGaussianEvent
from dpmf.privacy.calibration import poisson_event

if TYPE_CHECKING:
    from dpmf.methods.sgld import SGLD


@dataclass(frozen=True)
class CertifiedSettings:
    """What a certified run is given; attributes as those of `SGLD`."""

    n_factors: int
    n_epochs: int
    learning_rate: float
    regularization: float
    n_samples: int
    sampling_rate: float


@dataclass(frozen=True)
class SteppingPlan(StepPlan):
    """What is public about a run before it starts; its step size is η / q.

    Attributes:
        sampling_rate: q.
    """

    sampling_rate: float

    @property
    def event(self) -> PoissonGaussianEvent:
        """What will be released, with as much noise as the budget asks for."""
        return _calibrated(self.budget, self.what, self.sampling_rate, self.n_steps, self.coordinates)

    @property
    def sensitivity(self) -> float:
        """The longest contribution of one user: what the noise multiplier of a sampled step is relative to."""
        return CLIP

    def shares(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what part of the clip users get who want to pay this much at most: the noise multiplier over theirs.

        Every distinct ε takes the accountant some seconds.
        """
        wanted, place = np.unique(epsilons, return_inverse=True)
        return np.array([self._share(epsilon) for epsilon in wanted.tolist()])[place]

    def _share(self, epsilon: float) -> float:
        if epsilon in (0.0, self.budget.epsilon):
            return float(epsilon > 0)
        try:
            own = replace(self, budget=replace(self.budget, epsilon=epsilon)).event.noise_multiplier
        except InvalidArgument:  # no amount of noise would do, so nothing but leaving out does
            own = math.inf
        return min(1.0, self.event.noise_multiplier / own)


@cache
def _calibrated(budget: Budget, what: str, sampling_rate: float, count: int, coordinates: int) -> PoissonGaussianEvent:
    """Return the event; the accountant takes seconds, and the same question comes again and again."""
    return poisson_event(budget, what, sampling_rate=sampling_rate, count=count, coordinates=coordinates)


def stepping_plan(method: SGLD, n_items: int, settings: CertifiedSettings, crowd: Crowd | None) -> SteppingPlan:
    """Return what is public about a run before it starts."""
    sizes = n_items, settings.n_factors, settings.n_epochs
    return SteppingPlan(*sizes, settings.learning_rate, method.budget, settings.sampling_rate, crowd=crowd)
