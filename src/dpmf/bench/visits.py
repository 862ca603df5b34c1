"""Which rows the visits of an epoch need: how many in every block, and how many of them a cache must fetch.

>>> from dpmf.ratings import Ratings
>>> grid = BlockGrid.build(Ratings.of([1, 1, 2, 2], [7, 8, 7, 8], [5, 4, 3, 2], scale=(1, 5)), size=1)
>>> visits = Visits(grid)
>>> visits.users.tolist(), visits.items.tolist(), visits.fetched_items(1).tolist()
([[2]], [[2]], [[3]])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.grid import BlockGrid
from dpmf.engine.schedule import Place, tier_at
from dpmf.engine.threads import run_tasks
from dpmf.kernels.misses import least_misses


class Visits:
    """The rows of one grid.

    Attributes:
        grid: the ratings.
        users, items: shape (T, T), how many different users and items a block has.
    """

    def __init__(self, grid: BlockGrid, n_threads: int = 1) -> None:
        self.grid = grid
        self._n_threads = n_threads
        self._fetched: dict[int, NDArray[np.int64]] = {}
        self.users, self.items = (np.zeros((grid.size, grid.size), np.int64) for _ in range(2))

        def count(strip: int) -> None:
            for tier in range(grid.size):
                block = grid.block(strip, tier)
                self.users[strip, tier] = len(np.unique(block.users))
                self.items[strip, tier] = len(np.unique(block.items))

        run_tasks(count, grid.size, n_threads)

    def fetched_items(self, capacity: int) -> NDArray[np.int64]:
        """Return how many item rows a cache of `capacity` rows fetches for each block at least, shape (T, T).

        It is empty at first, and ratings are visited in the order in which they stand.
        """
        capacity = min(capacity, int(self.items.max()))
        if capacity not in self._fetched:
            self._fetched[capacity] = self._count(capacity)
        return self._fetched[capacity]

    def in_steps(self) -> list[list[Place]]:
        """Return the blocks of each step of an epoch; no two of a step share a row."""
        size = self.grid.size
        return [[Place(strip, tier_at(strip, step, 0, size)) for strip in range(size)] for step in range(size)]

    def _count(self, capacity: int) -> NDArray[np.int64]:
        fetched = self.items.copy()  # where all fit
        too_many = np.argwhere(self.items > capacity).tolist()

        def count(number: int) -> None:
            strip, tier = too_many[number]
            rows = self.grid.block(strip, tier).items
            fetched[strip, tier] = least_misses(rows, int(rows.max()) + 1, capacity)

        run_tasks(count, len(too_many), self._n_threads)
        return fetched
