"""The machine's limit: an upper bound on updates per second that no run of the engine exceeds.

Whatever an epoch is limited by, it must at least

* do 3 K multiply-adds for every rating: the product of the two rows, the move of the item's row, and the share of the
  rating in the move of the user's row, which may be the sum of several ratings;
* read and write the item's row of every rating once, and the user's row once in every block that has the user, to and
  from the first-level cache, and read the rating;
* fetch the rows that a cache cannot hold, and write them back, for they have changed. The number is that of the best
  choice, for the actual order of visits in a block (`dpmf.kernels.misses`); a cache may be full of the right rows when
  a block begins, and whatever lies nearer to the processor, registers included, counts as part of it.

Each of these takes at least as long as at the peak of this machine (`dpmf.bench.probes`). They may all happen at the
same time: so the limit is that of the one that takes longest. Rows are counted with their padding.

What memory must deliver depends on the order of blocks, too, and with several threads on how they meet. The limit
counts what any order must fetch inside blocks; `Demand.expected` also has the rows of every step of the epoch that the
last cache cannot hold from the step before, which is an estimate.

>>> demand = Demand(3e9, {"L1": Traffic(4e9, 2e9)}, {})
>>> seconds = least_seconds(demand, Peaks(1e9, {"L1": Bandwidth(1e9, 1e9, 1e9)}))
>>> seconds, limited_by(seconds)
({'arithmetic': 3.0, 'L1': 4.0}, 'L1 bandwidth')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from dpmf.bench.caches import Cache
from dpmf.bench.probes import MEMORY, Bandwidth, Peaks
from dpmf.bench.visits import Visits
from dpmf.engine.factors import padded
from dpmf.kernels.rows import FLOATS_PER_LINE

ARITHMETIC = "arithmetic"
_MULTIPLY_ADDS = 3  # for a factor and a rating
_REGISTERS = 32 * 64  # bytes; no processor has more for vectors that are worth it here


class Traffic(NamedTuple):
    """Bytes that come from a place, and bytes that go to it."""

    read: float
    written: float


class Demand(NamedTuple):
    """What an epoch needs at least.

    Attributes:
        multiply_adds: how many.
        traffic: to and from L1, L2, … and memory.
        expected: the same for places of which a better estimate is known that is no bound.
    """

    multiply_adds: float
    traffic: dict[str, Traffic]
    expected: dict[str, Traffic]


class _Rows(NamedTuple):
    """Bytes of a user's row, of an item's row, and of the item and the value of a rating."""

    user: int
    item: int
    rating: int


def demand_of(visits: Visits, n_factors: int, *, packed: bool, caches: Sequence[Cache], n_threads: int) -> Demand:
    """Return what an epoch on `n_threads` threads needs.

    Args:
        visits: the rows of the ratings.
        n_factors, packed: as of `dpmf.methods.sgd.descent.Descent`.
        caches: see `dpmf.bench.caches`.
        n_threads: how many caches there are, where every processor has its own.
    """
    width = padded(n_factors, 2 * FLOATS_PER_LINE if packed else FLOATS_PER_LINE)
    ratings = visits.grid.ratings
    rows = _Rows(4 * width, (2 if packed else 4) * width, ratings.items.itemsize + ratings.codes.itemsize)
    count, users = len(visits.grid), int(visits.users.sum())
    moved = count * rows.item + users * rows.user
    traffic = {caches[0].name if caches else "L1": Traffic(moved + count * rows.rating, moved)}
    expected = {}
    for place, capacity, together in _capacities(caches, n_threads):
        streamed = max(0, count * rows.rating - together)
        fetched = _fetched(visits, rows, capacity)
        traffic[place] = Traffic(fetched + streamed, max(0, fetched - together))
        if place == MEMORY:
            fetched = max(fetched, _fetched_in_steps(visits, rows, together))
            expected[place] = Traffic(fetched + streamed, max(0, fetched - together))
    return Demand(_MULTIPLY_ADDS * width * count, traffic, expected)


def least_seconds(demand: Demand, peaks: Peaks) -> dict[str, float]:
    """Return how long arithmetic and each place take at least."""
    places = {place: _moving_seconds(traffic, peaks.places[place]) for place, traffic in demand.traffic.items()}
    return {ARITHMETIC: demand.multiply_adds / peaks.multiply_adds, **places}


def expected_seconds(demand: Demand, peaks: Peaks) -> dict[str, float]:
    """Return `least_seconds` with estimates where they are better, though no bound."""
    better = {place: _moving_seconds(traffic, peaks.places[place]) for place, traffic in demand.expected.items()}
    return {**least_seconds(demand, peaks), **better}


def limited_by(seconds: Mapping[str, float]) -> str:
    """Return what takes longest, in words."""
    longest = max(seconds, key=lambda name: seconds[name])
    return longest if longest == ARITHMETIC else f"{longest} bandwidth"


def _moving_seconds(traffic: Traffic, peak: Bandwidth) -> float:
    """Return the least seconds: reading alone, writing alone, or as much of both as there is of either."""
    return max(traffic.read / peak.read, traffic.written / peak.written, min(traffic) / peak.rewritten)


def _capacities(caches: Sequence[Cache], n_threads: int) -> list[tuple[str, int, int]]:
    """Return every place behind a cache, the bytes held before it for one block, and those for all threads together.

    A thread has the nearer caches to itself. The last one is shared: there it may find what any other holds, too.

    >>> _capacities([Cache("L1", 100, 2), Cache("L2", 1000, 1)], 2)
    [('L2', 2148, 4296), ('memory', 5296, 5296)]
    """
    found, own = [], _REGISTERS
    for nearer, cache in pairwise(caches):
        own += nearer.size
        found.append((cache.name, own, n_threads * own))
    if caches:
        together = n_threads * own + caches[-1].size * min(n_threads, caches[-1].instances)
        found.append((MEMORY, together, together))
    return found


def _fetched(visits: Visits, rows: _Rows, capacity: int) -> float:
    """Return the bytes of rows that a cache fetches at least, block by block, whatever it holds when one begins."""
    items = visits.fetched_items(-(-capacity // rows.item))
    return float((items * rows.item + visits.users * rows.user - capacity).clip(0).sum())


def _fetched_in_steps(visits: Visits, rows: _Rows, capacity: int) -> float:
    """Return the bytes of rows that are fetched if all blocks of a step are visited before those of the next."""
    touched = visits.items * rows.item + visits.users * rows.user
    in_steps = (sum(int(touched[place]) for place in step) for step in visits.in_steps())
    return float(sum(max(0, n_bytes - capacity) for n_bytes in in_steps))
