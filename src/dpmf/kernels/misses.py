"""The least number of rows that a cache must fetch, whatever it chooses to keep.

Knowing the future, the best choice is to drop the row whose next use is furthest away (L. A. Belady, "A study of
replacement algorithms for a virtual-storage computer", 1966); here also a row that has just been used may be dropped.
No cache of that size fetches fewer, however it replaces and prefetches.

>>> least_misses(np.array([0, 1, 2, 0, 1, 2], np.uint16), 3, 1)
5
>>> least_misses(np.array([0, 1, 2, 0, 1, 2], np.uint16), 3, 2)
4
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.jit import kernel


@kernel
def least_misses(rows: NDArray[Any], n_rows: int, capacity: int) -> int:
    """Return the least number of misses of a cache that is empty at first.

    Args:
        rows: the rows used one after the other, unsigned integers below n_rows.
        n_rows: the number of rows.
        capacity: how many rows the cache holds between one use and the next.
    """
    never = np.int64(-1)
    following, seen = np.empty(len(rows), np.int64), np.full(n_rows, never)
    for at in range(len(rows) - 1, -1, -1):
        following[at] = seen[rows[at]]
        seen[rows[at]] = at
    kept = np.zeros(len(rows), np.bool_)  # by the next use
    uses = [
        never for _ in range(0)
    ]  # next uses of rows kept, negated, and uses that are past: these are never furthest
    n_kept = misses = 0
    for at in range(len(rows)):
        if kept[at]:
            n_kept -= 1
        else:
            misses += 1
        if following[at] == never:
            continue
        heappush(uses, -following[at])
        kept[following[at]] = True
        n_kept += 1
        if n_kept > capacity:
            kept[-heappop(uses)] = False
            n_kept -= 1
    return misses


def least_misses_reference(rows: NDArray[Any], n_rows: int, capacity: int) -> int:
    """Return what `least_misses` returns."""
    order: list[int] = rows.tolist()
    kept: set[int] = set()
    misses = 0
    for at, row in enumerate(order):
        misses += row not in kept
        rest = order[at + 1 :]
        wanted = [one for one in kept | {row} if one in rest]
        kept = set(sorted(wanted, key=rest.index)[:capacity])
    return misses
