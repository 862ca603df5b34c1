"""Stochastic gradient descent on the workers of a cluster, to the bits of one machine.

Every worker makes the start of its own strips from the ids of users and items, as `Descent.start` does for all of them.
Factors of users never leave it, except for snapshots, which it writes by itself. When a worker is lost, all go back to
the newest snapshot, or to the start where there is none, and repeat the epochs since.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import BlockFile
from dpmf.engine.checkpoints import Snapshots
from dpmf.engine.cluster import Cluster, WorkerLost
from dpmf.engine.factors import factor_rows, fill_randomly
from dpmf.engine.grid import Block
from dpmf.engine.schedule import Place, first_tier_of
from dpmf.engine.spread import SpreadGrid, Strips, starts_of
from dpmf.engine.store import StoredRatings
from dpmf.errors import DamagedFile, DpmfError, InvalidArgument
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
from dpmf.model import EpochRecord
from dpmf.streams import stream_key

if TYPE_CHECKING:
    from dpmf.methods.sgd import SGD

logger = logging.getLogger(__name__)
_MOST_LOSSES = 20  # without an epoch in between that got further than any before


@dataclass(frozen=True, eq=False)
class DescentStart:
    """How descent begins on a worker, as `dpmf.engine.spread.Start` says.

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

    def visit(self, block: Block, strip: UserStrip, tier: ItemTier, constants: Constants, place: Place) -> float:
        """Visit the ratings of a block once; return the sum of squared errors."""
        return visit_block(block, strip, tier, constants, place)

    def _drawn(self, what: str, keys: NDArray[np.uint64], counts: NDArray[np.int64]) -> NDArray[np.float32]:
        rows = factor_rows(len(keys), self.n_factors, row_multiple(self.packed))
        fill_randomly(stream_key(self.seed, what), keys, self.n_factors, self.sd, rows)
        rows[counts == 0] = 0
        return rows


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
    with _grid_on(cluster, ratings, method, sd) as grid:
        blocks = ratings.blocks
        same = {"name": "sgd", **method.facts(), "stored": "in parts"}
        with snapshots_of(options.checkpoint, same, ratings, blocks.fingerprint, mean=blocks.mean) as snapshots:
            run = _Run(method, ratings, grid, snapshots, unit)
            history = run.carry_out(options.callbacks)
        factors, biases = run.items()
    return Found(factors[:, : method.n_factors], biases, history)


class _Run:
    """The epochs of a run, repeated from a snapshot where a worker was lost."""

    def __init__(
        self, method: SGD, ratings: StoredRatings, grid: SpreadGrid, snapshots: Snapshots | None, unit: float
    ) -> None:
        self._method, self._blocks, self._grid = method, ratings.blocks, grid
        self._snapshots, self._unit = snapshots, unit
        self._history: list[EpochRecord] = []

    def carry_out(self, callbacks: tuple[Callable[[EpochRecord], bool | None], ...]) -> tuple[EpochRecord, ...]:
        """Carry out all epochs, and return a record of each."""
        self._steadily(self._restore)
        while len(self._history) < self._method.n_epochs:
            self._steadily(self._advance)
            stops = [callback(self._history[-1]) is True for callback in callbacks]  # every one is called
            if any(stops):
                break
        return tuple(self._history)

    def items(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return factors, padded, and biases of items by their positions in the ratings."""
        found: list[ItemTier] = []
        self._steadily(lambda: found.extend(self._grid.tiers()))
        V = np.concatenate([unpack(tier.V) if tier.V.dtype == np.uint32 else tier.V for tier in found])
        return in_order_of_ids(V, np.concatenate([tier.c for tier in found]), self._blocks.layout.item_order)

    def _steadily(self, work: Callable[[], object]) -> None:
        """Do something that needs all workers; if one is lost, let all return to where the run is, and repeat it."""
        reached, losses, lost = len(self._history), 0, False
        while True:
            try:
                if lost:
                    self._restore()
                    while len(self._history) < reached:
                        self._advance()
                work()
                return
            except WorkerLost as why:
                lost, losses = True, losses + 1
                if losses > _MOST_LOSSES:
                    raise DpmfError(
                        f"workers were lost {losses} times before epoch {reached + 1} was over ({why}): give them more "
                        "memory, or use more of them"
                    ) from None

    def _restore(self) -> None:
        """Let all workers load the newest snapshot, or begin."""
        found = None if self._snapshots is None else self._snapshots.latest_parts()
        if found is None:
            self._grid.begin()
            self._history = []
            return
        try:
            self._history = [EpochRecord(**record) for record in found.facts["history"]]
            if len(self._history) != found.epoch:
                raise ValueError(f"{len(self._history)} records of {found.epoch} epochs")
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"the checkpoint of epoch {found.epoch} is damaged: {error}") from None
        self._grid.load(found.folder, found.checksums)

    def _advance(self) -> None:
        """Carry out an epoch, and take a snapshot if one is due."""
        method, blocks, epoch = self._method, self._blocks, len(self._history) + 1
        settings = method.resolve()
        rate = settings.rate(epoch)
        constants = constants_of(blocks, epoch, rate, settings.regularization, unit=self._unit, seed=method.seed)
        began = time.perf_counter()
        done = self._grid.run(constants, first_tier_of(method.seed, epoch, blocks.size))
        record = record_of(done.results, len(blocks), epoch, rate, time.perf_counter() - began)
        logger.debug("epoch %d: workers received %s bytes of item factors", epoch, done.received)
        snapshots, history = self._snapshots, [*self._history, record]
        if snapshots is not None and (snapshots.is_due(epoch) or epoch == method.n_epochs):
            facts: dict[str, Any] = {"history": [asdict(one) for one in history]}
            snapshots.save_parts(epoch, self._grid.save, facts)
        self._history = history


@contextlib.contextmanager
def _grid_on(cluster: Cluster, ratings: StoredRatings, method: SGD, sd: float) -> Iterator[SpreadGrid]:
    """Yield the block grid on the workers of a cluster."""
    blocks, n_workers = ratings.blocks, cluster.n_workers
    layout, size = blocks.layout, blocks.size
    if n_workers > size:
        raise InvalidArgument(
            f"{n_workers} workers cannot share {size} strips of users: use {size} workers at most, or ingest the data "
            f"again with --strips {n_workers} or more, which changes results"
        )
    starts = starts_of(size, n_workers)
    user_keys = ratings.user_ids.keys[layout.user_order]
    item_keys = ratings.catalogue.ids.keys[layout.item_order]
    packed = method.storage == "bfloat16"
    arguments = []
    for first, last in pairwise(starts):
        users = slice(layout.strip_starts[first], layout.strip_starts[last])
        start = DescentStart(user_keys[users], int(users.start), item_keys, method.n_factors, sd, method.seed, packed)
        arguments.append((blocks.folder.absolute(), blocks.fingerprint(), first, last, start, cluster.n_threads))
    with cluster.team(Strips, arguments) as team:
        yield SpreadGrid(team, starts)
