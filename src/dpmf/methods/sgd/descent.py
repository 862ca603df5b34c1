"""The state of stochastic gradient descent over a block grid, and one epoch of it.

>>> from dpmf.engine.grid import BlockGrid
>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> grid = BlockGrid.build(ratings)
>>> keys = ratings.user_ids.keys, ratings.catalogue.ids.keys
>>> state = Descent.start(grid, *keys, n_factors=4, sd=0.1, unit=1.0, seed=0)
>>> first = state.run_epoch(1, rate=0.02, regularization=0.05, n_threads=1)
>>> state.run_epoch(2, rate=0.02, regularization=0.05, n_threads=1).train_rmse < first.train_rmse
True
"""

from __future__ import annotations

import math
import mmap
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import BlockFile
from dpmf.engine.factors import factor_rows, fill_randomly, padded
from dpmf.engine.grid import Block, BlockGrid
from dpmf.engine.mapped import MappedRows
from dpmf.engine.stored import StoredRatings
from dpmf.engine.tensorfile import Tensor
from dpmf.engine.threads import run_blocks
from dpmf.errors import DpmfError
from dpmf.kernels.rows import FLOATS_PER_LINE, pack, unpack
from dpmf.kernels.sgd import Step, sgd_block
from dpmf.model import EpochRecord
from dpmf.ratings import Ratings
from dpmf.streams import mix, stream_key

_BYTES_AT_ONCE = 1 << 24


@dataclass(eq=False)
class Descent:
    """What training changes, in the grid's numbering.

    Attributes:
        grid: the ratings.
        U, b: factors (padded rows) and biases of users.
        V, c: factors and biases of items; V is float32, or uint32 words of two 16-bit factors.
        n_factors: K.
        unit: of the rating scale, as in `dpmf.kernels.sgd`.
        seed: of the rounding of a 16-bit V.
        capacity: how many ratings may be in memory at once, if they are on disk.
        mapped: what U is mapped from, if it is on the disk.
    """

    grid: BlockGrid | BlockFile
    U: NDArray[np.float32]
    V: NDArray[Any]
    b: NDArray[np.float32]
    c: NDArray[np.float32]
    n_factors: int
    unit: float
    seed: int
    capacity: int | None = None
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
        capacity: int | None = None,
        user_folder: Path | None = None,
    ) -> Descent:
        """Return biases of zero and random factors, each row made from its own key.

        Args:
            grid: the ratings.
            user_keys, item_keys: keys of all users and items, by their positions in the ratings.
            n_factors: K.
            sd: standard deviation of every factor.
            unit, seed, capacity: see the class.
            packed: whether item factors are stored in sixteen bits.
            user_folder: a folder on whose disk user factors are kept; in memory unless given.
        """
        multiple = 2 * FLOATS_PER_LINE if packed else FLOATS_PER_LINE
        layout, n_users, n_items = grid.layout, len(user_keys), len(item_keys)
        mapped = None if user_folder is None else MappedRows(user_folder, (n_users, padded(n_factors, multiple)))
        U = factor_rows(n_users, n_factors, multiple) if mapped is None else mapped.array
        for first, last in pairwise(layout.strip_starts.tolist()):
            keys = user_keys[layout.user_order[first:last]]
            fill_randomly(stream_key(seed, "user factors"), keys, n_factors, sd, U[first:last])
            if mapped is not None:
                mapped.put_away(first, last)
        V = factor_rows(n_items, n_factors, multiple)
        fill_randomly(stream_key(seed, "item factors"), item_keys[layout.item_order], n_factors, sd, V)
        b, c = np.zeros(n_users, np.float32), np.zeros(n_items, np.float32)
        return cls(grid, U, _packed(V) if packed else V, b, c, n_factors, unit, seed, capacity, mapped)

    def run_epoch(self, epoch: int, rate: float, regularization: float, n_threads: int) -> EpochRecord:
        """Visit every rating once."""
        strips, tiers, size = self.grid.layout.strip_starts, self.grid.layout.tier_starts, self.grid.layout.size
        step = Step.of(self.grid.mean, rate, regularization, self.unit)
        seeds = mix(stream_key(self.seed, f"rounding in epoch {epoch}") + np.arange(size * size, dtype=np.uint64))

        def visit(strip: int, tier: int, block: Block) -> float:
            of_users, of_items = slice(strips[strip], strips[strip + 1]), slice(tiers[tier], tiers[tier + 1])
            squared = sgd_block(
                *block, self.grid.table,
                self.U[of_users], self.V[of_items], self.b[of_users], self.c[of_items],
                step, seeds[strip * size + tier],
            )  # fmt: skip
            if self.mapped is not None:
                self.mapped.put_away(strips[strip], strips[strip + 1])
            return squared

        # Where an epoch starts leaves a trace in the factors; varying it gives the lower error on unseen ratings.
        first_tier = int(stream_key(self.seed, f"first tier of epoch {epoch}") % np.uint64(size))
        began = time.perf_counter()
        squared = float(run_blocks(visit, self.grid, n_threads, self.capacity, first_tier).sum())
        seconds = time.perf_counter() - began
        if not math.isfinite(squared):
            raise DpmfError(
                f"training diverged in epoch {epoch} at learning rate {rate:g}: use a smaller learning_rate"
            )
        return EpochRecord(epoch, seconds, math.sqrt(squared / len(self.grid)))

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Return what training changes, by name; writing into these arrays changes the state."""
        return {"U": self.U, "V": self.V, "b": self.b, "c": self.c}

    def tensors(self) -> dict[str, Tensor]:
        """Return `parameters` for a snapshot, which handles a U on the disk piece by piece."""
        return {**self.parameters(), "U": self.U if self.mapped is None else self.mapped}

    @property
    def item_factors(self) -> NDArray[np.float32]:
        """The item factors as float32, padded, in the grid's order."""
        return unpack(self.V) if self.V.dtype == np.uint32 else self.V

    def forget_unrated(self, user_counts: NDArray[np.int64], item_counts: NDArray[np.int64]) -> None:
        """Set the factors of users and items without a rating to 0: their random start says nothing about them."""
        order = self.grid.layout.user_order
        for first, last in pairwise(self.grid.layout.strip_starts.tolist()):
            unrated = user_counts[order[first:last]] == 0
            if unrated.any():
                self.U[first:last][unrated] = 0
                if self.mapped is not None:
                    self.mapped.put_away(first, last)
        self.V[item_counts[self.grid.layout.item_order] == 0] = 0

    def user_side(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return factors, shape (n_users, K), and biases of users by their positions in the ratings."""
        order = self.grid.layout.user_order
        if self.mapped is None:
            return _restored(self.U[:, : self.n_factors], self.b, order)
        result = MappedRows(self.mapped.folder, (len(self.U), self.n_factors))
        biases = np.empty(len(order), np.float32)
        biases[order] = self.b
        count = max(_BYTES_AT_ONCE // max(4 * self.n_factors, mmap.PAGESIZE), 1)  # a row takes a page at least
        for first in range(0, len(order), count):
            chosen = order[first : first + count]
            # In the order of U: reading at random would bring in far more of the file than is wanted.
            result.array[chosen] = self.U[first : first + len(chosen), : self.n_factors]
            self.mapped.put_away(0, len(order))
            result.put_away(0, len(order))
        return result.array, biases

    def item_side(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return factors, shape (n_items, K), and biases of items by their positions in the ratings."""
        return _restored(self.item_factors[:, : self.n_factors], self.c, self.grid.layout.item_order)


def counts_of(ratings: Ratings | StoredRatings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ratings per user and per item."""
    if isinstance(ratings, StoredRatings):
        return ratings.blocks.user_counts, ratings.blocks.item_counts
    return np.diff(ratings.indptr), np.bincount(ratings.items, minlength=ratings.n_items)


def _packed(V: NDArray[np.float32]) -> NDArray[np.uint32]:
    words = factor_rows(len(V), V.shape[1] // 2).view(np.uint32)
    words[:] = pack(V)
    return words


def _restored(
    factors: NDArray[np.float32], biases: NDArray[np.float32], order: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    there, those = np.empty(factors.shape, np.float32), np.empty(biases.shape, np.float32)
    there[order], those[order] = factors, biases
    return there, those
