"""A chain of stochastic gradient Langevin dynamics over a block grid, in one process, and one epoch of it.

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

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.executor import Epoch, Executor
from dpmf.engine.tensorfile import Tensor
from dpmf.methods.sgd.descent import Descent
from dpmf.methods.sgld.sampler import (
    Array,
    Density,
    ItemTier,
    Sampler,
    UserStrip,
    clocks_of,
    squares_of,
    visit_block,
)
from dpmf.model import EpochRecord


@dataclass(eq=False)
class Chain:
    """A chain: factors and biases, and what moves them, in the grid's numbering.

    Attributes:
        state: the ratings, factors and biases.
        sampler: what moves them.
        user_counts, item_counts: ratings per user and per item.
        weights: of the users.
        every_item: whether items without ratings move as well, by prior and noise alone. Otherwise a draw would show
            that they have none.
    """

    state: Descent
    sampler: Sampler
    user_counts: NDArray[np.int64]
    item_counts: NDArray[np.int64]
    weights: NDArray[np.float32]
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
        layout, of_users = state.grid.layout, weights.astype(np.float32)
        state.forget_unrated(user_counts, np.maximum(item_counts, 1) if every_item else item_counts)
        sampler = Sampler.start(
            state.grid,
            density,
            unit=state.unit,
            n_factors=state.n_factors,
            width=state.U.shape[1],
            busiest=int(max(user_counts.max(), item_counts.max())),
            heaviest=float(of_users.max()),
            prior=prior,
            table_size=table_size,
            seed=state.seed,
            noise_seed=noise_seed,
        )
        return cls(
            state,
            sampler,
            user_counts=user_counts[layout.user_order],
            item_counts=item_counts[layout.item_order],
            weights=of_users[layout.user_order],
            every_item=every_item,
        )

    def run_epoch(self, epoch: int, rate: float, executor: Executor) -> EpochRecord:
        """Visit every rating once, and give all rows their noise."""
        state, layout, count = self.state, self.state.grid.layout, len(self.state.grid)
        constants = self.sampler.constants(epoch, rate)
        u_clocks, v_clocks = clocks_of(self.user_counts, count), clocks_of(self.item_counts, count)
        if self.every_item:
            v_clocks[:] = 0
        described = Epoch(
            visit_block,
            [
                UserStrip(state.U[rows], state.b[rows], u_clocks[rows], self.weights[rows], rows.start)
                for rows in layout.strips
            ],
            [ItemTier(state.V[rows], state.c[rows], v_clocks[rows], rows.start) for rows in layout.tiers],
            constants,
            constants.first_tier,
            state.put_away,
        )
        began = time.perf_counter()
        results = executor.run(described, state.grid)
        seconds = time.perf_counter() - began
        is_finite = bool(np.isfinite(state.V).all() and np.isfinite(state.c).all())
        return self.sampler.record(results, epoch, rate, seconds, is_finite=is_finite)

    def learn_priors(self, epoch: int, most: float) -> None:
        """Draw the priors given the factors: see `Sampler.learn_priors`."""
        layout, K = self.state.grid.layout, self.state.n_factors
        self.sampler.learn_priors(
            epoch,
            most,
            (int(np.count_nonzero(self.user_counts)), self._user_squares()),
            (int(np.count_nonzero(self.item_counts)), [squares_of(self.state.V[rows], K) for rows in layout.tiers]),
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that an epoch changes, for a snapshot."""
        return {**self.state.tensors(), "priors": self.sampler.priors}

    def _user_squares(self) -> list[Array]:
        """Return Σ u² of every strip, for each factor."""
        found = []
        for strip, rows in enumerate(self.state.grid.layout.strips):
            found.append(squares_of(self.state.U[rows], self.state.n_factors))
            self.state.put_away(strip)
        return found
