"""The order in which the ratings of a block are visited one at a time.

They are visited in several lanes in turn: of n ratings the first, the one at n/lanes, the one at 2n/lanes, …, then the
second, and so on. Ratings are ordered by user, so neighbours in this order belong to different users, the processor can
start one while it still finishes another, and every lane's user stays in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dpmf.kernels.jit import kernel

LANES = 4
_LONG_ROW = 384


@kernel
def lanes_for(width: Any) -> int:
    """Return the number of lanes for rows of `width` floats; long rows would crowd each other out of the cache.

    >>> lanes_for(64), lanes_for(1024)
    (4, 1)
    """
    return LANES if width < _LONG_ROW else 1


def visiting_order(count: int, lanes: int) -> Iterator[int]:
    """Yield the indices of a block's ratings in the order in this order.

    >>> list(visiting_order(7, 3))
    [0, 2, 4, 1, 3, 5, 6]
    """
    length = count // lanes
    yield from (lane * length + step for step in range(length) for lane in range(lanes))
    yield from range(lanes * length, count)
