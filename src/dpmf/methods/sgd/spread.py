"""Stochastic gradient descent on the workers of a cluster, to the bits of one machine.

Every worker makes the start of its own strips from the ids of users and items, as `Descent.start` does for all of them.
Factors of users never leave it, except for snapshots, which it writes by itself: see `dpmf.methods.spread`.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import BlockFile
from dpmf.engine.cluster import Cluster
from dpmf.engine.factors import factor_rows, fill_randomly
from dpmf.engine.grid import Block
from dpmf.engine.portions import starts_of
from dpmf.engine.schedule import Place, first_tier_of
from dpmf.engine.spread import SpreadGrid, Strips
from dpmf.engine.store import StoredRatings
from dpmf.kernels.rows import unpack
from dpmf.methods.base import RunOptions
from dpmf.methods.sgd.descent import (
    Constants,
    ItemTier,
    UserStrip,
    constants_of,
    in_order_of_ids,
    packed_rows,
    record_of,
    row_multiple,
    visit_block,
)
from dpmf.methods.snapshots import snapshots_of
from dpmf.methods.spread import SpreadRun
from dpmf.model import EpochRecord
from dpmf.streams import stream_key

if TYPE_CHECKING:
    from dpmf.methods.sgd import SGD

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class DescentStart:
    """How descent begins on a worker, as `dpmf.engine.portions.Start` says.

    Attributes:
        user_keys: of the worker's own users, in the grid's numbering.
        first_user: the number of the first of them.
        item_keys: of all items, in the grid's numbering.
        n_factors, sd, seed, packed: as those of `Descent.start`.
    """

    user_keys: NDArray[np.uint64]
    first_user: int
    item_keys: NDArray[np.uint64]
    n_factors: int
    sd: float
    seed: int
    packed: bool

    def strip(self, blocks: BlockFile, strip: int) -> UserStrip:
        """Return the initial state of a strip: random factors of users with ratings, and zero biases."""
        rows = blocks.layout.strips[strip]
        keys = self.user_keys[rows.start - self.first_user : rows.stop - self.first_user]
        U = self._drawn("user factors", keys, blocks.user_counts[blocks.layout.user_order[rows]])
        return UserStrip(U, np.zeros(len(U), np.float32))

    def tier(self, blocks: BlockFile, tier: int) -> ItemTier:
        """Return the initial state of a tier, likewise."""
        rows = blocks.layout.tiers[tier]
        V = self._drawn("item factors", self.item_keys[rows], blocks.item_counts[blocks.layout.item_order[rows]])
        return ItemTier(packed_rows(V) if self.packed else V, np.zeros(len(V), np.float32))

    def _drawn(self, what: str, keys: NDArray[np.uint64], counts: NDArray[np.int64]) -> NDArray[np.float32]:
        rows = factor_rows(len(keys), self.n_factors, row_multiple(self.packed))
        fill_randomly(stream_key(self.seed, what), keys, self.n_factors, self.sd, rows)
        rows[counts == 0] = 0
        return rows


class DescentStrips(Strips):
    """Strips of users on a worker, and the tiers that are there at the moment."""

    def _visit(self, block: Block, strip: UserStrip, tier: ItemTier, constants: Constants, place: Place) -> float:
        return visit_block(block, strip, tier, constants, place)


class Found(NamedTuple):
    """What training found: factors and biases of items by their positions in the ratings, and a record per epoch."""

    factors: NDArray[np.float32]
    biases: NDArray[np.float32]
    history: tuple[EpochRecord, ...]


def descend_on(
    method: SGD, ratings: StoredRatings, options: RunOptions, cluster: Cluster, sd: float, unit: float
) -> Found:
    """Train on the workers of a cluster.

    Args:
        method: with all its settings chosen.
        ratings: of which every worker opens its own blocks.
        options: callbacks and checkpoint.
        cluster: the workers.
        sd, unit: as those of `Descent.start`.
    """
    blocks, settings = ratings.blocks, method.resolve()
    same = {"name": "sgd", **method.facts(), "stored": "in parts"}
    with (
        _grid_on(cluster, ratings, method, sd) as grid,
        snapshots_of(options.checkpoint, same, ratings, blocks.fingerprint, mean=blocks.mean) as snapshots,
    ):

        def advance(epoch: int) -> EpochRecord:
            rate = settings.rate(epoch)
            constants = constants_of(blocks, epoch, rate, settings.regularization, unit=unit, seed=method.seed)
            began = time.perf_counter()
            done = grid.run(constants, first_tier_of(method.seed, epoch, blocks.size))
            logger.debug("epoch %d: workers received %s bytes of item factors", epoch, done.received)
            return record_of(done.results, len(blocks), epoch, rate, time.perf_counter() - began)

        run = SpreadRun(grid, snapshots, method.n_epochs, advance)
        history, tiers = run.carry_out(options.callbacks), run.tiers()
    V = np.concatenate([unpack(tier.V) if tier.V.dtype == np.uint32 else tier.V for tier in tiers])
    factors, biases = in_order_of_ids(V, np.concatenate([tier.c for tier in tiers]), blocks.layout.item_order)
    return Found(factors[:, : method.n_factors], biases, history)


@contextlib.contextmanager
def _grid_on(cluster: Cluster, ratings: StoredRatings, method: SGD, sd: float) -> Iterator[SpreadGrid]:
    """Yield the block grid on the workers of a cluster."""
    blocks, starts = ratings.blocks, starts_of(ratings.blocks.size, cluster.n_workers)
    beginnings = beginnings_on(ratings, starts, method.n_factors, sd, method.seed, packed=method.storage == "bfloat16")
    where = blocks.folder.absolute(), blocks.fingerprint(), starts
    arguments = [(*where, worker, start, cluster.n_threads) for worker, start in enumerate(beginnings)]
    with cluster.team(DescentStrips, arguments) as team:
        yield SpreadGrid(team, starts)


def beginnings_on(
    ratings: StoredRatings, starts: Sequence[int], n_factors: int, sd: float, seed: int, *, packed: bool = False
) -> list[DescentStart]:
    """Return how descent begins on each worker, given the first strip of each, and the end."""
    layout = ratings.blocks.layout
    user_keys = ratings.user_ids.keys[layout.user_order]
    item_keys = ratings.catalogue.ids.keys[layout.item_order]
    users = [slice(layout.strip_starts[first], layout.strip_starts[last]) for first, last in pairwise(starts)]
    return [DescentStart(user_keys[those], int(those.start), item_keys, n_factors, sd, seed, packed) for those in users]
