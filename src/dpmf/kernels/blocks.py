"""Partitioning ratings into the blocks of the grid, in compact form.

>>> import numpy as np
>>> indptr, items = np.array([0, 2, 3]), np.array([0, 1, 1], np.int32)
>>> tiers = np.array([0, 1], np.int32)
>>> count_tiers(indptr, items, np.array([1, 0]), tiers, 2).tolist()
[1, 2]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.jit import kernel

_STEPS = 1 << 24
_RECENT = 1 << 10  # slots of a cache of values, which saves a search


@kernel
def collect_values(values: NDArray[np.float32], table: NDArray[np.float32], filled: int) -> int:
    """Add the distinct values to table[:filled] (out), ascending; return the new count, or -1 if the table is full."""
    recent = np.full(_RECENT, np.nan, np.float32)
    for value in values:
        slot = _slot(value)
        if recent[slot] == value:
            continue
        recent[slot] = value
        place = np.searchsorted(table[:filled], value)
        if place == filled or table[place] != value:
            if filled == len(table):
                return -1
            for k in range(filled, place, -1):
                table[k] = table[k - 1]
            table[place] = value
            filled += 1
    return filled


def collect_values_reference(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what `collect_values` writes to an empty table."""
    return np.unique(values)


@kernel
def sum_on_grid(values: NDArray[np.float32], lo: float, hi: float) -> int:
    """Return the sum of the values in steps of 2^-24 of the scale above `lo`: exact, hence the same in any order."""
    total = np.int64(0)
    for value in values:
        total += np.int64(np.rint((np.float64(value) - lo) / (hi - lo) * _STEPS))
    return int(total)


def sum_on_grid_reference(values: NDArray[np.float32], lo: float, hi: float) -> int:
    """Return what `sum_on_grid` returns."""
    return int(np.rint((values.astype(np.float64) - lo) / (hi - lo) * _STEPS).astype(np.int64).sum())


def mean_on_grid(total: int, count: int, lo: float, hi: float) -> float:
    """Return the mean of `count` values with this `sum_on_grid`.

    >>> mean_on_grid(sum_on_grid(np.array([1, 2, 4.5], np.float32), 1.0, 5.0), 3, 1.0, 5.0)
    2.5
    """
    return lo + (hi - lo) * (total / count / _STEPS)


@kernel
def _slot(value: np.float32) -> int:
    """Return a small hash of a rating, for a cache of values."""
    return int(np.int64(value * np.float32(100)) & np.int64(_RECENT - 1))


@kernel
def count_tiers(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    strip: NDArray[np.int64],
    tiers: NDArray[np.int32],
    size: int,
) -> NDArray[np.int64]:
    """Return the number of ratings in every tier by the users of a strip.

    Args:
        indptr, items: the ratings by user.
        strip: the users, as positions in the ratings.
        tiers: tier of each item.
        size: the number of tiers.
    """
    counts = np.zeros(size, np.int64)
    for i in strip:
        for p in range(indptr[i], indptr[i + 1]):
            counts[tiers[items[p]]] += 1
    return counts


def count_tiers_reference(
    users: NDArray[np.int32], items: NDArray[np.int32], strip: NDArray[np.int64], tiers: NDArray[np.int32], size: int
) -> NDArray[np.int64]:
    """Return what `count_tiers` returns for the users of a strip."""
    return np.bincount(tiers[items[np.isin(users, strip)]], minlength=size)


@kernel
def fill_strip(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    strip: NDArray[np.int64],
    tiers: NDArray[np.int32],
    item_places: NDArray[Any],
    table: NDArray[np.float32],
    cursors: NDArray[np.int64],  # out
    block_users: NDArray[Any],  # out
    block_items: NDArray[Any],  # out
    block_codes: NDArray[Any],  # out
) -> None:
    """Write the ratings of the users of a strip to its blocks.

    `cursors` holds where each tier's block begins, and afterwards where it ends. Users are numbered from the strip's
    first, items from their tier's first (`item_places`), values by their index in the table. Within a block, ratings
    are in the order of users, and for one user in their original order.
    """
    recent = np.full(_RECENT, np.nan, np.float32)
    codes = np.empty(_RECENT, np.int64)
    for place in range(len(strip)):
        i = strip[place]
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
            to = cursors[tiers[j]]
            slot = _slot(values[p])
            if recent[slot] != values[p]:
                recent[slot] = values[p]
                codes[slot] = np.searchsorted(table, values[p])
            block_users[to] = place
            block_items[to] = item_places[j]
            block_codes[to] = codes[slot]
            cursors[tiers[j]] = to + 1


def fill_reference(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    user_places: NDArray[np.int64],
    user_strips: NDArray[np.int32],
    tiers: NDArray[np.int32],
) -> NDArray[np.int64]:
    """Return the order in which `fill_strip`, called for every strip, puts ratings sorted by user."""
    return np.lexsort((user_places[users], tiers[items], user_strips[users]))
