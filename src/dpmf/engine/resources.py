"""Resources of a training run: threads, memory for ratings, and a disk for user factors that do not fit beside them.

>>> Resources(n_threads=2).executor
ThreadExecutor(n_threads=2)
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmf.engine.executor import Executor
from dpmf.engine.factors import padded
from dpmf.engine.local import StreamingExecutor, ThreadExecutor
from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument

logger = logging.getLogger(__name__)

BESIDE_SUMS = 5  # arrays of their size: averages, and noise, noisy sums and steps while these are computed
_LEAST_MEMORY = 1 << 26  # small beside the program itself, which takes about three times this: never refused


@dataclass(frozen=True)
class Resources:
    """What a method may use while it trains.

    Attributes:
        n_threads: the number of threads.
        capacity: the number of ratings held in memory at once; None for all.
        user_folder: a folder on whose disk user factors are stored; None if they are in memory.
    """

    n_threads: int
    capacity: int | None = None
    user_folder: Path | None = None

    @property
    def executor(self) -> Executor:
        """What runs epochs over the block grid; the one place where an executor is chosen."""
        if self.capacity is None:
            return ThreadExecutor(self.n_threads)
        return StreamingExecutor(self.n_threads, self.capacity)

    @classmethod
    def for_factors(cls, ratings: StoredRatings, n_factors: int, n_threads: int) -> Resources:
        """Divide the memory: factors first, and half of the rest for ratings, to be safe.

        User factors that would take more than half of the memory go to the disk. Each thread then holds one strip of
        them, and the number of threads is limited to the strips that fit.

        Raises:
            InvalidArgument: the memory is too small even for one thread.
        """
        memory, blocks, row = ratings.memory, ratings.blocks, 4 * padded(n_factors)
        strip = row * int(np.diff(blocks.layout.strip_starts).max())
        block = blocks.bytes_per_rating * int(np.diff(blocks.pointers).max())
        always = row * ratings.n_items + 4 * (ratings.n_users + ratings.n_items)  # item factors and all biases
        limit = max(memory, _LEAST_MEMORY)
        of_users = row * ratings.n_users
        if of_users <= memory // 2 and always + of_users + block <= limit:
            return cls(n_threads, cls._capacity(ratings, always + of_users))
        if always + strip + block > limit:
            raise _too_little(memory, n_factors, "one strip of users and all items", always + strip + block)
        fitting = _fitting(min(n_threads, blocks.size), always + block, strip, limit, "user factors")
        return cls(fitting, cls._capacity(ratings, always + fitting * strip), ratings.columns.folder)

    @classmethod
    def for_sums(
        cls, ratings: StoredRatings, n_factors: int, n_threads: int, sum_size: int | None = None, working_size: int = 0
    ) -> Resources:
        """Divide the memory where every thread adds up sums of its own: a number for each factor and bias of an item.

        User factors, which are needed at the end only, go to the disk as above, and the number of threads is limited
        to the sums that fit. Pieces of ratings are small and do not count. `sum_size` is the size of other
        sums, and `working_size` the numbers that are held beside them.

        Raises:
            InvalidArgument: the memory is too small even for one thread.
        """
        memory, limit = ratings.memory, max(ratings.memory, _LEAST_MEMORY)
        sums = 8 * ((n_factors + 1) * ratings.n_items if sum_size is None else sum_size)
        always = BESIDE_SUMS * sums + 4 * (n_factors + 1) * ratings.n_items + 8 * working_size
        if always + sums > limit:
            raise _too_little(memory, n_factors, "sums over people", always + sums)
        fitting = _fitting(n_threads, always, sums, limit, "sums")
        on_disk = 4 * n_factors * ratings.n_users > memory // 2
        return cls(fitting, user_folder=ratings.columns.folder if on_disk else None)

    @staticmethod
    def _capacity(ratings: StoredRatings, resident: int) -> int:
        return max((ratings.memory - resident) // 2 // ratings.blocks.bytes_per_rating, 1)


def _fitting(wanted: int, always: int, each: int, limit: int, what: str) -> int:
    """Return the number of threads that fit, at `each` bytes beside what is always there; one does."""
    fitting = min((limit - always) // each, wanted)
    if fitting < wanted:
        needed = _megabytes(always + wanted * each)
        message = "using %d of %d threads, because each holds %s of %s: allow %s of memory to use all"
        logger.warning(message, fitting, wanted, _megabytes(each), what, needed)
    return fitting


def _too_little(memory: int, n_factors: int, what: str, needed: int) -> InvalidArgument:
    factors = f"{n_factors} factor{'s' if n_factors != 1 else ''}"
    return InvalidArgument(
        f"{_megabytes(memory)} of memory is too little for {factors}: {what} take {_megabytes(needed)}; "
        "allow that much, or use fewer factors"
    )


def _megabytes(count: int) -> str:
    return f"{-(-count // 10**6):,} MB"
