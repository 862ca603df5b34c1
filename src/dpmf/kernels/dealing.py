"""Dealing ratings into the blocks of the grid.

>>> import numpy as np
>>> indptr, items = np.array([0, 2, 3]), np.array([0, 1, 1], np.int32)
>>> tiers = np.array([0, 1], np.int32)
>>> count_blocks(indptr, items, np.array([1, 0]), np.array([0, 1], np.int32), tiers, 2).tolist()
[[0, 1], [1, 1]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.compiling import kernel


@kernel
def count_blocks(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    user_order: NDArray[np.int64],
    strips: NDArray[np.int32],
    tiers: NDArray[np.int32],
    size: int,
) -> NDArray[np.int64]:
    """Return the number of ratings in every block, shape (size, size).

    Args:
        indptr, items: the ratings by user.
        user_order: users in the order of the grid.
        strips: strip of each place in that order.
        tiers: tier of each item.
        size: strips, and tiers, of the grid.
    """
    counts = np.zeros((size, size), np.int64)
    for place in range(len(user_order)):
        i = user_order[place]
        for p in range(indptr[i], indptr[i + 1]):
            counts[strips[place], tiers[items[p]]] += 1
    return counts


@kernel
def deal_strip(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    user_order: NDArray[np.int64],
    first: int,
    last: int,
    tiers: NDArray[np.int32],
    item_places: NDArray[np.int32],
    cursors: NDArray[np.int64],  # out
    block_users: NDArray[np.int32],  # out
    block_items: NDArray[np.int32],  # out
    block_values: NDArray[np.float32],  # out
) -> None:
    """Write the ratings of the users at places first..last-1, one strip, to its blocks.

    `cursors` holds where each tier's block begins, and afterwards where it ends. Within a block ratings keep the
    order of users, and for one user the order they came in.
    """
    for place in range(first, last):
        i = user_order[place]
        for p in range(indptr[i], indptr[i + 1]):
            j = items[p]
            to = cursors[tiers[j]]
            block_users[to] = place
            block_items[to] = item_places[j]
            block_values[to] = values[p]
            cursors[tiers[j]] = to + 1


def deal_reference(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    user_places: NDArray[np.int64],
    user_strips: NDArray[np.int32],
    tiers: NDArray[np.int32],
) -> NDArray[np.int64]:
    """Return the order in which `deal_strip`, called for every strip, puts ratings sorted by user."""
    return np.lexsort((user_places[users], tiers[items], user_strips[users]))
