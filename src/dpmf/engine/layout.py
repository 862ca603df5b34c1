"""The layout of the block grid: user strips × popularity tiers of items, with equal shares of the ratings.

Everything here follows from the data alone, never from the number of threads or the machine, so that the same seed
gives the same bits everywhere. Inside the grid users are numbered by strip and items by popularity; `user_order` and
`item_order` lead back.

>>> layout = Layout.plan(np.array([2, 1, 1]), np.array([1, 3]), np.arange(3), size=2)
>>> layout.item_order.tolist(), layout.tier_starts.tolist()
([1, 0], [0, 1, 2])
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_STRIPS = (8, 16)  # usual and greatest number; the latter only if blocks stay large
_LEAST_BLOCK = 20_000  # ratings: with fewer, the overhead of a block is noticeable
_LARGE_BLOCK = 150_000  # ratings: with more, it is not


@dataclass(frozen=True, eq=False)
class Layout:
    """Strips and tiers.

    Attributes:
        size: T, the number of strips and of tiers.
        user_order: shape (n_users,), the position in the ratings of each of the grid's users.
        item_order: shape (n_items,), likewise for items, most popular first.
        strip_starts: shape (T + 1,), the first user of each strip, and the end.
        tier_starts: shape (T + 1,), the first item of each tier, and the end.
    """

    size: int
    user_order: NDArray[np.int64]
    item_order: NDArray[np.int64]
    strip_starts: NDArray[np.int64]
    tier_starts: NDArray[np.int64]

    @classmethod
    def plan(
        cls,
        user_counts: NDArray[np.int64],
        item_counts: NDArray[np.int64],
        user_order: NDArray[np.int64],
        *,
        size: int | None = None,
    ) -> Layout:
        """Return the layout of ratings with these counts.

        Args:
            user_counts, item_counts: ratings per user and per item.
            user_order: the users in the order of the grid, see `Ids.hash_order`.
            size: T; chosen from the number of ratings unless given.
        """
        size = size or grid_size(int(user_counts.sum()))
        item_order = np.argsort(-item_counts, kind="stable")
        return cls(
            size,
            user_order,
            item_order,
            equal_masses(user_counts[user_order], size),
            equal_masses(item_counts[item_order], size),
        )

    def check(self) -> None:
        """Raise ValueError unless all parts are valid and consistent: kernels rely on it."""
        arrays = self.user_order, self.item_order, self.strip_starts, self.tier_starts
        if any(one.dtype != np.int64 or one.ndim != 1 for one in arrays):
            raise ValueError("orders and starts should be vectors of int64")
        for order, starts in ((self.user_order, self.strip_starts), (self.item_order, self.tier_starts)):
            if not np.array_equal(np.sort(order), np.arange(len(order))):
                raise ValueError("an order should name every position once")
            if starts.shape != (self.size + 1,) or starts[0] != 0 or starts[-1] != len(order):
                raise ValueError(f"there should be {self.size} parts, from the first position to the last")
            if (starts[1:] < starts[:-1]).any():
                raise ValueError("parts should follow each other")

    @property
    def strips(self) -> list[slice]:
        """The users of each strip, in the grid's numbering."""
        return [slice(*ends) for ends in pairwise(self.strip_starts.tolist())]

    @property
    def tiers(self) -> list[slice]:
        """The items of each tier, in the grid's numbering."""
        return [slice(*ends) for ends in pairwise(self.tier_starts.tolist())]

    @property
    def item_tiers(self) -> NDArray[np.int32]:
        """The tier of each item, by its position in the ratings."""
        tiers = np.empty(len(self.item_order), np.int32)
        tiers[self.item_order] = np.repeat(np.arange(self.size, dtype=np.int32), np.diff(self.tier_starts))
        return tiers

    @property
    def places_in_tier(self) -> NDArray[np.int64]:
        """The index of each item within its tier, by its position in the ratings."""
        places = np.empty(len(self.item_order), np.int64)
        places[self.item_order] = np.arange(len(places)) - np.repeat(self.tier_starts[:-1], np.diff(self.tier_starts))
        return places

    @property
    def user_type(self) -> np.dtype[np.unsignedinteger]:
        """The smallest type for an index within a strip."""
        return _type_for(int(np.diff(self.strip_starts).max()))

    @property
    def item_type(self) -> np.dtype[np.unsignedinteger]:
        """The smallest type for an index within a tier."""
        return _type_for(int(np.diff(self.tier_starts).max()))


def grid_size(n_ratings: int) -> int:
    """Return T for a number of ratings.

    A block should be worth its overhead, and a user should have several ratings in it, because the user's row is
    fetched again for each block. Eight strips are enough for several threads; large data sets get more strips, for more
    threads and smaller memories.

    >>> grid_size(100), grid_size(1_000_000), grid_size(10_000_000), grid_size(100_000_000)
    (1, 7, 8, 16)
    """
    few, many = _STRIPS
    worthwhile, large = ((n_ratings / size) ** 0.5 for size in (_LEAST_BLOCK, _LARGE_BLOCK))
    return int(min(max(large, min(worthwhile, few), 1), many))


def equal_masses(masses: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
    """Return the start of each part, and the end, so that parts have about the same mass.

    >>> equal_masses(np.array([4, 1, 1, 1, 1]), 2).tolist()
    [0, 1, 5]
    """
    reached = np.cumsum(masses)
    total = max(int(reached[-1]), 1) if len(reached) else 1
    middles = 2 * reached - masses  # twice the mass up to the middle of each place
    part = np.clip(middles * parts // (2 * total), 0, parts - 1)
    return np.searchsorted(part, np.arange(parts + 1))


def type_for_codes(n_values: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest type for an index into a table of `n_values` values."""
    return np.dtype(np.uint8) if n_values <= 1 << 8 else _type_for(n_values)


def _type_for(count: int) -> np.dtype[np.unsignedinteger]:
    return np.dtype(np.uint16) if count <= 1 << 16 else np.dtype(np.uint32)
