"""The block grid in memory.

>>> from dpmf.ratings import Ratings
>>> ratings = Ratings.of([1, 1, 2, 3], [7, 8, 7, 7], [5, 4, 3, 2], scale=(1, 5))
>>> grid = BlockGrid.build(ratings, size=2)
>>> len(grid), sum(len(grid.block(strip, tier).codes) for strip in range(2) for tier in range(2))
(4, 4)
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.layout import Layout, type_for_codes
from dpmf.engine.threads import run_tasks
from dpmf.kernels.blocks import collect_values, count_tiers, fill_strip, mean_on_grid, sum_on_grid
from dpmf.ratings import Ratings

_SHORT_TABLE = 1 << 16


class Block(NamedTuple):
    """The ratings of one block: users of the strip, items of the tier, and indices into the table of values."""

    users: NDArray[Any]
    items: NDArray[Any]
    codes: NDArray[Any]


@dataclass(frozen=True, eq=False)
class BlockGrid:
    """Ratings in blocks.

    Attributes:
        layout: strips and tiers.
        table: the distinct rating values, ascending, float32.
        pointers: shape (T·T + 1,), where each block begins: (strip, tier) at pointers[strip · T + tier].
        ratings: all blocks, one after the other.
        mean: the mean rating.
    """

    layout: Layout
    table: NDArray[np.float32]
    pointers: NDArray[np.int64]
    ratings: Block
    mean: float

    @classmethod
    def build(cls, ratings: Ratings, *, size: int | None = None, n_threads: int = 1) -> BlockGrid:
        """Partition ratings into blocks; `size` is chosen from their number unless given."""
        popularity = np.bincount(ratings.items, minlength=ratings.n_items)
        layout = Layout.plan(np.diff(ratings.indptr), popularity, ratings.user_ids.hash_order, size=size)
        table = distinct_values(ratings.values)
        tiers, T = layout.item_tiers, layout.size
        strips = [layout.user_order[users] for users in layout.strips]
        counts = np.zeros((T, T), np.int64)

        def count(strip: int) -> None:
            counts[strip] = count_tiers(ratings.indptr, ratings.items, strips[strip], tiers, T)

        run_tasks(count, T, n_threads)
        pointers = np.concatenate([[0], np.cumsum(counts)])
        item_places = layout.places_in_tier.astype(layout.item_type)
        columns = Block(
            np.empty(len(ratings), layout.user_type),
            np.empty(len(ratings), layout.item_type),
            np.empty(len(ratings), type_for_codes(len(table))),
        )

        by_user, codes = (ratings.indptr, ratings.items, ratings.values), (tiers, item_places, table)

        def fill(strip: int) -> None:
            cursors = pointers[strip * T : (strip + 1) * T].copy()
            fill_strip(*by_user, strips[strip], *codes, cursors, *columns)

        run_tasks(fill, T, n_threads)
        lo, hi = ratings.scale.lo, ratings.scale.hi
        mean = mean_on_grid(sum_on_grid(ratings.values, lo, hi), len(ratings), lo, hi)
        return cls(layout, table, pointers, columns, mean)

    def block(self, strip: int, tier: int) -> Block:
        """Return one block."""
        place = strip * self.layout.size + tier
        part = slice(self.pointers[place], self.pointers[place + 1])
        return Block(*(column[part] for column in self.ratings))

    @property
    def size(self) -> int:
        """T, the number of strips and of tiers."""
        return self.layout.size

    def release(self, block: Block) -> None:
        """Do nothing: blocks in memory stay where they are."""

    def count(self, strip: int, tier: int) -> int:
        """Return the number of ratings in a block."""
        place = strip * self.layout.size + tier
        return int(self.pointers[place + 1] - self.pointers[place])

    def fingerprint(self) -> str:
        """Return a checksum of the ratings, by which a resumed run recognises its data."""
        places = ((strip, tier) for strip in range(self.size) for tier in range(self.size))
        checksums = np.array([checksum_of(self.block(*place)) for place in places], np.uint32)
        parts = (self.layout.user_order, self.layout.item_order, self.table, self.pointers, checksums)
        return f"{checksum_of(parts):08x}"

    def __len__(self) -> int:
        return len(self.ratings.codes)


def distinct_values(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the distinct values, ascending.

    >>> distinct_values(np.array([3, 1, 3, 2], np.float32)).tolist()
    [1.0, 2.0, 3.0]
    """
    table = np.empty(_SHORT_TABLE, np.float32)
    filled = collect_values(values, table, 0)
    return np.unique(values) if filled < 0 else table[:filled].copy()


def checksum_of(arrays: Iterable[NDArray[Any]]) -> int:
    """Return the CRC-32 of the bytes of some arrays, one after the other."""
    checksum = 0
    for array in arrays:
        checksum = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, checksum)
    return checksum
