"""What moves a chain: the density that it samples from, and the steps and the noise of each epoch, wherever rows are.

Ratings are centred and divided by their unit here, so that one step size serves every scale; `dpmf.kernels.sgld` has
the density and the steps. At the end of an epoch every row has received all of its noise, so that the state is one
draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import BlockFile
from dpmf.engine.grid import Block, BlockGrid
from dpmf.engine.schedule import Place, first_tier_of, tier_at
from dpmf.errors import DpmfError
from dpmf.kernels.normals import normal_table
from dpmf.kernels.sgld import Dynamics, Side, drawn_per_row, settle, sgld_block
from dpmf.model import EpochRecord
from dpmf.streams import generator, stream_key

_SHAPE, _RATE = 1.0, 1.0  # of the Gamma priors of the precisions
PARTS = 256  # of an epoch: pull and noise of fewer steps than one of them may wait
_WAITING = 0.1  # the longest wait, as a fraction of the time in which ratings pull the busiest row back

Array = NDArray[np.float64]


class UserStrip(NamedTuple):
    """The state of a strip of users: fields of `dpmf.kernels.sgld.Side`, weights, and its first user's number."""

    factors: NDArray[np.float32]
    biases: NDArray[np.float32]
    clocks: NDArray[np.int64]
    weights: NDArray[np.float32]
    first: int


class ItemTier(NamedTuple):
    """The state of a tier of items: fields of `dpmf.kernels.sgld.Side`, and its first item's number."""

    factors: NDArray[np.float32]
    biases: NDArray[np.float32]
    clocks: NDArray[np.int64]
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
        priors: P and Q, shape (2, width).
        keys: of the noise.
    """

    table: NDArray[np.float32]
    mask: NDArray[np.float32]
    dynamics: Dynamics
    gaussians: NDArray[np.float32]
    starts: NDArray[np.int64]
    first_tier: int
    n_steps: int
    priors: NDArray[np.float32]
    keys: Keys


def visit_block(block: Block, users: UserStrip, items: ItemTier, constants: Constants, place: Place) -> float:
    """Visit the ratings of a block once; return the sum of squared errors."""
    table, mask, dynamics, gaussians, starts, first_tier, n_steps, (P, Q), keys = constants
    of_users, of_items = Side(*users[:3], P), Side(*items[:3], Q)
    squared = sgld_block(
        *block, table, of_users, of_items, users.weights, mask, dynamics, gaussians, starts[place], keys.steps
    )
    size = len(starts)
    if place.tier == tier_at(place.strip, size - 1, first_tier, size):  # the last block of its strip and of its tier
        for side, prior, first, key in (
            (of_users, dynamics.user_prior, users.first, keys.users),
            (of_items, dynamics.item_prior, items.first, keys.items),
        ):
            at_rest = side.clocks == n_steps
            settle(side, prior, mask, dynamics, gaussians, n_steps, first, key)
            side.clocks[at_rest] = n_steps
    return squared


def clocks_of(counts: NDArray[np.int64], n_steps: int) -> NDArray[np.int64]:
    """Return the clocks of rows when an epoch begins.

    Rows without ratings do not move and get no noise: their clocks stand at the end of the epoch.
    """
    return np.where(counts, 0, n_steps)


def squares_of(factors: NDArray[np.float32], n_factors: int) -> Array:
    """Return the sum of the squares of each factor over rows."""
    squares: Array = (factors[:, :n_factors].astype(np.float64) ** 2).sum(axis=0)
    return squares


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
class Sampler:
    """What moves a chain, beside its rows.

    Attributes:
        grid: the ratings.
        density: to sample from.
        unit: of the rating scale.
        n_factors: K.
        busiest: the number of ratings of the user or the item that has most.
        heaviest: the greatest weight of a user.
        priors: P and Q, shape (2, width).
        gaussians: the table of normal numbers; empty for fresh ones.
        seed, noise_seed: of the order of visits, and of all noise.
    """

    grid: BlockGrid | BlockFile
    density: Density
    unit: float
    n_factors: int
    busiest: int
    heaviest: float
    priors: NDArray[np.float32]
    gaussians: NDArray[np.float32]
    seed: int
    noise_seed: int

    @classmethod
    def start(
        cls,
        grid: BlockGrid | BlockFile,
        density: Density,
        *,
        unit: float,
        n_factors: int,
        width: int,
        busiest: int,
        heaviest: float,
        prior: float,
        table_size: int,
        seed: int,
        noise_seed: int,
    ) -> Sampler:
        """Return it as it is when a chain starts: `prior` is the precision of all factors, `width` that of rows."""
        priors = np.zeros((2, width), np.float32)
        priors[:, :n_factors] = prior
        gaussians = np.zeros(0, np.float32)
        if table_size:
            gaussians = normal_table(generator(noise_seed, "table of normal numbers"), table_size, drawn_per_row(width))
        return cls(grid, density, unit, n_factors, max(busiest, 1), heaviest, priors, gaussians, seed, noise_seed)

    def constants(self, epoch: int, rate: float) -> Constants:
        """Return what all blocks of an epoch share."""
        first_tier = first_tier_of(self.seed, epoch, self.grid.size)
        return Constants(
            table=((self.grid.table - self.density.centre) / self.unit).astype(np.float32),
            mask=(np.arange(self.priors.shape[1]) < self.n_factors).astype(np.float32),
            dynamics=self._dynamics(rate),
            gaussians=self.gaussians,
            starts=self._first_steps(first_tier),
            first_tier=first_tier,
            n_steps=len(self.grid),
            priors=self.priors,
            keys=Keys(*(stream_key(self.noise_seed, f"{what} in epoch {epoch}") for what in Keys._fields)),
        )

    def record(self, results: Array, epoch: int, rate: float, seconds: float, *, is_finite: bool) -> EpochRecord:
        """Return the record of an epoch, given the squared errors of all blocks; refuse one that diverged."""
        squared = float(results.sum())
        if not (math.isfinite(squared) and is_finite):
            raise DpmfError(f"the chain diverged in epoch {epoch} at step size {rate:g}: use a smaller learning_rate")
        return EpochRecord(epoch, seconds, self.unit * math.sqrt(squared / len(self.grid)))

    def learn_priors(
        self, epoch: int, most: float, of_users: tuple[int, Sequence[Array]], of_items: tuple[int, Sequence[Array]]
    ) -> None:
        """Draw P and Q given the factors, a Gibbs step under Gamma priors; none beyond `most`, which a step can follow.

        With n rows and -log p(u) = P_k u_k² - ½ log P_k, P_k is Gamma distributed with shape + n/2 and rate + Σ u_k².

        Args:
            epoch: after which it is.
            most: see above.
            of_users: how many have ratings, and Σ u² of every strip, for each factor.
            of_items: likewise, by tier.
        """
        random, heat = generator(self.noise_seed, f"priors in epoch {epoch}"), self.density.temperature
        for prior, (n_rows, squares) in zip(self.priors, (of_users, of_items), strict=True):
            drawn = random.gamma(_SHAPE + n_rows / 2, 1 / (_RATE + sum(squares) / heat))
            prior[: self.n_factors] = np.minimum(drawn, most)

    def patience(self, rate: float) -> int:
        """Return the number of steps whose pull and noise may wait, at a step size.

        Noise that waits comes in lumps. A row that ratings pull back in less time than passes between two lumps would
        have too much noise right after one.
        """
        count, pulled_back = len(self.grid), rate * self.density.scale * self.heaviest * self.busiest
        return int(min(count / PARTS, _WAITING * count / max(pulled_back, 1e-30)))

    def _dynamics(self, rate: float) -> Dynamics:
        density, pull, prior = self.density, rate / len(self.grid), self.density.bias_prior
        noise = pull, density.temperature * pull
        limits = density.low, density.high
        return Dynamics.of(rate, density.scale, *noise, prior, prior, *limits, self.patience(rate))

    def _first_steps(self, first_tier: int) -> NDArray[np.int64]:
        """Return the number of every block's first step, shape (size, size): step by step, strip by strip."""
        size, done = self.grid.size, 0
        starts = np.zeros((size, size), np.int64)
        for step, strip in product(range(size), repeat=2):
            tier = tier_at(strip, step, first_tier, size)
            starts[strip, tier] = done
            done += self.grid.count(strip, tier)
        return starts
