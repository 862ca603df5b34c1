"""A chain of stochastic gradient Langevin dynamics over a block grid, and one epoch of it.

Ratings are centred and divided by their unit here, so that one step size serves every scale; `dpmf.kernels.sgld` has
the density that the chain draws from. An epoch ends with every row having had all of its noise: what stands there then
is one draw.

>>> from dpmf.engine.grid import BlockGrid
>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> keys = ratings.user_ids.keys, ratings.catalogue.ids.keys
>>> state = Descent.start(BlockGrid.build(ratings), *keys, n_factors=4, sd=0.1, unit=1.0, seed=0)
>>> counts = np.diff(ratings.indptr), np.bincount(ratings.items, minlength=40)
>>> density = Density(centre=3.0, scale=1.0, bias_prior=1.0, low=-9.0, high=9.0, temperature=1.0)
>>> chain = Chain.start(state, *counts, np.ones(50), density, prior=2.0, table_size=4096, noise_seed=1)
>>> chain.run_epoch(1, rate=0.02, n_threads=1).train_rmse > 0
True
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.grid import Block
from dpmf.engine.schedule import tier_at
from dpmf.engine.tensorfile import Tensor
from dpmf.engine.threads import run_blocks
from dpmf.errors import DpmfError
from dpmf.kernels.normals import normal_table
from dpmf.kernels.sgld import Dynamics, Side, drawn_at_once, settle, sgld_block
from dpmf.methods.sgd.descent import Descent
from dpmf.model import EpochRecord
from dpmf.streams import generator, stream_key

_SHAPE, _RATE = 1.0, 1.0  # of the Gamma priors of the precisions
PARTS = 256  # of an epoch: what fewer steps than one of them bring may wait
_WAITING = 0.1  # of the time in which ratings make the busiest row forget where it was: longer nothing waits

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Density:
    """What the chain draws from; see `dpmf.kernels.sgld`.

    Attributes:
        centre: what predictions start from, in the ratings' own units.
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
    """Factors and biases, and what moves them, in the grid's numbering.

    Attributes:
        state: the ratings, factors and biases.
        density: what to draw from.
        user_counts, item_counts: ratings per user and per item.
        weights: of the users.
        priors: P and Q, shape (2, width).
        gaussians: the table of normal numbers; empty for fresh ones.
        noise_seed: of all noise.
        every_item: whether items that nobody rated move as well, by prior and noise alone. If they did not, a draw
            would show that nobody rated them.
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
            gaussians = normal_table(generator(noise_seed, "table of normal numbers"), table_size, drawn_at_once(width))
        return cls(
            state, density, user_counts[layout.user_order], item_counts[layout.item_order],
            weights[layout.user_order].astype(np.float32), priors, gaussians, noise_seed, every_item,
        )  # fmt: skip

    def run_epoch(self, epoch: int, rate: float, n_threads: int) -> EpochRecord:
        """Visit every rating once, and give all rows their noise."""
        state, count = self.state, len(self.state.grid)
        size, strips, tiers = state.grid.size, state.grid.layout.strip_starts, state.grid.layout.tier_starts
        first_tier = int(stream_key(state.seed, f"first tier of epoch {epoch}") % np.uint64(size))
        starts = self._first_steps(first_tier)
        keys = [stream_key(self.noise_seed, f"{what} in epoch {epoch}") for what in ("steps", "users", "items")]
        dynamics, mask = self._dynamics(rate), self._mask()
        table = ((state.grid.table - self.density.centre) / state.unit).astype(np.float32)
        # What has no rating and does not move is owed no noise: its row is up to date at the end.
        u_clocks, v_clocks = (np.where(counts, 0, count) for counts in (self.user_counts, self.item_counts))
        if self.every_item:
            v_clocks[:] = 0
        P, Q = self.priors

        def visit(strip: int, tier: int, block: Block) -> float:
            u, v = slice(strips[strip], strips[strip + 1]), slice(tiers[tier], tiers[tier + 1])
            of_users = Side(state.U[u], state.b[u], u_clocks[u], P)
            of_items = Side(state.V[v], state.c[v], v_clocks[v], Q)
            squared = sgld_block(
                *block, table, of_users, of_items, self.weights[u], mask, dynamics, self.gaussians,
                starts[strip, tier], keys[0],
            )  # fmt: skip
            if tier == tier_at(strip, size - 1, first_tier, size):  # the last block of its strip and of its tier
                settle(of_users, dynamics.user_prior, mask, dynamics, self.gaussians, count, int(u.start), keys[1])
                settle(of_items, dynamics.item_prior, mask, dynamics, self.gaussians, count, int(v.start), keys[2])
            if state.mapped is not None:
                state.mapped.put_away(strips[strip], strips[strip + 1])
            return squared

        began = time.perf_counter()
        squared = float(run_blocks(visit, state.grid, n_threads, state.capacity, first_tier).sum())
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
        """Return what an epoch changes, for a snapshot."""
        return {**self.state.tensors(), "priors": self.priors}

    def _user_squares(self) -> Iterator[Array]:
        """Yield Σ u² of every strip, for each factor."""
        for first, last in pairwise(self.state.grid.layout.strip_starts.tolist()):
            yield (self.state.U[first:last, : self.state.n_factors].astype(np.float64) ** 2).sum(axis=0)
            if self.state.mapped is not None:
                self.state.mapped.put_away(first, last)

    def _dynamics(self, rate: float) -> Dynamics:
        density, pull, prior = self.density, rate / len(self.state.grid), self.density.bias_prior
        return Dynamics.of(
            rate, density.scale, pull, density.temperature * pull, prior, prior, density.low, density.high,
            self.patience(rate),
        )  # fmt: skip

    def patience(self, rate: float) -> int:
        """Return of how many steps pull and noise may wait, at a step size.

        Noise that waits comes in lumps. A row that ratings pull back in less time than passes between two lumps would
        be found with too much noise right after one.
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
