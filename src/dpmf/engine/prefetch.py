"""Prefetching: a thread that reads blocks from disk ahead of the workers of an epoch.

>>> class Blocks:
...     size = 2
...     def count(self, strip, tier): return 1
...     def block(self, strip, tier): return (strip, tier)
...     def release(self, block): pass
>>> with Prefetcher(Blocks(), capacity=1, notify=lambda: None) as prefetched:
...     prefetched.wait(0, 0), prefetched.get(0, 0)
(True, (0, 0))
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import product
from types import TracebackType
from typing import Any

from dpmf.engine.executor import Blocks
from dpmf.engine.schedule import tier_at

_ENOUGH = 1 << 23  # ratings: reused buffers of this size are still in the cache
_BLOCKS_PER_WORKER = 4  # one at work, and some to choose from


class Prefetcher:
    """Reads blocks on a thread of its own, in the order in which workers will need them.

    The order is step by step, strip by strip. The first unfinished block in it can always run once it has been read,
    because everything it waits for comes before it; so a reader that keeps to the order never deadlocks the workers,
    however little it may hold.

    Args:
        blocks: the blocks to read.
        capacity: the number of ratings to hold at most; a single block may exceed it, and no more is held than helps.
        notify: called when a block has been read, or reading has failed.
        first_tier: the tier that strip 0 visits first, see `dpmf.engine.schedule`.
        n_workers: the number of workers that visit blocks.
    """

    def __init__(
        self, blocks: Blocks, *, capacity: int, notify: Callable[[], None], first_tier: int = 0, n_workers: int = 1
    ) -> None:
        self._blocks = blocks
        self._first_tier = first_tier
        largest = max(blocks.count(*place) for place in product(range(blocks.size), repeat=2))
        self._capacity = min(capacity, max(_ENOUGH, _BLOCKS_PER_WORKER * n_workers * largest))
        self._notify = notify
        self._held: dict[tuple[int, int], Any] = {}
        self._weight = 0
        self._lock = threading.Lock()  # workers enter the plain lock, never the condition; see `dpmf.engine.local`
        self._changed = threading.Condition(self._lock)
        self._stopped = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._read, name="dpmf-reader", daemon=True)

    def is_ready(self, strip: int, tier: int) -> bool:
        """Whether the block has been read. If reading has failed, raises that error."""
        with self._lock:
            if self._error is not None:
                raise self._error
            return (strip, tier) in self._held

    def wait(self, strip: int, tier: int) -> bool:
        """Wait until the block has been read."""
        with self._lock:
            self._changed.wait_for(lambda: (strip, tier) in self._held or self._error is not None)
        return self.is_ready(strip, tier)

    def get(self, strip: int, tier: int) -> Any:
        """Return a block that is ready."""
        with self._lock:
            return self._held[strip, tier]

    def release(self, strip: int, tier: int) -> None:
        """Release a block, which makes room for others."""
        with self._lock:
            self._blocks.release(self._held.pop((strip, tier)))
            self._weight -= self._blocks.count(strip, tier)
            self._changed.notify_all()

    def _make_room(self, weight: int) -> bool:
        """Wait until a block of this weight may be held; return whether to continue."""
        with self._lock:
            self._changed.wait_for(lambda: self._stopped or not self._held or self._weight + weight <= self._capacity)
            return not self._stopped

    def _read(self) -> None:
        size = self._blocks.size
        try:
            for step, strip in product(range(size), repeat=2):
                tier = tier_at(strip, step, self._first_tier, size)
                weight = self._blocks.count(strip, tier)
                if not self._make_room(weight):
                    return
                block = self._blocks.block(strip, tier)
                with self._lock:
                    self._held[strip, tier] = block
                    self._weight += weight
                    self._changed.notify_all()
                self._notify()
        except BaseException as error:
            with self._lock:
                self._error = error
                self._changed.notify_all()
            self._notify()

    def __enter__(self) -> Prefetcher:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join()
        for block in self._held.values():  # left over if something went wrong
            self._blocks.release(block)
        self._held.clear()
