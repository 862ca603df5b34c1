"""Handing blocks to the workers of an epoch, from memory or from a disk that is read ahead of them.

>>> class Blocks:
...     size = 2
...     def count(self, strip, tier): return 1
...     def block(self, strip, tier): return (strip, tier)
...     def done_with(self, block): pass
>>> with DiskFeed(Blocks(), capacity=1, notify=lambda: None) as feed:
...     feed.wait(0, 0), feed.get(0, 0)
(True, (0, 0))
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import product
from types import TracebackType
from typing import Any, Protocol

from dpmf.engine.schedule import tier_at

_ENOUGH = 1 << 23  # ratings: with less in use, memory that is used again is still cached
_BLOCKS_PER_WORKER = 4  # are enough in any case: one at work, and some to choose from


class Blocks(Protocol):
    """Whatever can say how many strips it has and return a block."""

    @property
    def size(self) -> int:
        """T, the number of strips and of tiers."""

    def count(self, strip: int, tier: int) -> int:
        """Return the number of ratings in a block."""

    def block(self, strip: int, tier: int) -> Any:
        """Return one block."""

    def done_with(self, block: Any) -> None:
        """Say that nobody looks at a block any more, so that its memory can be used for another."""


class MemoryFeed:
    """Blocks that are all there."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def is_ready(self, strip: int, tier: int) -> bool:
        """Whether the block can be had without waiting: always."""
        return True

    def get(self, strip: int, tier: int) -> Any:
        """Return the block."""
        return self._blocks.block(strip, tier)

    def release(self, strip: int, tier: int) -> None:
        """Say that the block is done with."""

    def __enter__(self) -> MemoryFeed:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class DiskFeed:
    """Blocks that a thread of its own reads ahead of the workers, in the order in which they will be wanted.

    The order is step by step, strip by strip. The first block in it that is not yet done can always run once it is
    read, because all it waits for stands before it; so a reader that keeps to the order can never block the workers,
    however little it may hold.

    Args:
        blocks: where to read from.
        capacity: how many ratings may be held at once; one block always may, and no more are than is of use.
        notify: called when a block has been read, or reading has failed.
        first_tier: of the epoch, see `dpmf.engine.schedule`.
        n_workers: how many visit blocks.
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
        self._lock = threading.Lock()  # entered by itself; see `dpmf.engine.threads.run_blocks`
        self._changed = threading.Condition(self._lock)
        self._stopped = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._read, name="dpmf-reader", daemon=True)

    def is_ready(self, strip: int, tier: int) -> bool:
        """Whether the block has been read; raises what went wrong if reading has failed."""
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
        """Say that the block is done with, to make room for others."""
        with self._lock:
            self._blocks.done_with(self._held.pop((strip, tier)))
            self._weight -= self._blocks.count(strip, tier)
            self._changed.notify_all()

    def _make_room(self, weight: int) -> bool:
        """Wait until so much more may be held; tell whether to go on."""
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

    def __enter__(self) -> DiskFeed:
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
            self._blocks.done_with(block)
        self._held.clear()
