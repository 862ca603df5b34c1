"""The state of stochastic gradient descent over a block grid, and one epoch of it.

>>> from dpmf.engine.grid import BlockGrid
>>> from dpmf.engine.local import ThreadExecutor
>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> grid = BlockGrid.build(ratings)
>>> keys = ratings.user_ids.keys, ratings.catalogue.ids.keys
>>> state = Descent.start(grid, *keys, n_factors=4, sd=0.1, unit=1.0, seed=0)
>>> first = state.run_epoch(1, rate=0.02, regularization=0.05, executor=ThreadExecutor(1))
>>> state.run_epoch(2, rate=0.02, regularization=0.05, executor=ThreadExecutor(1)).train_rmse < first.train_rmse
True
"""

from __future__ import annotations

import math
import mmap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import BlockFile
from dpmf.engine.executor import Epoch, Executor
from dpmf.engine.factors import factor_rows, fill_randomly, padded
from dpmf.engine.grid import Block, BlockGrid
from dpmf.engine.rowfile import MappedRows
from dpmf.engine.schedule import Place, first_tier_of
from dpmf.engine.tensorfile import Tensor
from dpmf.errors import DpmfError
from dpmf.kernels.rows import FLOATS_PER_LINE, pack, unpack
from dpmf.kernels.sgd import Step, sgd_block
from dpmf.model import EpochRecord
from dpmf.streams import mix, stream_key

_BYTES_AT_ONCE = 1 << 24


class UserStrip(NamedTuple):
    """The state of a strip of users: factors (padded rows) and biases."""

    U: NDArray[np.float32]
    b: NDArray[np.float32]


class ItemTier(NamedTuple):
    """The state of a tier of items; V as in `Descent`."""

    V: NDArray[Any]
    c: NDArray[np.float32]


class Constants(NamedTuple):
    """What all blocks of an epoch share: rating values, step size and penalty, and the seeds of all blocks, (T, T)."""

    table: NDArray[np.float32]
    step: Step
    seeds: NDArray[np.uint64]


def visit_block(block: Block, users: UserStrip, items: ItemTier, constants: Constants, place: Place) -> float:
    """Visit the ratings of a block once; return the sum of squared errors."""
    table, step, seeds = constants
    return sgd_block(*block, table, users.U, items.V, users.b, items.c, step, seeds[place])


def constants_of(
    grid: BlockGrid | BlockFile, epoch: int, rate: float, regularization: float, *, unit: float, seed: int
) -> Constants:
    """Return what all blocks of an epoch share; arguments as those of `Descent`."""
    size = grid.size
    step = Step.of(grid.mean, rate, regularization, unit)
    seeds = mix(stream_key(seed, f"rounding in epoch {epoch}") + np.arange(size * size, dtype=np.uint64))
    return Constants(grid.table, step, seeds.reshape(size, size))


def record_of(results: NDArray[np.float64], n_ratings: int, epoch: int, rate: float, seconds: float) -> EpochRecord:
    """Return the record of an epoch, given the squared errors of all blocks; refuse one that diverged."""
    squared = float(results.sum())
    if not math.isfinite(squared):
        raise DpmfError(f"training diverged in epoch {epoch} at learning rate {rate:g}: use a smaller learning_rate")
    return EpochRecord(epoch, seconds, math.sqrt(squared / n_ratings))


def row_multiple(packed: bool) -> int:
    """Return what the number of columns of all rows is a multiple of, if item factors are in 16 bits, and if not."""
    return 2 * FLOATS_PER_LINE if packed else FLOATS_PER_LINE


@dataclass(eq=False)
class Descent:
    """The parameters and the ratings they are trained on, in the grid's numbering.

    Attributes:
        grid: the ratings.
        U, b: factors (padded rows) and biases of users.
        V, c: factors and biases of items; V is float32, or uint32 words of two 16-bit factors.
        n_factors: K.
        unit: of the rating scale, as in `dpmf.kernels.sgd`.
        seed: of the rounding of a 16-bit V.
        mapped: the file that U is mapped from, if it is on disk.
    """

    grid: BlockGrid | BlockFile
    U: NDArray[np.float32]
    V: NDArray[Any]
    b: NDArray[np.float32]
    c: NDArray[np.float32]
    n_factors: int
    unit: float
    seed: int
    mapped: MappedRows | None = None

    @classmethod
    def start(
        cls,
        grid: BlockGrid | BlockFile,
        user_keys: NDArray[np.uint64],
        item_keys: NDArray[np.uint64],
        *,
        n_factors: int,
        sd: float,
        unit: float,
        seed: int,
        packed: bool = False,
        user_folder: Path | None = None,
    ) -> Descent:
        """Return the initial state: zero biases and random factors, each row drawn from its own key.

        Args:
            grid: the ratings.
            user_keys, item_keys: keys of all users and items, by their positions in the ratings.
            n_factors: K.
            sd: standard deviation of every factor.
            unit, seed: see the class.
            packed: whether item factors are stored in sixteen bits.
            user_folder: a folder on whose disk user factors are stored; in memory unless given.
        """
        multiple = row_multiple(packed)
        layout, n_users, n_items = grid.layout, len(user_keys), len(item_keys)
        mapped = None if user_folder is None else MappedRows(user_folder, (n_users, padded(n_factors, multiple)))
        U = factor_rows(n_users, n_factors, multiple) if mapped is None else mapped.array
        for rows in layout.strips:
            keys = user_keys[layout.user_order[rows]]
            fill_randomly(stream_key(seed, "user factors"), keys, n_factors, sd, U[rows])
            if mapped is not None:
                mapped.put_away(rows.start, rows.stop)
        V = factor_rows(n_items, n_factors, multiple)
        fill_randomly(stream_key(seed, "item factors"), item_keys[layout.item_order], n_factors, sd, V)
        b, c = np.zeros(n_users, np.float32), np.zeros(n_items, np.float32)
        return cls(grid, U, packed_rows(V) if packed else V, b, c, n_factors, unit, seed, mapped)

    def run_epoch(self, epoch: int, rate: float, regularization: float, executor: Executor) -> EpochRecord:
        """Visit every rating once."""
        described = Epoch(
            visit_block,
            [UserStrip(self.U[rows], self.b[rows]) for rows in self.grid.layout.strips],
            [ItemTier(self.V[rows], self.c[rows]) for rows in self.grid.layout.tiers],
            constants_of(self.grid, epoch, rate, regularization, unit=self.unit, seed=self.seed),
            first_tier_of(self.seed, epoch, self.grid.size),
            self.put_away,
        )
        began = time.perf_counter()
        results = executor.run(described, self.grid)
        return record_of(results, len(self.grid), epoch, rate, time.perf_counter() - began)

    def put_away(self, strip: int) -> None:
        """Let the user factors of a strip leave memory, if they are on disk."""
        if self.mapped is not None:
            rows = self.grid.layout.strips[strip]
            self.mapped.put_away(rows.start, rows.stop)

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Return the parameters by name; writing into these arrays changes the state."""
        return {"U": self.U, "V": self.V, "b": self.b, "c": self.c}

    def tensors(self) -> dict[str, Tensor]:
        """Return `parameters` for a snapshot, which reads and writes a U on disk piece by piece."""
        return {**self.parameters(), "U": self.U if self.mapped is None else self.mapped}

    @property
    def item_factors(self) -> NDArray[np.float32]:
        """The item factors as float32, padded, in the grid's order."""
        return unpack(self.V) if self.V.dtype == np.uint32 else self.V

    def forget_unrated(self, user_counts: NDArray[np.int64], item_counts: NDArray[np.int64]) -> None:
        """Set the factors of users and items without ratings to 0: their random start says nothing about them."""
        order = self.grid.layout.user_order
        for strip, rows in enumerate(self.grid.layout.strips):
            unrated = user_counts[order[rows]] == 0
            if unrated.any():
                self.U[rows][unrated] = 0
                self.put_away(strip)
        self.V[item_counts[self.grid.layout.item_order] == 0] = 0

    def user_side(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return factors, shape (n_users, K), and biases of users by their positions in the ratings."""
        order = self.grid.layout.user_order
        if self.mapped is None:
            return in_order_of_ids(self.U[:, : self.n_factors], self.b, order)
        result = MappedRows(self.mapped.folder, (len(self.U), self.n_factors))
        biases = np.empty(len(order), np.float32)
        biases[order] = self.b
        count = max(_BYTES_AT_ONCE // max(4 * self.n_factors, mmap.PAGESIZE), 1)  # a row takes a page at least
        for first in range(0, len(order), count):
            chosen = order[first : first + count]
            # In the order of U: random reads would load far more of the file than needed.
            result.array[chosen] = self.U[first : first + len(chosen), : self.n_factors]
            self.mapped.put_away(0, len(order))
            result.put_away(0, len(order))
        return result.array, biases

    def item_side(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return factors, shape (n_items, K), and biases of items by their positions in the ratings."""
        return in_order_of_ids(self.item_factors[:, : self.n_factors], self.c, self.grid.layout.item_order)


def packed_rows(V: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return rows of factors in 16 bits."""
    words = factor_rows(len(V), V.shape[1] // 2).view(np.uint32)
    words[:] = pack(V)
    return words


def in_order_of_ids(
    factors: NDArray[np.float32], biases: NDArray[np.float32], order: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return factors and biases by their positions in the ratings, given those in the grid's numbering."""
    there, those = np.empty(factors.shape, np.float32), np.empty(biases.shape, np.float32)
    there[order], those[order] = factors, biases
    return there, those
