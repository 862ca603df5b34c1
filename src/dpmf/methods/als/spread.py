"""Alternating least squares without privacy on the workers of a cluster, to the bits of one machine.

Users are solved where they live: every worker keeps the strips of users of the block grid that it was dealt, with
their ratings, and the tiers of items of the same numbers, with the ratings of those. Half an epoch each: item factors
go to all workers, which solve for their users; user factors go from worker to worker, which solve for their items.
Every row is a problem of its own whose ratings stand in the order of the store, wherever it is solved.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import BlockFile
from dpmf.engine.cluster import Call, Cluster
from dpmf.engine.portions import Portion, Portions, Travelling, starts_of
from dpmf.engine.sparse import SparseRows
from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.kernels.als_implicit import Confidence, extra_weights
from dpmf.kernels.ridge import Penalties
from dpmf.methods.als.half_step import Problem, Rows, observed_half, rated_half
from dpmf.methods.als.plain import BIAS_PART, EXPONENT, INITIAL_SD, Array, check_plain, initial_rows, initial_sd
from dpmf.methods.base import RunOptions
from dpmf.methods.snapshots import snapshots_of
from dpmf.methods.spread import SpreadRun
from dpmf.methods.units import unit_of
from dpmf.model import EpochRecord

logger = logging.getLogger(__name__)
_TOO_LARGE_TO_PASS_ON = 1 << 17  # bytes: Ray hands smaller results to whoever asked, and so through its hands


class Found(NamedTuple):
    """What training found: factors and biases of items by their positions in the ratings, and a record per epoch."""

    factors: Array
    biases: Array
    history: tuple[EpochRecord, ...]


@dataclass(frozen=True, eq=False)
class Beginning:
    """How a run begins on a worker, as `dpmf.engine.portions.Start` says; attributes as those of `initial_rows`."""

    item_keys: NDArray[np.uint64]
    n_factors: int
    sd: float
    seed: int
    common: float

    def strip(self, blocks: BlockFile, strip: int) -> Rows:
        """Return zeros."""
        rows = blocks.layout.strips[strip]
        return Rows.zeros(rows.stop - rows.start, self.n_factors)

    def tier(self, blocks: BlockFile, tier: int) -> Rows:
        """Return random factors of items with ratings."""
        items = blocks.layout.item_order[blocks.layout.tiers[tier]]
        counts = blocks.item_counts[items]
        return initial_rows(self.item_keys[items], counts, self.n_factors, self.sd, self.seed, self.common)


class Profiles(NamedTuple):
    """Strips of users on their way to other workers, with as many more bytes as keep them off whoever leads the run."""

    strips: list[Travelling]
    ballast: bytes


class Solved(NamedTuple):
    """What solving for a worker's items found.

    Attributes:
        objectives: what each item adds to the objective, by tier.
        everywhere: what the objective has beside that, which every worker finds.
        received: how many bytes of factors came from other workers.
    """

    objectives: dict[int, NDArray[np.float64]]
    everywhere: float
    received: int


class Sides(Portion):
    """Strips of users and tiers of items on a worker, with the ratings of both.

    Args:
        folder, fingerprint, starts, worker, start: as those of `Portion`.
        problem: what is minimised.
        confidence: makes weights of observations from what is rated; None for ratings.
        n_threads: how many threads to use.
    """

    def __init__(
        self,
        folder: Path,
        fingerprint: str,
        starts: Sequence[int],
        worker: int,
        start: Beginning,
        problem: Problem,
        confidence: Confidence | None,
        n_threads: int,
    ) -> None:
        super().__init__(folder, fingerprint, starts, worker, start)
        self._n_factors, self._problem, self._n_threads = start.n_factors, problem, n_threads
        blocks = self._blocks
        every = range(blocks.size)
        self._users = {one: _ratings_in(blocks, [one], every, True, confidence) for one in self._own}
        self._items = {one: _ratings_in(blocks, every, [one], False, confidence) for one in self._own}
        self._received = 0

    def items(self) -> list[Travelling]:
        """Return the worker's own tiers."""
        return [Travelling(tier, rows) for tier, rows in self._tiers.items()]

    def solve_users(self, *tiers: list[Travelling]) -> Profiles:
        """Solve for the worker's users, given all tiers, and return them."""
        layout, self._received = self._blocks.layout, 0
        half = self._problem(self._together(tiers, self._tiers, layout.item_order, layout.tiers), self._n_threads)
        for strip, rows in self._strips.items():
            half.solve(self._users[strip], rows, self._n_threads)
        strips = [Travelling(strip, rows) for strip, rows in self._strips.items()]
        size = sum(array.nbytes for rows in self._strips.values() for array in rows)
        return Profiles(strips, bytes(max(_TOO_LARGE_TO_PASS_ON - size, 0)))

    def solve_items(self, *profiles: Profiles) -> Solved:
        """Solve for the worker's items, given all users."""
        layout = self._blocks.layout
        parts = [one.strips for one in profiles]
        half = self._problem(self._together(parts, self._strips, layout.user_order, layout.strips), self._n_threads)
        objectives = {tier: half.solve(self._items[tier], rows, self._n_threads) for tier, rows in self._tiers.items()}
        return Solved(objectives, half.everywhere, self._received)

    def _together(
        self,
        parts: Sequence[list[Travelling]],
        own: Mapping[int, Rows],
        order: NDArray[np.int64],
        places: list[slice],
    ) -> Rows:
        """Return the rows of one side by their positions in the ratings."""
        whole = Rows.zeros(len(order), self._n_factors)
        for number, rows in (one for part in parts for one in part):
            where = order[places[number]]
            whole.factors[where], whole.biases[where] = rows
            if number not in own:
                self._received += sum(array.nbytes for array in rows)
        return whole


def train_on(
    ratings: StoredRatings,
    configuration: Mapping[str, Any],
    options: RunOptions,
    cluster: Cluster,
    confidence: Confidence | None = None,
) -> Found:
    """Train on the workers of a cluster.

    Args:
        ratings: of which every worker opens its own blocks.
        configuration: the settings of the method.
        options: callbacks and checkpoint.
        cluster: the workers.
        confidence: in observations; None for ratings.
    """
    check_cap(configuration)
    n_factors, n_epochs, penalty, seed = (
        configuration[name] for name in ("n_factors", "n_epochs", "regularization", "seed")
    )
    check_plain(len(ratings), n_factors, n_epochs, seed, penalty)
    problem: Problem
    blocks, n_workers = ratings.blocks, cluster.n_workers
    starts, unit, keys = starts_of(blocks.size, n_workers), unit_of(ratings.scale), ratings.catalogue.ids.keys
    if confidence is None:
        problem = partial(rated_half, blocks.mean, Penalties(BIAS_PART * penalty, penalty * unit, EXPONENT))
        beginning = Beginning(keys, n_factors, initial_sd(unit), seed, 0.0)
    else:
        problem, beginning = partial(observed_half, penalty), Beginning(keys, n_factors, INITIAL_SD, seed, INITIAL_SD)
    own = blocks.folder.absolute(), blocks.fingerprint()
    what = beginning, problem, confidence, cluster.n_threads
    same = {"name": "als", **configuration, "stored": "in parts"}
    with (
        cluster.team(Sides, [(*own, starts, worker, *what) for worker in range(n_workers)]) as team,
        snapshots_of(options.checkpoint, same, ratings, blocks.fingerprint) as snapshots,
    ):

        def advance(epoch: int) -> EpochRecord:
            began = time.perf_counter()
            solved: list[Solved] = team.carry_out(list(_calls(n_workers)))
            objectives = np.empty(ratings.n_items)
            for tier, found in (pair for one in solved for pair in one.objectives.items()):
                objectives[blocks.layout.item_order[blocks.layout.tiers[tier]]] = found
            squared = float(objectives.sum() + solved[0].everywhere) / len(ratings)
            logger.debug("epoch %d: workers received %s bytes of factors", epoch, [one.received for one in solved])
            return EpochRecord(epoch, time.perf_counter() - began, math.sqrt(max(squared, 0.0)))

        run = SpreadRun(Portions(team, starts), snapshots, n_epochs, advance)
        history, tiers = run.carry_out(options.callbacks), run.tiers()
    V, c = np.empty((ratings.n_items, n_factors), np.float32), np.empty(ratings.n_items, np.float32)
    for where, rows in zip(blocks.layout.tiers, tiers, strict=True):
        items = blocks.layout.item_order[where]
        V[items], c[items] = rows.factors[:, :n_factors], rows.biases
    return Found(V, c, history)


def check_cap(configuration: Mapping[str, Any]) -> None:
    """Refuse a choice among everybody's ratings."""
    if configuration.get("cap") is not None:
        raise InvalidArgument(
            f"cap={configuration['cap']} needs all ratings in one place without privacy: leave it out on a cluster"
        )


def _calls(n_workers: int) -> Iterator[Call]:
    """Yield the calls of an epoch."""
    items = [Call(worker, "items") for worker in range(n_workers)]
    users = [Call(worker, "solve_users", tuple(items)) for worker in range(n_workers)]
    yield from [*items, *users]
    yield from (Call(worker, "solve_items", tuple(users), True) for worker in range(n_workers))


def _ratings_in(
    blocks: BlockFile, strips: Iterable[int], tiers: Iterable[int], by_user: bool, confidence: Confidence | None
) -> SparseRows:
    """Return the ratings in some blocks, in rows of a strip's users, or of a tier's items.

    Columns are positions in the ratings and ascend in every row, as those of ratings in memory do.
    """
    layout, rows, columns, values = blocks.layout, [], [], []
    for strip, tier in product(strips, tiers):
        block = blocks.block(strip, tier)
        users, items = layout.user_order[layout.strips[strip]], layout.item_order[layout.tiers[tier]]
        n_rows = len(users if by_user else items)
        rows.append((block.users if by_user else block.items).astype(np.int64))
        columns.append((items[block.items] if by_user else users[block.users]).astype(np.int32))
        values.append(blocks.table[block.codes])
        blocks.release(block)
    row, column, value = map(np.concatenate, (rows, columns, values))
    order = np.lexsort((column, row))
    if confidence is not None:
        value = extra_weights(value, confidence).astype(np.float32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n_rows))])
    return SparseRows(indptr, column[order], value[order])
