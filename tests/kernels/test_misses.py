"""The least misses of a cache: as the reference says, and as the best of all policies."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpmf.kernels.misses import least_misses, least_misses_reference

orders = st.lists(st.integers(0, 5), max_size=40)


def _best_of_all_policies(order: list[int], capacity: int) -> int:
    """Try every choice of rows to hold after every use, whether fetched before or held all along."""

    @cache
    def least(at: int, held: frozenset[int]) -> int:
        if at == len(order):
            return 0
        missed = order[at] not in held
        there = held | {order[at]}
        choices = combinations(sorted(there), min(capacity, len(there)))
        return missed + min(least(at + 1, frozenset(choice)) for choice in choices)

    return least(0, frozenset())


@given(orders, st.integers(1, 7))
def test_misses_are_those_of_the_reference(order: list[int], capacity: int) -> None:
    rows = np.array(order, np.uint16)
    assert least_misses(rows, 6, capacity) == least_misses_reference(rows, 6, capacity)


@given(orders.map(lambda order: order[:12]), st.integers(1, 3))
def test_no_policy_misses_less(order: list[int], capacity: int) -> None:
    assert least_misses(np.array(order, np.uint16), 6, capacity) == _best_of_all_policies(order, capacity)


def test_a_large_cache_fetches_every_row_once() -> None:
    rows = np.random.default_rng(0).integers(0, 50, 1000).astype(np.uint32)
    misses = [least_misses(rows, 50, capacity) for capacity in (1, 5, 25, 50, 100)]
    assert misses[0] > misses[1] > misses[2] > misses[3] == misses[4] == 50
