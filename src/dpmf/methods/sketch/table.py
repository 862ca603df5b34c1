"""A count sketch of the factors of all users and items: learning from ratings, and reading.

>>> table = CountSketch.start(depth=2, width=500, n_factors=4, biased=True, median=False, sd=0.1, unit=1.0, seed=0)
>>> table.memory
4000
>>> from dpmf.streams import id_keys
>>> factors, biases = table.read(1, id_keys(np.array([7, 8])))
>>> factors.shape, biases.shape
((2, 4), (2,))
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.threads import run_tasks
from dpmf.errors import InvalidArgument
from dpmf.kernels.rows import FLOATS_PER_LINE
from dpmf.kernels.sketch import Family, SketchStep, read_rows, sketch_block
from dpmf.streams import generator

USERS, ITEMS = 0, 1
NOTHING_KNOWN = np.zeros(1, np.float32)
_MOST_CELLS = (1 << 31) - 1
_ROWS_PER_TASK = 1 << 12

Floats = NDArray[np.float32]
Keys = NDArray[np.uint64]


def width_for(n_ids: int, n_factors: int, depth: int, gain: float) -> int:
    """Return w, the cells of a row, for a table smaller than dense factors of all ids by the space gain.

    >>> width_for(n_ids=1000, n_factors=16, depth=4, gain=2.0)
    2000
    """
    return max(math.ceil(n_ids * n_factors / (gain * depth)), 1)


def family_of(depth: int, width: int, n_factors: int, biased: bool, seed: int) -> Family:
    """Return the hash functions of a public seed."""
    if depth * width > _MOST_CELLS:
        raise InvalidArgument(f"{depth} rows of {width:,} cells are too many: take a larger gain or a smaller width")
    return Family.of(generator(seed, "hash functions of the sketch"), depth, width, n_factors, biased)


@dataclass(eq=False)
class CountSketch:
    """The table.

    Attributes:
        cells: shape (k·w,).
        family: where components live.
        n_factors: K.
        median: whether reading takes the median of rows, not the mean.
        unit: of ratings. Cells and what they learn from are in units; what is read is not.
    """

    cells: Floats
    family: Family
    n_factors: int
    median: bool
    unit: float

    @classmethod
    def start(
        cls, *, depth: int, width: int, n_factors: int, biased: bool, median: bool, sd: float, unit: float, seed: int
    ) -> CountSketch:
        """Return a table of random cells, such that the mean of k of them has standard deviation `sd`."""
        family = family_of(depth, width, n_factors, biased, seed)
        reach = sd * math.sqrt(3 * depth)
        cells = generator(seed, "start of the sketch").random(depth * width, np.float32)
        cells *= np.float32(2 * reach)
        cells -= np.float32(reach)
        return cls(cells, family, n_factors, median, unit)

    @property
    def memory(self) -> int:
        """The bytes of the table; they do not change while learning."""
        return self.cells.nbytes

    def learn(
        self,
        ratings: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
        values: Floats,
        user_keys: Keys,
        item_keys: Keys,
        step: SketchStep,
        known: tuple[Floats, Floats] = (NOTHING_KNOWN, NOTHING_KNOWN),
    ) -> float:
        """Visit ratings in the order given, on one thread; return the sum of squared errors.

        Args:
            ratings: users and items, as indices into the keys, and codes, as indices into the values.
            values: of ratings, in units.
            user_keys, item_keys: of ids.
            step: as in `dpmf.kernels.sketch`.
            known: biases that are known and not learnt, of users and of items, likewise.
        """
        return sketch_block(*ratings, values, user_keys, item_keys, *known, self.cells, self.family, self.median, step)

    def read(self, side: int, keys: Keys, n_threads: int = 1) -> tuple[Floats, Floats]:
        """Return factors, shape (n, K), and biases of users (0) or items (1)."""
        rows = np.empty((len(keys), self.family.n_components), np.float32)

        def work(task: int) -> None:
            first = task * _ROWS_PER_TASK
            last = min(first + _ROWS_PER_TASK, len(keys))
            read_rows(keys, side, self.cells, self.family, self.median, first, last, rows)

        run_tasks(work, -(-len(keys) // _ROWS_PER_TASK), n_threads)
        biased = self.family.n_components > FLOATS_PER_LINE * self.family.n_lines
        biases = np.float32(self.unit) * rows[:, -1] if biased else np.zeros(len(keys), np.float32)
        return np.ascontiguousarray(np.float32(math.sqrt(self.unit)) * rows[:, : self.n_factors]), biases
