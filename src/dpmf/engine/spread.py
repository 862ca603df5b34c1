"""An epoch over the block grid on the workers of a cluster: strips of users stay, tiers of items travel.

Each worker owns consecutive strips: it opens their blocks by itself and keeps their state. A tier visits strip after
strip, so it passes from a worker to the one before it in the order of strips, directly. Whoever leads the run calls
each worker once an epoch, and sees sums of errors, and in the end item factors. The order of visits is that of
`dpmf.engine.schedule`, whatever the number of workers, so results are those of one machine, byte for byte.

A visit changes its state in place and cannot be repeated. So nothing is retried when a worker is lost: whoever leads
the run lets all workers load the last snapshot, or begin again, which gives the same bits as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.cluster import Post
from dpmf.engine.portions import Portion, Portions, Start, own_copy, owner_of, writable
from dpmf.engine.schedule import Place, tier_at
from dpmf.engine.threads import run_tasks


class Spent(NamedTuple):
    """What a worker did in an epoch.

    Attributes:
        results: of its visits, by own strips and tiers.
        received: how many bytes of tiers came from other workers.
        found: what the method wants to know of the strips and tiers that are there at the end.
    """

    results: NDArray[np.float64]
    received: int
    found: Any


class Strips(Portion, ABC):
    """Consecutive strips on a worker, and the tiers that are there at the moment.

    Args:
        folder, fingerprint, starts, worker, start: as those of `Portion`.
        n_threads: how many blocks are visited at a time.
    """

    def __init__(
        self, folder: Path, fingerprint: str, starts: Sequence[int], worker: int, start: Start, n_threads: int
    ) -> None:
        super().__init__(folder, fingerprint, starts, worker, start)
        self._n_threads = n_threads
        self._received = 0

    def epoch(self, post: Post, before: int, first_tier: int, constants: Any, *more: Any) -> Spent:
        """Visit every block of the own strips once.

        Args:
            post: to the other workers.
            before: the first tier of the epoch before, which says where tiers are.
            first_tier: of this epoch.
            constants: of the epoch.
            more: arguments of `_end`.
        """
        constants = writable(constants)
        own, size, n_workers = self._own, self._blocks.size, len(self._starts) - 1
        results, self._received = np.zeros((len(own), size)), 0
        self._move(post, "rotate", before, first_tier)
        for step in range(size):
            self._visit_all(step, first_tier, constants, results)
            if n_workers > 1:
                leaving, arriving = (tier_at(strip, step, first_tier, size) for strip in (own.start, own.stop))
                post.send((self._worker - 1) % n_workers, ("visit", step, leaving), self._tiers.pop(leaving))
                self._receive(post, "visit", step, arriving)
        found = self._end(post, first_tier, *more)
        return Spent(results, self._received, found)

    @abstractmethod
    def _visit(self, block: Any, strip: Any, tier: Any, constants: Any, place: Place) -> float:
        """Do the work of one block, as `dpmf.engine.executor.Epoch` says."""

    def _end(self, post: Post, first_tier: int) -> Any:
        """Do what a method does at the end of an epoch, and return what it wants to know."""

    def _visit_all(self, step: int, first_tier: int, constants: Any, results: NDArray[np.float64]) -> None:
        """Visit the blocks of a step."""

        def work(task: int) -> None:
            strip = self._own[task]
            place = Place(strip, tier_at(strip, step, first_tier, self._blocks.size))
            block = self._blocks.block(*place)
            state = self._strips[strip], self._tiers[place.tier]
            results[task, place.tier] = self._visit(block, *state, constants, place)
            self._blocks.release(block)

        run_tasks(work, len(self._own), self._n_threads)

    def _move(self, post: Post, why: str, before: int, after: int) -> None:
        """Let tiers go to where an epoch begins, or from where it has ended: strip 0 had one, and will have another."""
        there, here = self.held(before), self.held(after)
        for tier in there:
            if tier not in here:
                post.send(owner_of(tier - after, self._starts), (why, 0, tier), self._tiers.pop(tier))
        for tier in here:
            if tier not in there:
                self._receive(post, why, 0, tier)

    def _receive(self, post: Post, why: str, step: int, tier: int) -> None:
        """Wait for a tier, and keep it."""
        state = post.receive((why, step, tier))
        self._received += sum(array.nbytes for array in state)
        self._tiers[tier] = own_copy(state)


@dataclass(frozen=True)
class Epoch:
    """What the workers did in an epoch.

    Attributes:
        results: what the visits returned, shape (T, T), by strip and tier.
        received: how many bytes of tiers each worker got from others.
        found: what the method wanted to know from each.
    """

    results: NDArray[np.float64]
    received: tuple[int, ...]
    found: tuple[Any, ...]


class SpreadGrid(Portions):
    """A block grid on the workers of a cluster, as whoever leads the run sees it: a team of `Strips`."""

    def run(self, constants: Any, first_tier: int, *more: Any) -> Epoch:
        """Visit every block once; `more` are arguments of `Strips._end`.

        Raises:
            WorkerLost: a worker was lost; all have to begin again, or load a snapshot.
        """
        spent: list[Spent] = self._team.together("epoch", self._first_tier, first_tier, constants, *more)
        self._first_tier = first_tier
        results, received, found = zip(*spent, strict=True)
        return Epoch(np.concatenate(results), received, found)
