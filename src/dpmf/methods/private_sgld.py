"""Certified sampling: Langevin steps on clipped gradients of sampled users; docs/proofs/sgld.md has the proof.

At every step each user takes part with probability q, by a coin of their own. Whoever does fits their own bias and
factors to their own ratings and to the items as they are, and sends the gradient of their squared error with respect to
item factors and biases, clipped as a whole to a length of C. The sum leaves through `Mechanism` with Gaussian noise of
standard deviation σC on every coordinate, and items move by η/q times it. Noise and gradient together make a step of
Langevin dynamics at the temperature η (σC/q)² / 2; nothing rests on where such a chain would end up.

>>> plan = SteppingPlan(n_items=100, n_factors=2, n_steps=4, sampling_rate=0.5, noise_sd=0.3, budget=Budget(5))
>>> plan.stages()[-1].name
'step 4'
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.methods.clipped_steps import CLIP, GRADIENTS, ClippedSteps, stages_of
from dpmf.methods.private_plan import Stage
from dpmf.privacy import Budget, PoissonGaussianEvent
from dpmf.privacy.calibration import poisson_event
from dpmf.privacy.noise import Noise

_COINS = "who takes part"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SteppingPlan:
    """What is public about a run before it starts.

    Attributes:
        n_items: the size of the catalogue.
        n_factors: K.
        n_steps: how many steps there are.
        sampling_rate: q.
        noise_sd: the standard deviation of the noise that all steps together leave on a factor; sets η.
        budget: what may be spent.
    """

    n_items: int
    n_factors: int
    n_steps: int
    sampling_rate: float
    noise_sd: float
    budget: Budget

    @property
    def event(self) -> PoissonGaussianEvent:
        """What will be released, with as much noise as the budget asks for."""
        return _calibrated(
            self.budget, self.sampling_rate, self.n_steps, self.n_steps * self.n_items * (self.n_factors + 1)
        )

    def stages(self) -> tuple[Stage, ...]:
        """Return the steps."""
        return stages_of(self.n_steps)

    @property
    def sensitivity(self) -> float:
        """The longest contribution of one user: what the noise multiplier of a sampled step is relative to."""
        return CLIP

    @property
    def step_size(self) -> float:
        """η / q: how far items go for a unit of the noisy sum."""
        return self.noise_sd / (self.event.noise_multiplier * CLIP * math.sqrt(self.n_steps))


@cache
def _calibrated(budget: Budget, sampling_rate: float, count: int, coordinates: int) -> PoissonGaussianEvent:
    """Return the event; the accountant takes seconds, and the same question comes again and again."""
    return poisson_event(budget, GRADIENTS, sampling_rate=sampling_rate, count=count, coordinates=coordinates)


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
