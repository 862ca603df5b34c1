"""The block grid: user strips × popularity tiers of items, equal rating mass each.

Strips and tiers come from the data alone, never from the number of threads, so that the same seed gives the same bits
on any machine. Inside the grid users are numbered by strip and items by popularity; `user_order` and `item_order`
lead back.

>>> from dpmf.ratings import Ratings
>>> ratings = Ratings.of([1, 1, 2, 3], [7, 8, 7, 7], [5, 4, 3, 2], scale=(1, 5))
>>> grid = BlockGrid.build(ratings, size=2)
>>> grid.pointers[-1], grid.item_order.tolist()
(np.int64(4), [0, 1])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.threads import run_tasks
from dpmf.kernels.dealing import count_blocks, deal_strip
from dpmf.ratings import Ratings
from dpmf.streams import mix, stream_key

_MOST_STRIPS = 32
_RATINGS_PER_BLOCK = 4000  # below this, starting a block would cost more than its ratings


@dataclass(frozen=True, eq=False)
class BlockGrid:
    """Ratings in blocks.

    Attributes:
        size: T, the number of strips and of tiers.
        pointers: shape (T·T + 1,), where block (strip, tier) begins: pointers[strip · T + tier].
        users, items: shape (n,), int32, places in the grid's own numbering.
        values: shape (n,), float32.
        user_order: shape (n_users,), the position in the ratings of each of the grid's users.
        item_order: shape (n_items,), likewise for items, most popular first.
    """

    size: int
    pointers: NDArray[np.int64]
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    user_order: NDArray[np.int64]
    item_order: NDArray[np.int64]

    @classmethod
    def build(cls, ratings: Ratings, *, size: int | None = None, n_threads: int = 1) -> BlockGrid:
        """Deal ratings into blocks; `size` is chosen from their number unless given."""
        size = size or grid_size(len(ratings))
        popularity = np.bincount(ratings.items, minlength=ratings.n_items)
        item_order = np.argsort(-popularity, kind="stable")
        item_places = _inverse(item_order).astype(np.int32)
        tiers = np.empty(ratings.n_items, np.int32)
        tiers[item_order] = equal_masses(popularity[item_order], size)
        # A fixed key: strips do not depend on the seed, so one stored grid serves every run.
        user_order = np.argsort(mix(stream_key(0, "strips") ^ ratings.user_ids.keys), kind="stable")
        strips = equal_masses(np.diff(ratings.indptr)[user_order], size)
        counts = count_blocks(ratings.indptr, ratings.items, user_order, strips, tiers, size)
        pointers = np.zeros(size * size + 1, np.int64)
        np.cumsum(counts.ravel(), out=pointers[1:])
        users, items = np.empty(len(ratings), np.int32), np.empty(len(ratings), np.int32)
        values = np.empty(len(ratings), np.float32)
        bounds = np.searchsorted(strips, np.arange(size + 1))

        def deal(strip: int) -> None:
            cursors = pointers[strip * size : (strip + 1) * size].copy()
            deal_strip(
                ratings.indptr, ratings.items, ratings.values, user_order, bounds[strip], bounds[strip + 1],
                tiers, item_places, cursors, users, items, values,
            )  # fmt: skip

        run_tasks(deal, size, n_threads)
        return cls(size, pointers, users, items, values, user_order, item_order)

    def __len__(self) -> int:
        return len(self.values)


def grid_size(n_ratings: int) -> int:
    """Return T for so many ratings: blocks of a few thousand ratings at least, 32 × 32 blocks at most.

    >>> grid_size(100), grid_size(1_000_000), grid_size(100_000_000)
    (1, 15, 32)
    """
    return int(min(max((n_ratings // _RATINGS_PER_BLOCK) ** 0.5, 1), _MOST_STRIPS))


def equal_masses(masses: NDArray[np.int64], parts: int) -> NDArray[np.int32]:
    """Return the part of each place, in order, so that parts have about the same mass. Parts may be empty.

    >>> equal_masses(np.array([4, 1, 1, 1, 1]), 2).tolist()
    [0, 1, 1, 1, 1]
    """
    reached = np.cumsum(masses)
    total = max(int(reached[-1]), 1) if len(reached) else 1
    return np.clip((reached - 1) * parts // total, 0, parts - 1).astype(np.int32)


def _inverse(order: NDArray[np.int64]) -> NDArray[np.int64]:
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return inverse
