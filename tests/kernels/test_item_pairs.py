"""Sums over what people like: as the references say, and nobody counts for more than their share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.kernels.bounded_sums import SAFETY
from dpmf.kernels.csr import Csr
from dpmf.kernels.item_pairs import (
    Ramp,
    add_group_pairs,
    add_item_pairs,
    add_preferences,
    group_pairs_reference,
    item_pairs_reference,
    preference,
    preferences_reference,
    unpack_pairs,
)

N_ITEMS, STEPS = 6, 2.0**40
RAMP, ALIKE, COUNTS = Ramp(2.0, 5.0), Ramp(-math.inf, -math.inf), Ramp(-2.0, 6.0, counts=True)
EVERYTHING = np.arange(N_ITEMS, dtype=np.int32)
SUMS = pytest.mark.parametrize("pairs", [False, True], ids=["items", "pairs"])


def person(rated: Sequence[tuple[int, float]]) -> Csr:
    items, values = zip(*rated, strict=True) if rated else ((), ())
    return Csr(np.array([0, len(rated)]), np.array(items, np.int32), np.array(values, np.float32))


def sums_of(
    own: Csr,
    pairs: bool,
    ramp: Ramp = RAMP,
    places: NDArray[np.int32] = EVERYTHING,
    share: float = 1.0,
    steps: float = STEPS,
) -> NDArray[np.int64]:
    """Return what everybody adds, each with the same share."""
    n_rows, n_people = int(places.max(initial=-1)) + 1, len(own.indptr) - 1
    sums = np.zeros(n_rows * (n_rows + 1) // 2 if pairs else n_rows, np.int64)
    add = add_item_pairs if pairs else add_preferences
    add(own, 0, n_people, ramp, places, np.full(n_people, share), steps, sums)
    return sums


def squared_length(sums: NDArray[np.int64]) -> int:
    return sum(int(one) ** 2 for one in sums)


def matrix_of(triangle: NDArray[np.int64], n_rows: int) -> NDArray[np.float64]:
    full = np.empty((n_rows, n_rows))
    unpack_pairs(triangle / STEPS, full)
    return full


def test_weights_rise_with_ratings() -> None:
    values = [-1e30, 1.0, 2.0, 3.5, 5.0, 9.0, math.inf, -math.inf, math.nan]
    assert [preference(one, RAMP) for one in values] == [0, 0, 0, 0.5, 1, 1, 1, 0, 0]
    assert [preference(one, ALIKE) for one in values] == [1, 1, 1, 1, 1, 1, 1, 1, 0]
    assert [preference(one, Ramp(5.0, 5.0)) for one in (1.0, 5.0)] == [0, 1]  # a ramp without a slope


def test_weights_rise_with_the_logarithm_of_counts_up_to_a_limit() -> None:
    values = [1.0, 2.0, 4.0, 16.0, 64.0, 65.0, 1e30, math.inf]
    assert [preference(one, COUNTS) for one in values] == [0.25, 0.375, 0.5, 0.75, 1, 1, 1, 1]
    assert [preference(one, COUNTS) for one in (0.01, 1e-45)] == [0.25, 0.25]  # had at all is had once
    assert [preference(one, COUNTS) for one in (0.0, -1.0, -math.inf, math.nan)] == [0, 0, 0, 0]


@SUMS
def test_counts_of_one_are_as_good_as_none(pairs: bool) -> None:
    once = [person([(item, 1) for item in items]) for items in ((0, 1, 2), (1, 4, 5), range(N_ITEMS))]
    for own in once:
        assert (sums_of(own, pairs, COUNTS) == sums_of(own, pairs, ALIKE)).all()


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_sums_are_those_of_the_references(share: float) -> None:
    generator = np.random.default_rng(0)
    people = [np.sort(generator.choice(N_ITEMS, size, replace=False)) for size in (1, 3, 6, 4)]
    values = [generator.choice([2.5, 3.0, 4.0, 5.0], len(one)) for one in people]
    indptr = np.cumsum([0, *map(len, people)])
    own = Csr(indptr, np.concatenate(people).astype(np.int32), np.concatenate(values).astype(np.float32))
    popularity, products = np.zeros(N_ITEMS), np.zeros((N_ITEMS, N_ITEMS))
    for items, rated in zip(people, values, strict=True):
        popularity[items] += share * preferences_reference(rated, *RAMP[:2])
        products[np.ix_(items, items)] += share * item_pairs_reference(rated, *RAMP[:2])
    np.testing.assert_allclose(sums_of(own, False, share=share) / STEPS, popularity, atol=1e-5)
    np.testing.assert_allclose(matrix_of(sums_of(own, True, share=share), N_ITEMS), products, atol=1e-5)


def test_pairs_are_of_the_head_alone_and_scaled_there() -> None:
    head = np.array([-1, 0, -1, 1, -1, -1], np.int32)
    own = person([(0, 5), (1, 5), (3, 3.5), (4, 5)])
    expected = item_pairs_reference(np.array([5, 3.5]), *RAMP[:2])
    np.testing.assert_allclose(matrix_of(sums_of(own, True, places=head), 2), expected, atol=1e-5)


@SUMS
def test_an_item_that_is_out_of_order_repeated_or_unknown_does_not_count(pairs: bool) -> None:
    clean = person([(1, 5), (3, 4)])
    messy = person([(-1, 5), (1, 5), (1, 3), (0, 5), (3, 4), (2, 5), (N_ITEMS, 5), (77, 5)])
    np.testing.assert_array_equal(sums_of(messy, pairs), sums_of(clean, pairs))


@SUMS
def test_a_rating_that_is_no_number_does_not_count(pairs: bool) -> None:
    clean, messy = person([(1, 5)]), person([(0, math.nan), (1, 5), (2, -math.inf)])
    np.testing.assert_array_equal(sums_of(messy, pairs), sums_of(clean, pairs))


@SUMS
def test_whoever_likes_nothing_or_has_no_valid_share_adds_nothing(pairs: bool) -> None:
    assert not sums_of(person([]), pairs).any()
    assert not sums_of(person([(0, 1), (1, 2)]), pairs).any()
    assert not sums_of(
        person([(0, 5)]), pairs, places=np.where(EVERYTHING > 2, EVERYTHING - 3, -1).astype(np.int32)
    ).any()
    for share in (0.0, -1.0, 1.1, math.nan, math.inf):
        assert not sums_of(person([(0, 5), (1, 4)]), pairs, share=share).any()


@SUMS
def test_the_bound_is_nearly_reached(pairs: bool) -> None:
    for rated in ([(0, 5)], [(item, 5) for item in range(N_ITEMS)], [(0, 2.001), (4, 2.002)]):
        length = math.sqrt(squared_length(sums_of(person(rated), pairs))) / STEPS
        assert 1 - 1e-5 < length <= SAFETY + 1e-9  # what rounding might add is left free


wild = st.one_of(st.floats(width=32), st.sampled_from([1.0, 2.0, 2.0000002, 5.0, 3e38, 1e-45, math.nan, math.inf]))
anybody = st.lists(st.tuples(st.integers(-2, N_ITEMS + 2), wild), max_size=15)
orderly = st.lists(wild, max_size=N_ITEMS).map(lambda values: list(enumerate(values)))
steep = [(0.0, 1e-30), (-1e30, 1e30), (5.0, 5.0), (1.0, math.nextafter(1.0, 2.0))]
ramps = st.sampled_from([RAMP, ALIKE, COUNTS, *(Ramp(*one) for one in steep), *(Ramp(*one, True) for one in steep)])
heads = st.sets(st.integers(0, N_ITEMS - 1), min_size=1)
shares = st.one_of(st.just(1.0), st.floats(0, 1))


def places_of(head: set[int]) -> NDArray[np.int32]:
    places = np.full(N_ITEMS, -1, np.int32)
    places[sorted(head)] = np.arange(len(head))
    return places


@given(own=st.one_of(anybody, orderly), ramp=ramps, head=heads, share=shares, steps=st.sampled_from([3.0, 1e4, STEPS]))
@settings(max_examples=300)
def test_nobody_counts_for_more_than_their_share(own: Any, ramp: Any, head: Any, share: float, steps: float) -> None:
    for pairs in (False, True):
        sums = sums_of(person(own), pairs, ramp, places_of(head), share, steps)
        assert (sums >= 0).all()  # so, whoever replaces somebody moves a sum by √2 times the bound at the most
        assert squared_length(sums) <= (Fraction(share) * Fraction(steps)) ** 2


@SUMS
def test_a_sum_is_the_sum_of_what_everybody_adds(pairs: bool) -> None:
    people: list[list[tuple[int, float]]] = [[(0, 5), (2, 4)], [], [(1, 3), (2, 5), (5, 2.5)]]
    own = [person(one) for one in people]
    together = Csr(
        np.cumsum([0, *map(len, people)]),
        np.concatenate([one.items for one in own]),
        np.concatenate([one.values for one in own]),
    )
    np.testing.assert_array_equal(sums_of(together, pairs), sum(sums_of(one, pairs) for one in own))


# Groups of items


def group_sums_of(
    own: Csr, places: NDArray[np.int32], n_groups: int, ramp: Ramp = RAMP, share: float = 1.0, steps: float = STEPS
) -> NDArray[np.int64]:
    sums = np.zeros(n_groups * (n_groups - 1) // 2, np.int64)
    n_people = len(own.indptr) - 1
    add_group_pairs(own, 0, n_people, ramp, places, n_groups, np.full(n_people, share), steps, sums)
    return sums


def test_groups_of_one_item_each_are_pairs_of_items_without_a_diagonal() -> None:
    own = person([(0, 5), (1, 3), (3, 4), (5, 2.5)])
    of_groups = group_sums_of(own, EVERYTHING, N_ITEMS) / STEPS
    of_items = matrix_of(sums_of(own, True), N_ITEMS)[np.tril_indices(N_ITEMS, -1)]
    np.testing.assert_allclose(of_groups, of_items / np.linalg.norm(of_items), atol=1e-5)


def test_a_group_is_liked_as_much_as_its_best_item() -> None:
    places = np.array([2, 0, 2, -1, 0, 1], np.int32)
    people = [
        [(0, 3.0), (1, 4.0), (2, 5.0), (3, 5.0)],
        [(1, 2.5), (4, 3.5), (5, 5.0)],
        [(0, 3.0), (1, 4.0), (2, 4.5), (4, 2.5), (5, 3.5)],  # three groups, two of them by two items
        [(3, 5.0)],
        [(0, 5.0), (2, 5.0)],
    ]
    expected = np.zeros(3)
    for rated in people[:3]:
        items, values = (np.array(one) for one in zip(*rated, strict=True))
        kept = places[items] >= 0
        expected += group_pairs_reference(values[kept], places[items[kept]], 3, *RAMP[:2])
    own = [person(one) for one in people]
    together = Csr(
        np.cumsum([0, *map(len, people)]),
        np.concatenate([one.items for one in own]),
        np.concatenate([one.values for one in own]),
    )
    sums = group_sums_of(together, places, 3)
    np.testing.assert_allclose(sums / STEPS, expected, atol=1e-5)
    np.testing.assert_array_equal(sums, sum(group_sums_of(one, places, 3) for one in own))  # nothing of others is left


groupings = st.lists(st.integers(-2, 4), min_size=N_ITEMS, max_size=N_ITEMS)  # 3 and 4 are out of range


@given(
    own=st.one_of(anybody, orderly),
    ramp=ramps,
    places=groupings,
    share=shares,
    steps=st.sampled_from([3.0, 1e4, STEPS]),
)
@settings(max_examples=300)
def test_nobody_counts_for_more_than_their_share_in_groups(
    own: Any, ramp: Any, places: Any, share: float, steps: float
) -> None:
    sums = group_sums_of(person(own), np.array(places, np.int32), 3, ramp, share, steps)
    assert (sums >= 0).all()
    assert squared_length(sums) <= (Fraction(share) * Fraction(steps)) ** 2


def test_an_item_that_is_out_of_order_or_unknown_says_nothing_of_its_group() -> None:
    clean = person([(1, 5), (3, 4), (4, 3)])
    messy = person([(-1, 5), (1, 5), (1, 3), (0, 5), (3, 4), (2, 5), (4, 3), (4, 5), (N_ITEMS, 5), (77, 5)])
    first, second = (group_sums_of(one, EVERYTHING, N_ITEMS) for one in (messy, clean))
    np.testing.assert_array_equal(first, second)


def test_the_bound_of_groups_is_nearly_reached() -> None:
    places = np.array([0, 0, 1, 1, 2, 2], np.int32)
    for rated in ([(1, 5), (2, 3)], [(item, 5) for item in range(N_ITEMS)], [(0, 2.001), (4, 2.002)]):
        length = math.sqrt(squared_length(group_sums_of(person(rated), places, 3))) / STEPS
        assert 1 - 1e-5 < length <= SAFETY + 1e-9
    for full in np.geomspace(1e34, 1e38, 60):  # weights whose products lose digits, or all of them, when squared
        smallest = [(0, 1e-45), (2, 1e-45), (4, 3e-45)]
        assert squared_length(group_sums_of(person(smallest), places, 3, Ramp(0.0, float(full)))) <= STEPS**2
    for share in (0.0, -1.0, 1.1, math.nan, math.inf):
        assert not group_sums_of(person([(0, 5), (4, 4)]), places, 3, share=share).any()
