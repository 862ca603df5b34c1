"""Executors on the threads of this process: with all blocks in memory, or with a thread that reads them from disk."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.executor import Blocks, Constants, Epoch, Strip, Tier
from dpmf.engine.prefetch import Prefetcher
from dpmf.engine.schedule import Place, Schedule
from dpmf.engine.threads import WAKE_SECONDS, run_workers


@dataclass(frozen=True)
class ThreadExecutor:
    """Runs epochs on threads, with all blocks in memory.

    Attributes:
        n_threads: the number of blocks visited at a time.
    """

    n_threads: int

    def run(self, epoch: Epoch[Strip, Tier, Constants], blocks: Blocks) -> NDArray[np.float64]:
        """Visit every block once, as `dpmf.engine.executor.Executor` says."""
        workers = _Workers(epoch, blocks.size, self.n_threads)
        return workers.run(_Resident(blocks))


@dataclass(frozen=True)
class StreamingExecutor:
    """Runs epochs on threads, with one more thread that reads blocks from disk ahead of them.

    Attributes:
        n_threads: the number of blocks visited at a time.
        capacity: the number of ratings held in memory at once; a single block may exceed it.
    """

    n_threads: int
    capacity: int

    def run(self, epoch: Epoch[Strip, Tier, Constants], blocks: Blocks) -> NDArray[np.float64]:
        """Visit every block once, as `dpmf.engine.executor.Executor` says."""
        workers = _Workers(epoch, blocks.size, self.n_threads)
        with Prefetcher(
            blocks,
            capacity=self.capacity,
            notify=workers.notify,
            first_tier=epoch.first_tier,
            n_workers=workers.count,
        ) as prefetched:
            return workers.run(prefetched)


class _Source(Protocol):
    """Where workers get blocks from."""

    def is_ready(self, strip: int, tier: int) -> bool:
        """Whether a block can be had without waiting."""

    def get(self, strip: int, tier: int) -> Any:
        """Return a block that is ready."""

    def release(self, strip: int, tier: int) -> None:
        """Release a block that has been visited."""


class _Resident:
    """Blocks that are all in memory."""

    def __init__(self, blocks: Blocks) -> None:
        self.get = blocks.block

    def is_ready(self, strip: int, tier: int) -> bool:
        return True

    def release(self, strip: int, tier: int) -> None:
        pass


class _Workers:
    """The threads of one epoch, and what they share."""

    def __init__(self, epoch: Epoch[Any, Any, Any], size: int, n_threads: int) -> None:
        self.count = min(n_threads, size)
        self._epoch = epoch
        self._results = np.zeros((size, size))
        self._schedule = Schedule(size, epoch.first_tier, self.count)
        # Plain locks, because the calling thread works too: Ctrl-C in a condition or an event would leave it locked.
        self._lock = threading.Lock()
        self._bells = [threading.Lock() for _ in range(self.count)]  # locked until something changes

    def run(self, source: _Source) -> NDArray[np.float64]:
        """Visit every block, and return the results."""

        def loop(stopped: threading.Event, worker: int) -> None:
            while True:
                with self._lock:
                    self._bells[worker].acquire(blocking=False)
                    place = self._schedule.take(source.is_ready, worker)
                    over = self._schedule.finished or stopped.is_set()
                if over:
                    return
                if place is None:
                    self._bells[worker].acquire(timeout=WAKE_SECONDS)
                    continue
                self._visit(place, source)
                with self._lock:
                    self._schedule.finish(place.strip)
                    self._ring()

        run_workers(loop, self.count)
        return self._results

    def notify(self) -> None:
        """Wake the workers: a block has been read, or reading has failed."""
        with self._lock:
            self._ring()

    def _visit(self, place: Place, source: _Source) -> None:
        epoch, (strip, tier) = self._epoch, place
        block = source.get(strip, tier)
        self._results[place] = epoch.visit(block, epoch.strips[strip], epoch.tiers[tier], epoch.constants, place)
        if epoch.put_away is not None:
            epoch.put_away(strip)
        source.release(strip, tier)

    def _ring(self) -> None:
        for bell in self._bells:
            if bell.locked():
                bell.release()
