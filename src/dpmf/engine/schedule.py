"""Which block may run when.

Strip s visits tier (s + f + d) mod T at step d of an epoch, f being the epoch's first tier. A block may start when its
strip's previous block is done and its tier's previous visitor, strip s + 1 at step d - 1, is done too. So no two
running blocks share a user or an item, and every block finds its rows exactly as in the run on one thread.

Which of the blocks that may start a worker takes is free. It prefers strips of its own, side by side: a tier passes
from strip to strip, and so most often comes from a block that the same worker, and its cache, has just had.

>>> schedule = Schedule(2)
>>> schedule.take(), schedule.take(), schedule.take()
((0, 0), (1, 1), None)
>>> schedule.finish(0); schedule.finish(1)
>>> schedule.take(), schedule.take()
((0, 1), (1, 0))
"""

from __future__ import annotations

from collections.abc import Callable


class Schedule:
    """The state of one epoch over a T × T grid. Not locked: callers hold their own lock.

    Args:
        size: T.
        first_tier: of the epoch.
        n_workers: how many take blocks.
    """

    def __init__(self, size: int, first_tier: int = 0, n_workers: int = 1) -> None:
        self._size = size
        worker_of = [strip * n_workers // size for strip in range(size)]
        strips = range(size)
        self._own = [[strip for strip in strips if worker_of[strip] == worker] for worker in range(n_workers)]
        self._others = [[strip for strip in strips if worker_of[strip] != worker] for worker in range(n_workers)]
        self._first_tier = first_tier
        self._done = [0] * size  # steps finished, per strip
        self._busy = [False] * size
        self._left = size * size

    @property
    def finished(self) -> bool:
        """Whether every block has run."""
        return self._left == 0

    def take(
        self, is_ready: Callable[[int, int], bool] = lambda strip, tier: True, worker: int = 0
    ) -> tuple[int, int] | None:
        """Return (strip, tier) of a block that may start now, or None: of the worker's strips, the one furthest behind.

        Args:
            is_ready: whether a block is at hand; one that is not is passed over.
            worker: who asks. When none of its own strips can go on it gets another's.
        """
        for strips in (self._own[worker], self._others[worker]):
            for strip in sorted(strips, key=self._done.__getitem__):
                tier = tier_at(strip, self._done[strip], self._first_tier, self._size)
                if self._ready(strip) and is_ready(strip, tier):
                    self._busy[strip] = True
                    return strip, tier
        return None

    def finish(self, strip: int) -> None:
        """Note that the strip's running block is done."""
        self._busy[strip] = False
        self._done[strip] += 1
        self._left -= 1

    def _ready(self, strip: int) -> bool:
        step = self._done[strip]
        return step < self._size and not self._busy[strip] and self._done[(strip + 1) % self._size] >= step


def tier_at(strip: int, step: int, first_tier: int, size: int) -> int:
    """Return the tier that a strip visits at a step."""
    return (strip + first_tier + step) % size
