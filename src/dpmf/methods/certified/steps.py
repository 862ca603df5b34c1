"""Steps on everybody's clipped gradient with respect to items, with noise on their sum: what is certified of descent.

Whoever takes part in a step fits their own bias and factors to their own ratings and to the items as they are, and
sends the gradient of their squared error with respect to item factors and biases, clipped as a whole to a length of C.
The sum leaves through `Mechanism` with Gaussian noise on every coordinate, and items move by it.

How far a step should go depends on how many people rated an item, which is private. So steps begin as long as the noise
allows, but not longer than a few times what noise alone would make them; and where an item's noisy gradient has turned
round since the step before, by more than noise explains, its steps are halved. All of that is made from noisy sums.

Who takes part, how much noise there is and how it is accounted for is up to a plan: see `dpmf.methods.sgld.certified`,
whose steps take a sample of people each, and `dpmf.methods.gaussian.certified`, whose steps take all. Items have rows
of their own here; `dpmf.methods.sketch.certified` keeps them elsewhere.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import fill_randomly
from dpmf.engine.store import AnyRatings, parts_of
from dpmf.kernels.clipped_gradients import add_clipped_gradients
from dpmf.kernels.ridge import solve_people, squared_errors
from dpmf.methods.als.plan import Stage
from dpmf.methods.certified.sums import Add, over_users, release_sum_of_parts
from dpmf.privacy import Budget, GaussianEvent, PoissonGaussianEvent
from dpmf.privacy.mechanism import Mechanism
from dpmf.ratings import Ratings
from dpmf.ratings.subset import select_users
from dpmf.streams import stream_key

GRADIENTS = "gradients with respect to item factors and biases"
CLIP = 1.0  # C, in units of a quarter of the scale's width
_ERROR_TASKS = 32  # whatever the number of threads, so that the figure is the same
_BEYOND_NOISE = 3.0  # standard deviations of what noise alone makes of the product of two gradients
_FARTHEST = 2.5  # of a step, as a multiple of what noise alone would make of it
_PULL = 1.0  # how often, in all steps together, the prior takes away what an item has

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Event = GaussianEvent | PoissonGaussianEvent


@dataclass(frozen=True)
class StepPlan(ABC):
    """What is public about a run before it starts.

    Attributes:
        n_items: the size of the catalogue.
        n_factors: K.
        n_steps: how many steps there are.
        noise_sd: the standard deviation of the noise that all steps together leave on a factor; sets how far they go.
        budget: what may be spent.
    """

    n_items: int
    n_factors: int
    n_steps: int
    noise_sd: float
    budget: Budget

    @property
    @abstractmethod
    def event(self) -> Event:
        """What will be released, with as much noise as the budget asks for."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """What the noise multiplier of the event is relative to."""

    @property
    def what(self) -> str:
        """What is released, in words."""
        return GRADIENTS

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the numbers that a step releases."""
        return self.n_items, self.n_factors + 1

    @property
    def coordinates(self) -> int:
        """How many numbers all steps together release."""
        return self.n_steps * math.prod(self.shape)

    @property
    def step_size(self) -> float:
        """How far items go for a unit of the noisy sum."""
        return self.noise_sd / (self.event.noise_multiplier * self.sensitivity * math.sqrt(self.n_steps))

    def stages(self) -> tuple[Stage, ...]:
        """Return the steps."""
        return tuple(Stage(f"step {number + 1}", (self.what,), number) for number in range(self.n_steps))


@dataclass(frozen=True)
class Centre:
    """Where predictions start, and what there is besides factors; a public choice.

    Attributes:
        mean: what predictions start from.
        bias_ridge: the penalty on everybody's own bias.
        height: how much biases of items count beside factors; 0 for none.
        start_sd: of item factors.
    """

    mean: float
    bias_ridge: float = 1.0
    height: float = 0.3
    start_sd: float = 0.15


@dataclass(eq=False)
class ClippedSteps:
    """The state of a run. Only item factors and biases are released; everything about users stays here.

    Args:
        plan: the public facts.
        solving: all ratings, from which everybody computes their own bias and factors; those on disk are read anew at
            every step, some users at a time.
        shares: what part of the clip each user has, from 0 to 1.
        mechanism: adds the noise.
        centre: where predictions start.
        ridge: the penalty on users' factors.
        n_averaged: over how many of the last steps item factors are averaged.
        seed: of the public start.
        n_threads: how many threads to use.
    """

    plan: StepPlan
    solving: AnyRatings
    shares: Array
    mechanism: Mechanism
    centre: Centre
    ridge: float
    n_averaged: int
    seed: int
    n_threads: int
    V: Floats = field(init=False)
    c: Floats = field(init=False)

    def __post_init__(self) -> None:
        n_items, K, scale = self.plan.n_items, self.plan.n_factors, self.solving.scale
        self.unit = (scale.hi - scale.lo) / 4
        self.V, self.c = np.zeros((n_items, K), np.float32), np.zeros(n_items, np.float32)
        keys = self.solving.catalogue.ids.keys
        fill_randomly(stream_key(self.seed, "item factors"), keys, K, self.centre.start_sd, self.V)
        self._sums = np.zeros((n_items, K + 1))
        self._n_summed = 0
        self._error = 0.0
        self._left, self._last = np.ones(self.plan.shape[0]), np.zeros(self.plan.shape)

    def measure(self, stage: Stage) -> None:
        """Release the gradient of those who take part, and move the items."""
        assert stage.round is not None
        noisy = release_sum_of_parts(
            self.mechanism, self.plan.what, self.plan.sensitivity, self.plan.shape, self._taking_part(stage.round),
            self.n_threads,
        )  # fmt: skip
        self.move(1 - _PULL / self.plan.n_steps, self.moves(noisy))
        if stage.round >= self.plan.n_steps - self.n_averaged:
            self._sums[:, :-1] += self.V
            self._sums[:, -1] += self.c
            self._n_summed += 1

    def moves(self, noisy: Array) -> Array:
        """Return how far items, or cells, go for a noisy sum, which is public: less if it turned round."""
        noise, each = self.mechanism.sd(self.plan.what, self.plan.sensitivity), (len(noisy), -1)
        products = (noisy * self._last).reshape(each)
        self._left[products.sum(axis=1) < -_BEYOND_NOISE * noise**2 * math.sqrt(products.shape[1])] /= 2
        self._last = noisy
        rows = noisy.reshape(each)
        lengths = np.sqrt(np.square(rows).mean(axis=1)) / noise
        steps = self.plan.step_size * self._left * np.minimum(1.0, _FARTHEST / np.maximum(lengths, 1e-30))
        return np.asarray((steps[:, None] * rows).reshape(noisy.shape), np.float64)

    def move(self, keep: float, by: Array) -> None:
        """Let items go a step, and be pulled towards 0, all alike."""
        self.V = (keep * self.V + by[:, :-1]).astype(np.float32)
        self.c = (keep * self.c + self.centre.height * by[:, -1]).astype(np.float32)

    def add(self, people: People, first: int, last: int, steps: float, sums: NDArray[np.int64]) -> None:
        """Add the clipped gradients of some people to integer sums of the plan's shape, in steps of the grid."""
        of = people.ratings
        add_clipped_gradients(
            of.indptr, of.items, of.values, first, last, self.V, self.c, people.b, people.U, people.shares,
            self.centre.height, CLIP, steps, sums,
        )  # fmt: skip

    def taking_part(self, number: int) -> NDArray[np.bool_] | None:
        """Return which users take part in a step, counted from 0; None for everybody."""
        return None

    def _taking_part(self, number: int) -> Iterator[tuple[Ratings, Add]]:
        """Yield those who take part, all at once or some at a time.

        Squared errors are added up part by part: of the training error, which is not released, the last digits may
        depend on that.
        """
        coins = self.taking_part(number)  # in the order of all users, so it does not matter how the ratings come
        squared, count = 0.0, 0
        for positions, part in parts_of(self.solving):
            if coins is None:
                people = self._fitted(part, self.shares[positions])
            else:
                chosen = np.flatnonzero(coins[positions])
                people = self._fitted(select_users(part, chosen), self.shares[positions[chosen]])
            squared += self._squared_errors(people)
            count += len(people.ratings)
            yield people.ratings, partial(self.add, people)
        self._error = self.unit * math.sqrt(squared / max(count, 1))

    def _fitted(self, ratings: Ratings, shares: Array) -> People:
        """Let people fit their own bias and factors."""
        centred = replace(ratings, values=((ratings.values - self.centre.mean) / self.unit).astype(np.float32))
        people = People(
            centred, np.zeros(ratings.n_users, np.float32),
            np.zeros((ratings.n_users, self.plan.n_factors), np.float32), shares,
        )  # fmt: skip

        def solve(_: int, first: int, last: int) -> None:
            solve_people(
                centred.indptr, centred.items, centred.values, first, last, self.V, self.c, 0.0,
                self.centre.bias_ridge, self.ridge, 0.0, people.b, people.U,
            )  # fmt: skip

        over_users(centred, solve, 16 * self.n_threads, self.n_threads)
        return people

    def _squared_errors(self, people: People) -> float:
        of, squared = people.ratings, np.zeros(_ERROR_TASKS)

        def measure(task: int, first: int, last: int) -> None:
            squared[task] = squared_errors(
                of.indptr, of.items, of.values, first, last, self.V, self.c, 0.0, people.b, people.U
            )

        over_users(of, measure, _ERROR_TASKS, self.n_threads)
        return float(squared.sum())

    def settle(self, stage: Stage) -> None:
        """Leave everything as it is: people compute their own part when they take part."""

    def solve_users(self, *, final: bool = False) -> None:
        """Likewise."""

    def released(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far; with it and the ratings a run can go on."""
        course = {"sums": self._sums, "n_summed": np.array([self._n_summed]), "left": self._left, "last": self._last}
        return {"V": self.V, "c": self.c, **course}

    def take_up(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `released` returned."""
        self.V[:], self.c[:], self._sums[:] = tensors["V"], tensors["c"], tensors["sums"]
        self._n_summed = int(tensors["n_summed"][0])
        self._left, self._last = np.array(tensors["left"]), np.array(tensors["last"])

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
    """Some of those who take part in a step: their ratings, centred and in units, bias, factors and share."""

    ratings: Ratings
    b: Floats
    U: Floats
    shares: Array
