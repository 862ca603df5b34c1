"""Sums over linked pairs: as the reference says, and nobody counts for more than their share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr
from dpmf.kernels.item_pairs import Ramp
from dpmf.kernels.linked_pairs import MASS, add_linked_pairs, linked_pairs_reference

N_ITEMS, STEPS = 6, 2.0**40
RAMP, ALIKE, COUNTS = Ramp(2.0, 5.0), Ramp(-math.inf, -math.inf), Ramp(-2.0, 6.0, counts=True)
Pairs = dict[tuple[int, int], float]
SOME: Pairs = {(0, 1): 1.0, (0, 4): 0.5, (1, 4): 0.3, (3, 5): 0.8}


def person(rated: Sequence[tuple[int, float]]) -> Csr:
    items, values = zip(*rated, strict=True) if rated else ((), ())
    return Csr(np.array([0, len(rated)]), np.array(items, np.int32), np.array(values, np.float32))


def linked_of(pairs: Pairs) -> Csr:
    """Return links in rows of items, ascending."""
    chosen = sorted(pairs)
    starts = np.searchsorted([first for first, _ in chosen], np.arange(N_ITEMS + 1)).astype(np.int64)
    return Csr(
        starts, np.array([second for _, second in chosen], np.int32), np.array([pairs[one] for one in chosen], "f4")
    )


def sums_of(
    own: Csr,
    pairs: Pairs = SOME,
    ramp: Ramp = RAMP,
    share: float = 1.0,
    steps: float = STEPS,
) -> NDArray[np.int64]:
    """Return what everybody adds, each with the same share."""
    n_people, sums = len(own.indptr) - 1, np.zeros(len(pairs) + 1, np.int64)
    add_linked_pairs(own, 0, n_people, ramp, linked_of(pairs), np.full(n_people, share), steps, sums)
    return sums


def squared_length(sums: NDArray[np.int64]) -> int:
    return sum(int(one) ** 2 for one in sums)


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_sums_are_those_of_the_reference(share: float) -> None:
    generator, expected = np.random.default_rng(0), np.zeros(len(SOME) + 1)
    first, second = np.array(sorted(SOME)).T
    people: list[list[tuple[int, float]]] = []
    for size in (2, 4, 6, 6):
        items = np.sort(generator.choice(N_ITEMS, size, replace=False))
        values = generator.choice([2.5, 3.5, 5.0], size)
        weights = np.zeros(N_ITEMS)
        weights[items] = (values - 2) / 3
        people.append(list(zip(items.tolist(), values.tolist(), strict=True)))
        if (weights[first] * weights[second]).any():
            expected += share * linked_pairs_reference(weights, first, second, linked_of(SOME).values)
    own = [person(one) for one in people]
    together = Csr(
        np.cumsum([0, *map(len, people)]),
        np.concatenate([one.items for one in own]),
        np.concatenate([one.values for one in own]),
    )
    np.testing.assert_allclose(sums_of(together, share=share) / STEPS, expected, atol=1e-5)
    np.testing.assert_array_equal(sums_of(together), sum(sums_of(one) for one in own))


def test_items_without_a_link_change_the_mass_alone() -> None:
    few, many = sums_of(person([(0, 5), (1, 5)])), sums_of(person([(0, 5), (1, 5), (2, 5), (3, 5)]))
    np.testing.assert_array_equal(few[:-1], many[:-1])
    assert few[-1] / STEPS == pytest.approx(MASS / 2 / 2, rel=1e-5)  # one pair of two items, and 2 is the most
    assert many[-1] / STEPS == pytest.approx(MASS / 4 / 2, rel=1e-5)


def test_an_item_that_is_out_of_order_repeated_or_unknown_does_not_count() -> None:
    clean = person([(1, 5), (4, 4)])
    messy = person([(-1, 5), (1, 5), (1, 3), (0, 5), (4, 4), (3, 5), (N_ITEMS, 5), (77, 5)])
    np.testing.assert_array_equal(sums_of(messy), sums_of(clean))
    np.testing.assert_array_equal(sums_of(person([(0, math.nan), (1, 5), (4, 4)])), sums_of(clean))


def test_whoever_likes_no_linked_pair_or_has_no_valid_share_adds_nothing() -> None:
    for rated in ([], [(0, 1), (1, 5)], [(0, 5), (2, 5), (3, 5)]):
        assert not sums_of(person(rated)).any()
    for share in (0.0, -1.0, 1.1, math.nan, math.inf):
        assert not sums_of(person([(0, 5), (1, 4)]), share=share).any()
    assert not sums_of(person([(0, 5), (1, 4)]), pairs={}).any()


def test_the_bound_is_nearly_reached() -> None:
    alike = dict.fromkeys(combinations(range(N_ITEMS), 2), 1.0)
    length = math.sqrt(squared_length(sums_of(person([(item, 5) for item in range(N_ITEMS)]), alike))) / STEPS
    assert 1 - 1e-5 < length <= 1


wild = st.one_of(st.floats(width=32), st.sampled_from([1.0, 2.0, 2.0000002, 5.0, 3e38, 1e-45, math.nan, math.inf]))
anybody = st.lists(st.tuples(st.integers(-2, N_ITEMS + 2), wild), max_size=15)
orderly = st.lists(wild, max_size=N_ITEMS).map(lambda values: list(enumerate(values)))
steep = [(0.0, 1e-30), (-1e30, 1e30), (5.0, 5.0), (1.0, math.nextafter(1.0, 2.0))]
ramps = st.sampled_from([RAMP, ALIKE, COUNTS, *(Ramp(*one) for one in steep), *(Ramp(*one, True) for one in steep)])
links = st.dictionaries(
    st.sampled_from(list(combinations(range(N_ITEMS), 2))), st.sampled_from([1.0, 0.3, 1e-3, 1e-30, 0.0])
)
shares = st.one_of(st.just(1.0), st.floats(0, 1))


@given(own=st.one_of(anybody, orderly), ramp=ramps, pairs=links, share=shares, steps=st.sampled_from([3.0, 1e4, STEPS]))
@settings(max_examples=300)
def test_nobody_counts_for_more_than_their_share(own: Any, ramp: Any, pairs: Any, share: float, steps: float) -> None:
    sums = sums_of(person(own), pairs, ramp, share, steps)
    assert (sums >= 0).all()  # so, whoever replaces somebody moves a sum by √2 times the bound at the most
    assert squared_length(sums) <= (Fraction(share) * Fraction(steps)) ** 2
