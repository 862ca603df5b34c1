"""The schedule of an epoch: which blocks must wait for which.

Strip s visits tier (s + f + d) mod T at step d of an epoch, f being the epoch's first tier. A block may start when its
strip's previous block is done and its tier's previous visitor, strip s + 1 at step d - 1, is done too. So no two
running blocks share a user or an item, and every block finds its rows exactly as in a run on one thread.

A worker is free to take any block that may start. It prefers adjacent strips of its own: a tier passes from strip to
strip, so it usually comes from a block that the same worker has just visited and still has in its cache.

>>> schedule = Schedule(2)
>>> schedule.take(), schedule.take(), schedule.take()
(Place(strip=0, tier=0), Place(strip=1, tier=1), None)
>>> schedule.finish(0); schedule.finish(1)
>>> schedule.take(), schedule.take()
(Place(strip=0, tier=1), Place(strip=1, tier=0))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpmf.streams import stream_key


class Place(NamedTuple):
    """The place of a block in the grid."""

    strip: int
    tier: int


class Schedule:
    """The state of one epoch over a T × T grid. Not locked: callers hold their own lock.

    Args:
        size: T.
        first_tier: the tier that strip 0 visits first.
        n_workers: the number of workers that take blocks.
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

    def take(self, is_ready: Callable[[int, int], bool] = lambda strip, tier: True, worker: int = 0) -> Place | None:
        """Return the place of a block that may start now, or None; of the worker's strips, that furthest behind.

        Args:
            is_ready: tells whether a block has been read; one that has not is passed over.
            worker: the worker that asks. If none of its own strips can continue, it gets another's.
        """
        for strips in (self._own[worker], self._others[worker]):
            for strip in sorted(strips, key=self._done.__getitem__):
                tier = tier_at(strip, self._done[strip], self._first_tier, self._size)
                if self._ready(strip) and is_ready(strip, tier):
                    self._busy[strip] = True
                    return Place(strip, tier)
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


def first_tier_of(seed: int, epoch: int, size: int) -> int:
    """Return the tier that strip 0 visits first in an epoch.

    Where an epoch starts leaves a trace in the factors; varying it gives a lower error on unseen ratings.
    """
    return int(stream_key(seed, f"first tier of epoch {epoch}") % np.uint64(size))
