"""The limit: its arithmetic, and that no cache, however it replaces, moves less than is demanded."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterator

import pytest

from dpmf.bench.caches import Cache
from dpmf.bench.limit import Demand, Traffic, demand_of, expected_seconds, least_seconds, limited_by
from dpmf.bench.probes import MEMORY, Bandwidth, Peaks
from dpmf.bench.visits import Visits
from dpmf.engine.grid import BlockGrid
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

REGISTERS = 2048


@pytest.fixture(scope="module")
def grid() -> BlockGrid:
    return BlockGrid.build(make(300, 200), size=3)


def test_a_demand_is_what_every_rating_needs() -> None:
    # One user with three ratings and one with one: so one block, of two users and three items.
    grid = BlockGrid.build(Ratings.of([1, 1, 1, 2], [5, 6, 7, 5], [1, 2, 3, 4], scale=(1, 5)), size=1)
    demand = demand_of(Visits(grid), 20, packed=False, caches=(), n_threads=1)
    row, rating = 4 * 32, 2 + 1  # 20 factors are padded to two lines; an item takes two bytes, a value one
    assert demand == Demand(3 * 32 * 4, {"L1": Traffic(6 * row + 4 * rating, 6 * row)}, {})
    packed = demand_of(Visits(grid), 20, packed=True, caches=(), n_threads=1)
    assert packed.traffic["L1"] == Traffic(4 * row // 2 + 2 * row + 4 * rating, 4 * row // 2 + 2 * row)


def test_what_fits_a_cache_comes_from_no_further(grid: BlockGrid) -> None:
    caches = (Cache("L1", 1 << 30, 2), Cache("L2", 1 << 31, 1))
    demand = demand_of(Visits(grid), 16, packed=False, caches=caches, n_threads=2)
    nothing = Traffic(0, 0)
    assert list(demand.traffic) == ["L1", "L2", MEMORY]
    assert demand.traffic["L2"] == demand.traffic[MEMORY] == demand.expected[MEMORY] == nothing


def _rows_used(grid: BlockGrid) -> Iterator[tuple[str, int]]:
    """Yield every row in the order of an epoch on one thread."""
    layout = grid.layout
    for step, strip in itertools.product(range(grid.size), range(grid.size)):
        tier = (strip + step) % grid.size
        block = grid.block(strip, tier)
        for p in range(len(block.codes)):
            yield "user", int(layout.strip_starts[strip]) + int(block.users[p])
            yield "item", int(layout.tier_starts[tier]) + int(block.items[p])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("n_factors", [16, 64, 512])
def test_a_real_cache_moves_at_least_what_is_demanded(grid: BlockGrid, n_factors: int, packed: bool) -> None:
    width = max(n_factors, 32) if packed else n_factors
    sizes = {"user": 4 * width, "item": (2 if packed else 4) * width}
    caches = (Cache("L1", 1 << 12, 1), Cache("L2", 1 << 14, 1))
    demand = demand_of(Visits(grid), n_factors, packed=packed, caches=caches, n_threads=1)
    for place, capacity in (("L2", REGISTERS + (1 << 12)), (MEMORY, REGISTERS + (1 << 12) + (1 << 14))):
        held: OrderedDict[tuple[str, int], int] = OrderedDict()
        fetched = written = total = 0
        for _ in range(2):  # the second epoch begins with a full cache
            fetched = written = 0
            for row in _rows_used(grid):
                if row not in held:
                    fetched += sizes[row[0]]
                    total += sizes[row[0]]
                held[row] = sizes[row[0]]
                held.move_to_end(row)
                while total > capacity and len(held) > 1:
                    _, size = held.popitem(last=False)
                    total -= size
                    written += size
        ratings = 3 * len(grid)
        assert 0 < demand.traffic[place].read <= fetched + ratings
        assert demand.traffic[place].written <= written
        if place in demand.expected:  # on one thread it is a bound, too
            assert demand.traffic[place].read <= demand.expected[place].read <= fetched + ratings


def test_more_threads_have_more_cache(grid: BlockGrid) -> None:
    visits = Visits(grid)
    caches = (Cache("L1", 1 << 12, 4), Cache("L2", 1 << 15, 2))
    one, two = (demand_of(visits, 128, packed=False, caches=caches, n_threads=count) for count in (1, 2))
    assert one.multiply_adds == two.multiply_adds
    assert one.traffic["L1"] == two.traffic["L1"]
    assert one.traffic[MEMORY].read > two.traffic[MEMORY].read


def test_a_place_takes_its_slowest_direction() -> None:
    places = {"L1": Bandwidth(10, 5, 4)}

    def seconds(read: float, written: float) -> float:
        return least_seconds(Demand(0, {"L1": Traffic(read, written)}, {}), Peaks(1, places))["L1"]

    assert seconds(100, 0) == 10
    assert seconds(0, 100) == 20
    assert seconds(100, 100) == 25
    assert seconds(100, 20) == 10


def test_the_limit_is_what_takes_longest() -> None:
    demand = Demand(30, {"L1": Traffic(10, 10), MEMORY: Traffic(2, 2)}, {MEMORY: Traffic(50, 5)})
    peaks = Peaks(10, {place: Bandwidth(1, 1, 1) for place in ("L1", MEMORY)})
    certain = least_seconds(demand, peaks)
    assert certain == {"arithmetic": 3, "L1": 10, MEMORY: 2}
    assert expected_seconds(demand, peaks) == {"arithmetic": 3, "L1": 10, MEMORY: 50}
    assert limited_by(certain) == "L1 bandwidth"
    assert limited_by({"arithmetic": 3, "L1": 1}) == "arithmetic"
