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
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import fill_randomly
from dpmf.errors import InvalidArgument
from dpmf.kernels.clipped import add_clipped_gradients
from dpmf.kernels.ridge import solve_people, squared_errors
from dpmf.methods.private_plan import Stage
from dpmf.methods.summing import over_users, release_sum
from dpmf.privacy import Budget, PoissonGaussianEvent
from dpmf.privacy.calibration import poisson_event
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings
from dpmf.ratings.pieces import of_users
from dpmf.streams import stream_key

GRADIENTS = "gradients with respect to item factors and biases"
_COINS = "who takes part"
CLIP = 1.0  # C, in units of a quarter of the scale's width
HEIGHT = 0.3  # of biases beside factors
START_SD = 0.15
_PULL = 1.0  # how often, in all steps together, the prior takes away what an item has
BIAS_RIDGE = 1.0

Array = NDArray[np.float64]
Floats = NDArray[np.float32]


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
            self.budget, self.what, self.sampling_rate, self.n_steps, self.n_steps * math.prod(self.shape)
        )

    @property
    def what(self) -> str:
        """What is released, in words."""
        return GRADIENTS

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the numbers that a step releases."""
        return self.n_items, self.n_factors + 1

    def stages(self) -> tuple[Stage, ...]:
        """Return the steps."""
        return tuple(Stage(f"step {number + 1}", (self.what,), number) for number in range(self.n_steps))

    @property
    def step_size(self) -> float:
        """η / q: how far items go for a unit of the noisy sum."""
        return self.noise_sd / (self.event.noise_multiplier * CLIP * math.sqrt(self.n_steps))


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
class SampledSteps:
    """The state of a run. Only item factors and biases are released; everything about users stays here.

    Args:
        plan: the public facts.
        solving: all ratings, from which everybody computes their own bias and factors.
        shares: what part of the clip each user has, from 0 to 1.
        mechanism: adds the noise.
        noise: tosses the coins.
        ridge: the penalty on users' factors.
        n_averaged: over how many of the last steps item factors are averaged.
        seed: of the public start.
        n_threads: how many threads to use.
    """

    plan: SteppingPlan
    solving: Ratings
    shares: Array
    mechanism: Mechanism
    noise: Noise
    ridge: float
    n_averaged: int
    seed: int
    n_threads: int
    V: Floats = field(init=False)
    c: Floats = field(init=False)

    def __post_init__(self) -> None:
        n_items, K, scale = self.plan.n_items, self.plan.n_factors, self.solving.scale
        self.mean, self.unit = scale.middle, (scale.hi - scale.lo) / 4
        self.V, self.c = np.zeros((n_items, K), np.float32), np.zeros(n_items, np.float32)
        fill_randomly(
            stream_key(self.seed, "item factors"), self.solving.catalogue.ids.keys, K, START_SD, self.V
        )  # fmt: skip
        self._sums = np.zeros((n_items, K + 1))
        self._n_summed = 0
        self._error = 0.0

    def measure(self, stage: Stage) -> None:
        """Release the gradient of a fresh sample, and move the items."""
        assert stage.round is not None
        people = self._sample(stage.round)
        noisy = release_sum(
            self.mechanism, self.plan.what, CLIP, self.plan.shape,
            lambda first, last, steps, sums: self._add(people, first, last, steps, sums), people.ratings,
            self.n_threads,
        )  # fmt: skip
        self._move(1 - _PULL / self.plan.n_steps, self.plan.step_size * noisy)
        if stage.round >= self.plan.n_steps - self.n_averaged:
            self._sums[:, :-1] += self.V
            self._sums[:, -1] += self.c
            self._n_summed += 1

    def _move(self, keep: float, by: Array) -> None:
        """Let items go a step, and be pulled towards 0, all alike."""
        self.V = (keep * self.V + by[:, :-1]).astype(np.float32)
        self.c = (keep * self.c + HEIGHT * by[:, -1]).astype(np.float32)

    def _sample(self, number: int) -> People:
        """Toss everybody's coin, and let those who take part fit their own bias and factors."""
        coins = self.noise.coins(self.solving.n_users, self.plan.sampling_rate, _COINS, number)
        chosen = np.flatnonzero(coins)
        ratings = of_users(self.solving, chosen)
        centred = replace(ratings, values=((ratings.values - self.mean) / self.unit).astype(np.float32))
        people = People(
            centred, np.zeros(len(chosen), np.float32), np.zeros((len(chosen), self.plan.n_factors), np.float32),
            self.shares[chosen],
        )  # fmt: skip

        def solve(_: int, first: int, last: int) -> None:
            solve_people(
                centred.indptr, centred.items, centred.values, first, last, self.V, self.c, 0.0, BIAS_RIDGE,
                self.ridge, 0.0, people.b, people.U,
            )  # fmt: skip

        over_users(centred, solve, 16 * self.n_threads, self.n_threads)
        squared = squared_errors(
            centred.indptr, centred.items, centred.values, 0, len(chosen), self.V, self.c, 0.0, people.b, people.U
        )
        self._error = self.unit * math.sqrt(squared / max(len(centred), 1))
        return people

    def _add(self, people: People, first: int, last: int, steps: float, sums: NDArray[np.int64]) -> None:
        of = people.ratings
        add_clipped_gradients(
            of.indptr, of.items, of.values, first, last, self.V, self.c, people.b, people.U, people.shares,
            HEIGHT, CLIP, steps, sums,
        )  # fmt: skip

    def settle(self, stage: Stage) -> None:
        """Leave everything as it is: people compute their own part when they take part."""

    def solve_users(self, *, final: bool = False) -> None:
        """Likewise."""

    def released(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far; with it and the ratings a run can go on."""
        return {"V": self.V, "c": self.c, "sums": self._sums, "n_summed": np.array([self._n_summed])}

    def take_up(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `released` returned."""
        self.V[:], self.c[:], self._sums[:] = tensors["V"], tensors["c"], tensors["sums"]
        self._n_summed = int(tensors["n_summed"][0])

    def training_error(self) -> float:
        """Return the root mean squared error of those who took part last, for the holder of the data."""
        return self._error

    def items(self) -> tuple[Floats, Floats]:
        """Return factors and biases of items, averaged over the last steps, in the ratings' own units."""
        n_summed = self._n_summed
        sums = self._sums / n_summed if n_summed else np.c_[self.V, self.c].astype(np.float64)
        factors = math.sqrt(self.unit) * sums[:, :-1]
        return factors.astype(np.float32), (self.unit * sums[:, -1]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class People:
    """Those who take part in a step: their ratings, centred and in units, bias, factors and share."""

    ratings: Ratings
    b: Floats
    U: Floats
    shares: Array
