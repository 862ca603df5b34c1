"""A chain of stochastic gradient Langevin dynamics over a block grid, and one epoch of it.

Ratings are centred and divided by their unit here, so that one step size serves every scale; `dpmf.kernels.sgld` has
the density that the chain samples from. At the end of an epoch every row has received all of its noise, so that the
state is one draw.

>>> from dpmf.engine.grid import BlockGrid
>>> from dpmf.engine.local import ThreadExecutor
>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> keys = ratings.user_ids.keys, ratings.catalogue.ids.keys
>>> state = Descent.start(BlockGrid.build(ratings), *keys, n_factors=4, sd=0.1, unit=1.0, seed=0)
>>> counts = np.diff(ratings.indptr), np.bincount(ratings.items, minlength=40)
>>> density = Density(centre=3.0, scale=1.0, bias_prior=1.0, low=-9.0, high=9.0, temperature=1.0)
>>> chain = Chain.start(state, *counts, np.ones(50), density, prior=2.0, table_size=4096, noise_seed=1)
>>> chain.run_epoch(1, rate=0.02, executor=ThreadExecutor(1)).train_rmse > 0
True
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.executor import Epoch, Executor
from dpmf.engine.grid import Block
from dpmf.engine.schedule import Place, first_tier_of, tier_at
from dpmf.engine.tensorfile import Tensor
from dpmf.errors import DpmfError
from dpmf.kernels.normals import normal_table
from dpmf.kernels.sgld import Dynamics, Side, drawn_per_row, settle, sgld_block
from dpmf.methods.sgd.descent import Descent
from dpmf.model import EpochRecord
from dpmf.streams import generator, stream_key

_SHAPE, _RATE = 1.0, 1.0  # of the Gamma priors of the precisions
PARTS = 256  # of an epoch: pull and noise of fewer steps than one of them may wait
_WAITING = 0.1  # the longest wait, as a fraction of the time in which ratings pull the busiest row back

Array = NDArray[np.float64]


class UserStrip(NamedTuple):
    """The state of a strip of users: the fields of `dpmf.kernels.sgld.Side`, weights, and its first user's number."""

    factors: NDArray[np.float32]
    biases: NDArray[np.float32]
    clocks: NDArray[np.int64]
    prior: NDArray[np.float32]
    weights: NDArray[np.float32]
    first: int


class ItemTier(NamedTuple):
    """The state of a tier of items: the fields of `dpmf.kernels.sgld.Side`, and its first item's number."""

    factors: NDArray[np.float32]
    biases: NDArray[np.float32]
    clocks: NDArray[np.int64]
    prior: NDArray[np.float32]
    first: int


class Keys(NamedTuple):
    """The keys of an epoch's noise: of its steps, and of what rows of users and of items are owed at its end."""

    steps: np.uint64
    users: np.uint64
    items: np.uint64


class Constants(NamedTuple):
    """What all blocks of an epoch share.

    Attributes:
        table: rating values, centred, in units.
        mask, dynamics, gaussians: as in `dpmf.kernels.sgld.sgld_block`.
        starts: shape (T, T), the number of each block's first step.
        first_tier: the tier that strip 0 visits first.
        n_steps: in the epoch, one per rating.
        keys: of the noise.
    """

    table: NDArray[np.float32]
    mask: NDArray[np.float32]
    dynamics: Dynamics
    gaussians: NDArray[np.float32]
    starts: NDArray[np.int64]
    first_tier: int
    n_steps: int
    keys: Keys


def visit_block(block: Block, users: UserStrip, items: ItemTier, constants: Constants, place: Place) -> float:
    """Visit the ratings of a block once; return the sum of squared errors."""
    table, mask, dynamics, gaussians, starts, first_tier, n_steps, keys = constants
    of_users, of_items = Side(*users[:4]), Side(*items[:4])
    squared = sgld_block(
        *block, table, of_users, of_items, users.weights, mask, dynamics, gaussians, starts[place], keys.steps
    )
    size = len(starts)
    if place.tier == tier_at(place.strip, size - 1, first_tier, size):  # the last block of its strip and of its tier
        settle(of_users, dynamics.user_prior, mask, dynamics, gaussians, n_steps, users.first, keys.users)
        settle(of_items, dynamics.item_prior, mask, dynamics, gaussians, n_steps, items.first, keys.items)
    return squared


@dataclass(frozen=True)
class Density:
    """The density that the chain samples from; see `dpmf.kernels.sgld`.

    Attributes:
        centre: the prediction without biases and factors, in the ratings' own units.
        scale: s, the weight of a squared error of one unit.
        bias_prior: p and q.
        low, high: where predictions end, in units from the centre.
        temperature: the density is raised to the power 1 / temperature.
    """

    centre: float
    scale: float
    bias_prior: float
    low: float
    high: float
    temperature: float


@dataclass(eq=False)
class Chain:
    """A chain: factors and biases, and the density that moves them, in the grid's numbering.

    Attributes:
        state: the ratings, factors and biases.
        density: the density to sample from.
        user_counts, item_counts: ratings per user and per item.
        weights: of the users.
        priors: P and Q, shape (2, width).
        gaussians: the table of normal numbers; empty for fresh ones.
        noise_seed: of all noise.
        every_item: whether items without ratings move as well, by prior and noise alone. Otherwise a draw would show
            that they have none.
    """

    state: Descent
    density: Density
    user_counts: NDArray[np.int64]
    item_counts: NDArray[np.int64]
    weights: NDArray[np.float32]
    priors: NDArray[np.float32]
    gaussians: NDArray[np.float32]
    noise_seed: int
    every_item: bool = False

    @classmethod
    def start(
        cls,
        state: Descent,
        user_counts: NDArray[np.int64],
        item_counts: NDArray[np.int64],
        weights: Array,
        density: Density,
        *,
        prior: float,
        table_size: int,
        noise_seed: int,
        every_item: bool = False,
    ) -> Chain:
        """Return a chain at its start; counts and weights are by positions in the ratings."""
        layout, width = state.grid.layout, state.U.shape[1]
        state.forget_unrated(user_counts, np.maximum(item_counts, 1) if every_item else item_counts)
        priors = np.zeros((2, width), np.float32)
        priors[:, : state.n_factors] = prior
        gaussians = np.zeros(0, np.float32)
        if table_size:
            gaussians = normal_table(generator(noise_seed, "table of normal numbers"), table_size, drawn_per_row(width))
        return cls(
            state,
            density,
            user_counts=user_counts[layout.user_order],
            item_counts=item_counts[layout.item_order],
            weights=weights[layout.user_order].astype(np.float32),
            priors=priors,
            gaussians=gaussians,
            noise_seed=noise_seed,
            every_item=every_item,
        )

    def run_epoch(self, epoch: int, rate: float, executor: Executor) -> EpochRecord:
        """Visit every rating once, and give all rows their noise."""
        state, layout, count = self.state, self.state.grid.layout, len(self.state.grid)
        first_tier = first_tier_of(state.seed, epoch, layout.size)
        constants = Constants(
            table=((state.grid.table - self.density.centre) / state.unit).astype(np.float32),
            mask=self._mask(),
            dynamics=self._dynamics(rate),
            gaussians=self.gaussians,
            starts=self._first_steps(first_tier),
            first_tier=first_tier,
            n_steps=count,
            keys=Keys(*(stream_key(self.noise_seed, f"{what} in epoch {epoch}") for what in Keys._fields)),
        )
        # Rows without ratings do not move and get no noise: their clocks start at the end of the epoch.
        u_clocks, v_clocks = (np.where(counts, 0, count) for counts in (self.user_counts, self.item_counts))
        if self.every_item:
            v_clocks[:] = 0
        P, Q = self.priors
        described = Epoch(
            visit_block,
            [
                UserStrip(state.U[rows], state.b[rows], u_clocks[rows], P, self.weights[rows], rows.start)
                for rows in layout.strips
            ],
            [ItemTier(state.V[rows], state.c[rows], v_clocks[rows], Q, rows.start) for rows in layout.tiers],
            constants,
            first_tier,
            state.put_away,
        )
        began = time.perf_counter()
        squared = float(executor.run(described, state.grid).sum())
        seconds = time.perf_counter() - began
        if not (math.isfinite(squared) and np.isfinite(state.V).all() and np.isfinite(state.c).all()):
            raise DpmfError(f"the chain diverged in epoch {epoch} at step size {rate:g}: use a smaller learning_rate")
        return EpochRecord(epoch, seconds, state.unit * math.sqrt(squared / count))

    def learn_priors(self, epoch: int, most: float) -> None:
        """Draw P and Q given the factors, a Gibbs step under Gamma priors; none beyond `most`, which a step can follow.

        With n rows and -log p(u) = P_k u_k² - ½ log P_k, P_k is Gamma distributed with shape + n/2 and rate + Σ u_k².
        """
        random = generator(self.noise_seed, f"priors in epoch {epoch}")
        K, heat = self.state.n_factors, self.density.temperature
        for prior, counts, squares in (
            (self.priors[0], self.user_counts, sum(self._user_squares())),
            (self.priors[1], self.item_counts, (self.state.V[:, :K].astype(np.float64) ** 2).sum(axis=0)),
        ):
            drawn = random.gamma(_SHAPE + np.count_nonzero(counts) / 2, 1 / (_RATE + squares / heat))
            prior[:K] = np.minimum(drawn, most)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that an epoch changes, for a snapshot."""
        return {**self.state.tensors(), "priors": self.priors}

    def _user_squares(self) -> Iterator[Array]:
        """Yield Σ u² of every strip, for each factor."""
        for strip, rows in enumerate(self.state.grid.layout.strips):
            yield (self.state.U[rows, : self.state.n_factors].astype(np.float64) ** 2).sum(axis=0)
            self.state.put_away(strip)

    def _dynamics(self, rate: float) -> Dynamics:
        density, pull, prior = self.density, rate / len(self.state.grid), self.density.bias_prior
        noise = pull, density.temperature * pull
        limits = density.low, density.high
        return Dynamics.of(rate, density.scale, *noise, prior, prior, *limits, self.patience(rate))

    def patience(self, rate: float) -> int:
        """Return the number of steps whose pull and noise may wait, at a step size.

        Noise that waits comes in lumps. A row that ratings pull back in less time than passes between two lumps would
        have too much noise right after one.
        """
        count, busiest = len(self.state.grid), int(max(self.user_counts.max(), self.item_counts.max(), 1))
        pulled_back = rate * self.density.scale * float(self.weights.max()) * busiest
        return int(min(count / PARTS, _WAITING * count / max(pulled_back, 1e-30)))

    def _mask(self) -> NDArray[np.float32]:
        return (np.arange(self.state.U.shape[1]) < self.state.n_factors).astype(np.float32)

    def _first_steps(self, first_tier: int) -> NDArray[np.int64]:
        """Return the number of every block's first step, shape (size, size): step by step, strip by strip."""
        grid, size, done = self.state.grid, self.state.grid.size, 0
        starts = np.zeros((size, size), np.int64)
        for step, strip in product(range(size), repeat=2):
            tier = tier_at(strip, step, first_tier, size)
            starts[strip, tier] = done
            done += grid.count(strip, tier)
        return starts
