"""Posterior sampling without privacy on the workers of a cluster, to the bits of one machine.

Rows, their clocks and the averages of item factors are on the workers; whoever leads the run draws the precisions of
the priors, from sums of squares that come by strip and tier, and adds these up in the order of one machine. A tier is
averaged where the strip of its number is, wherever it happens to be at the end of an epoch. Noise depends on the seed,
the epoch and the step, so epochs that are repeated after a loss have the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import BlockFile
from dpmf.engine.cluster import Cluster, Post
from dpmf.engine.factors import padded
from dpmf.engine.grid import Block
from dpmf.engine.portions import owner_of, starts_of, writable
from dpmf.engine.schedule import Place
from dpmf.engine.spread import SpreadGrid, Strips
from dpmf.engine.store import StoredRatings, counts_of
from dpmf.methods.base import RunOptions
from dpmf.methods.sgd.spread import DescentStart, beginnings_on
from dpmf.methods.sgld.draws import START_SD, Averages, plain_density, release_of
from dpmf.methods.sgld.sampler import (
    Array,
    Constants,
    ItemTier,
    Sampler,
    UserStrip,
    clocks_of,
    squares_of,
    visit_block,
)
from dpmf.methods.snapshots import snapshots_of
from dpmf.methods.spread import SpreadRun
from dpmf.methods.units import unit_of
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Guarantee

if TYPE_CHECKING:
    from dpmf.methods.sgld import SGLD

logger = logging.getLogger(__name__)


class Rows(NamedTuple):
    """The state of a strip or a tier: the fields of `dpmf.kernels.sgld.Side` that are its own."""

    factors: NDArray[np.float32]
    biases: NDArray[np.float32]
    clocks: NDArray[np.int64]


class Sums(NamedTuple):
    """Sums of draws of a tier."""

    factors: Array
    biases: Array


class Found(NamedTuple):
    """What a worker tells of an epoch.

    Attributes:
        of_users: the sums of squares of factors, of its own strips.
        of_items: those of the tiers that are there, by number.
        is_finite: whether all of these tiers are.
    """

    of_users: list[Array]
    of_items: dict[int, Array]
    is_finite: bool


@dataclass(frozen=True, eq=False)
class ChainStart:
    """How a chain begins on a worker, as `dpmf.engine.portions.Start` says.

    Attributes:
        factors: how factors begin.
        n_ratings: how many there are on all workers.
        gaussians: as that of `Sampler`.
    """

    factors: DescentStart
    n_ratings: int
    gaussians: NDArray[np.float32]

    def strip(self, blocks: BlockFile, strip: int) -> Rows:
        """Return the initial state of a strip."""
        counts = blocks.user_counts[blocks.layout.user_order[blocks.layout.strips[strip]]]
        return Rows(*self.factors.strip(blocks, strip), clocks_of(counts, self.n_ratings))

    def tier(self, blocks: BlockFile, tier: int) -> Rows:
        """Return the initial state of a tier."""
        counts = blocks.item_counts[blocks.layout.item_order[blocks.layout.tiers[tier]]]
        return Rows(*self.factors.tier(blocks, tier), clocks_of(counts, self.n_ratings))


class ChainStrips(Strips):
    """Strips of users on a worker, the tiers that are there at the moment, and averages of the worker's own.

    Args:
        folder, fingerprint, starts, worker, n_threads: as those of `Strips`.
        start: of the chain.
    """

    def __init__(
        self, folder: Path, fingerprint: str, starts: Sequence[int], worker: int, start: ChainStart, n_threads: int
    ) -> None:
        super().__init__(folder, fingerprint, starts, worker, start, n_threads)
        self._n_factors, self._gaussians = start.factors.n_factors, writable(start.gaussians)

    def begin(self) -> None:
        """Set the initial state."""
        super().begin()
        sizes = {tier: len(rows.biases) for tier, rows in self._tiers.items()}
        self._sums = {tier: Sums(np.zeros((n, self._n_factors)), np.zeros(n)) for tier, n in sizes.items()}

    def average(self, post: Post, first_tier: int) -> None:
        """Add the tiers to their sums; `first_tier` says where they are."""
        for tier in self.held(first_tier):
            owner, rows = owner_of(tier, self._starts), self._tiers[tier]
            if owner != self._worker:
                post.send(owner, ("average", 0, tier), rows[:2])
        for tier, sums in self._sums.items():
            is_here = owner_of(tier - first_tier, self._starts) == self._worker
            V, c = self._tiers[tier][:2] if is_here else post.receive(("average", 0, tier))
            self._received += 0 if is_here else V.nbytes + c.nbytes
            np.add(sums.factors, V[:, : self._n_factors], out=sums.factors)
            np.add(sums.biases, c, out=sums.biases)

    def sums(self) -> dict[int, Sums]:
        """Return the sums of the worker's own tiers."""
        return self._sums

    def _visit(self, block: Block, strip: Rows, tier: Rows, constants: Constants, place: Place) -> float:
        layout, weights = self._blocks.layout, np.ones(len(strip.biases), np.float32)
        users = UserStrip(*strip, weights, layout.strips[place.strip].start)
        items = ItemTier(*tier, layout.tiers[place.tier].start)
        return visit_block(block, users, items, constants._replace(gaussians=self._gaussians), place)

    def _end(self, post: Post, first_tier: int, averaged: bool) -> Found:  # type: ignore[override]
        """Average the tiers if this epoch counts, and return the sums of squares."""
        if averaged:
            self.average(post, first_tier)
        here, K = {tier: self._tiers[tier] for tier in self.held(first_tier)}, self._n_factors
        return Found(
            [squares_of(self._strips[strip].factors, K) for strip in self._own],
            {tier: squares_of(rows.factors, K) for tier, rows in here.items()},
            all(bool(np.isfinite(rows.factors).all() and np.isfinite(rows.biases).all()) for rows in here.values()),
        )

    def _kept(self) -> dict[str, dict[int, Any]]:
        return {**super()._kept(), "average": self._sums}


class SpreadChain(SpreadGrid):
    """A chain on the workers of a cluster, as whoever leads the run sees it: a team of `ChainStrips`."""

    def average(self) -> None:
        """Add the current state to the sums."""
        self._team.together("average", self._first_tier)

    def sums(self) -> list[Sums]:
        """Return the sums of all tiers."""
        found: dict[int, Sums] = {}
        for part in self._everywhere("sums"):
            found |= part
        return [found[tier] for tier in range(self._size)]


@dataclass(eq=False)
class Precisions:
    """The precisions of the priors, and their sum over draws, as `dpmf.methods.spread.Progress` says.

    Attributes:
        sampler: which has the current ones.
        prior: those of the start.
        sum: of those of users' factors.
        draws: how many there were.
    """

    sampler: Sampler
    prior: float
    sum: Array
    draws: int = 0

    def add(self) -> None:
        """Add the current ones."""
        self.sum += self.sampler.priors[0, : len(self.sum)]
        self.draws += 1

    def facts(self) -> dict[str, Any]:
        """Return them in JSON values."""
        return {"priors": self.sampler.priors.tolist(), "sum_P": self.sum.tolist(), "draws": self.draws}

    def restore(self, facts: Mapping[str, Any] | None) -> None:
        """Return to these, or to the start."""
        priors, K = self.sampler.priors, len(self.sum)
        if facts is None:
            priors[:, :K], self.sum[:], self.draws = self.prior, 0, 0
        else:
            priors[:], self.sum[:], self.draws = facts["priors"], facts["sum_P"], int(facts["draws"])


def sampled_on(method: SGLD, ratings: StoredRatings, options: RunOptions, cluster: Cluster) -> Model:
    """Run a chain on the workers of a cluster, and return the release of its draws, without anybody."""
    settings, blocks, layout = method.resolve(), ratings.blocks, ratings.blocks.layout
    K, epochs = settings.n_factors, settings.n_epochs
    counts = counts_of(ratings)
    rated = tuple(int(np.count_nonzero(one)) for one in counts)
    sampler = Sampler.start(
        blocks,
        plain_density(blocks.mean, settings.temperature),
        unit=unit_of(ratings.scale),
        n_factors=K,
        width=padded(K),
        busiest=int(max(one.max() for one in counts)),
        heaviest=1.0,
        prior=settings.regularization,
        table_size=settings.table,
        seed=method.seed,
        noise_seed=method.seed,
    )
    precisions = Precisions(sampler, settings.regularization, np.zeros(K))
    starts = starts_of(blocks.size, cluster.n_workers)
    where = blocks.folder.absolute(), blocks.fingerprint(), starts
    beginnings = beginnings_on(ratings, starts, K, START_SD, method.seed)
    arguments = [
        (*where, worker, ChainStart(start, len(blocks), sampler.gaussians), cluster.n_threads)
        for worker, start in enumerate(beginnings)
    ]
    same = {"name": "sgld", **method.facts(), "budget": str(method.budget), "stored": "in parts"}
    with (
        cluster.team(ChainStrips, arguments) as team,
        snapshots_of(options.checkpoint, same, ratings, blocks.fingerprint) as snapshots,
    ):
        chain = SpreadChain(team, starts)

        def advance(epoch: int) -> EpochRecord:
            rate, averaged = settings.rate(epoch), epoch > epochs - settings.n_samples
            constants = sampler.constants(epoch, rate)._replace(gaussians=np.zeros(0, np.float32))  # they have them
            began = time.perf_counter()
            done = chain.run(constants, constants.first_tier, averaged)
            seconds = time.perf_counter() - began
            logger.debug("epoch %d: workers received %s bytes of item factors", epoch, done.received)
            found: tuple[Found, ...] = done.found
            is_finite = all(one.is_finite for one in found)
            record = sampler.record(done.results, epoch, rate, seconds, is_finite=is_finite)
            of_items = {tier: one for part in found for tier, one in part.of_items.items()}
            squares = [one for part in found for one in part.of_users], [of_items[tier] for tier in sorted(of_items)]
            sampler.learn_priors(epoch, 1 / rate, *zip(rated, squares, strict=True))
            if averaged:
                precisions.add()
            return record

        run = SpreadRun(chain, snapshots, epochs, advance, precisions)
        history = run.carry_out(options.callbacks)
        sums: list[Sums] = []

        def gather() -> None:
            if not precisions.draws:  # the run ended before the first draw to be averaged
                chain.average()
                precisions.add()
            sums[:] = chain.sums()

        run.steadily(gather)
    averages = Averages(
        np.array([precisions.draws]),
        np.concatenate([one.factors for one in sums]),
        np.concatenate([one.biases for one in sums]),
        precisions.sum,
    )
    release = release_of(ratings, sampler, averages, layout.item_order, method.configuration(), Guarantee.none())
    return Model.without_users(release, history)
