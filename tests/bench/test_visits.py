"""The rows that blocks need."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.bench.visits import Visits
from dpmf.engine.grid import BlockGrid
from dpmf.kernels.misses import least_misses_reference
from dpmf.ratings.synthetic import make


@pytest.fixture
def grid() -> BlockGrid:
    return BlockGrid.build(make(60, 40), size=3)


def test_every_block_has_its_rows(grid: BlockGrid) -> None:
    visits = Visits(grid, n_threads=2)
    for strip, tier in np.ndindex(3, 3):
        block = grid.block(strip, tier)
        assert visits.users[strip, tier] == len(set(block.users.tolist()))
        assert visits.items[strip, tier] == len(set(block.items.tolist()))


def test_items_are_fetched_in_the_order_of_visits(grid: BlockGrid) -> None:
    visits = Visits(grid)
    for capacity in (1, 4, 10, 1000):
        fetched = visits.fetched_items(capacity)
        for strip, tier in np.ndindex(3, 3):
            items = grid.block(strip, tier).items
            assert fetched[strip, tier] == least_misses_reference(items, 0, capacity)


def test_a_step_has_every_strip_and_every_tier_once(grid: BlockGrid) -> None:
    steps = Visits(grid).in_steps()
    assert sorted(place for step in steps for place in step) == list(np.ndindex(3, 3))
    for step in steps:
        assert sorted(place.strip for place in step) == sorted(place.tier for place in step) == [0, 1, 2]
