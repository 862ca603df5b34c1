"""Nobody counts for more than the stated bound, whatever their ratings, factors and biases are."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpmf.kernels.bounded_sums import (
    SAFETY,
    add_counts_reference,
    add_item_moments_reference,
    add_moments_reference,
    clip_norm_reference,
    copy_clipped,
    symmetric,
    weight_normalizer,
    weight_normalizer_reference,
)
from dpmf.kernels.csr import Csr, CsrPattern

from .crowds import (
    INTS,
    KERNELS,
    Crowd,
    Kernel,
    agree,
    counts,
    crowds,
    greedy,
    held_out_factors,
    implicit_moments,
    item_moments,
    moment_steps,
    moments,
    residuals,
    squared,
    squared_bound,
    squared_length,
    steps_for,
)

every_kernel = pytest.mark.parametrize("kernel", KERNELS)


@given(crowd=crowds())
@settings(max_examples=200)
def test_nobody_counts_for_more_than_the_bound(crowd: Crowd) -> None:
    for kernel in KERNELS:
        for person in range(crowd.n_people):
            assert squared_length(kernel(crowd, person, person + 1)) <= squared_bound(kernel, crowd, person)


@given(crowd=crowds(), data=st.data())
@settings(max_examples=50)
def test_whoever_leaves_takes_along_their_own_contribution_and_no_more(crowd: Crowd, data: st.DataObject) -> None:
    person = data.draw(st.integers(0, crowd.n_people - 1))
    others = crowd.without(person)
    for kernel in KERNELS:
        gone = kernel(crowd, 0, crowd.n_people) - kernel(others, 0, others.n_people)
        np.testing.assert_array_equal(gone, kernel(crowd, person, person + 1))


@given(crowd=crowds(), data=st.data())
@settings(max_examples=50)
def test_any_split_of_people_gives_the_same_sums(crowd: Crowd, data: st.DataObject) -> None:
    n = crowd.n_people
    ends = [0, *sorted(data.draw(st.lists(st.integers(0, n), max_size=4))), n]
    for kernel in KERNELS:
        parts = [kernel(crowd, start, stop) for start, stop in pairwise(ends)]
        np.testing.assert_array_equal(sum(parts[1:], start=parts[0]), kernel(crowd, 0, n))


@given(crowd=crowds())
@settings(max_examples=50)
def test_counts_and_diagonals_of_moments_are_never_negative(crowd: Crowd) -> None:
    assert (counts(crowd, 0, crowd.n_people) >= 0).all()
    diagonal = [k * (k + 1) // 2 for k in range(crowd.n_asked)]
    assert (moments(crowd, 0, crowd.n_people)[diagonal] >= 0).all()
    assert (item_moments(crowd, 0, crowd.n_people)[:, diagonal] >= 0).all()
    diagonal = [k * (k + 1) // 2 for k in range(crowd.U.shape[1])]
    assert (implicit_moments(crowd, 0, crowd.n_people)[[*diagonal, -crowd.U.shape[1] - 1]] >= 0).all()
    assert (held_out_factors(crowd, 0, crowd.n_people)[:, -1] >= 0).all()


@given(crowd=crowds())
@settings(max_examples=50)
def test_two_people_are_at_right_angles_at_most_in_counts(crowd: Crowd) -> None:
    """So replacing one by the other moves counts by no more than √2."""
    alone = [counts(crowd, person, person + 1) for person in range(crowd.n_people)]
    for one in alone:
        assert squared_length(one - alone[0]) <= 2 * squared(crowd.level)


@given(crowd=crowds(wild=False))
@settings(max_examples=60)
def test_well_behaved_people_count_as_the_references_say(crowd: Crowd) -> None:
    assume(crowd.level > 1e9)
    for person in range(crowd.n_people):
        items, share = crowd.of(person)[0], float(crowd.shares[person])
        u = crowd.U[person, : crowd.n_asked].astype(np.float64)
        normalizer = weight_normalizer(crowd.pattern, crowd.weights, person)
        assert normalizer == pytest.approx(weight_normalizer_reference(items, crowd.weights), rel=1e-12)
        expected = add_counts_reference(items, crowd.weights, share)
        agree(counts(crowd, person, person + 1) / steps_for(crowd, 1.0), expected, 1.0)
        shared = symmetric(moments(crowd, person, person + 1) / moment_steps(crowd), len(u))
        agree(shared, add_moments_reference(u, share, crowd.radius), crowd.radius**2)
        each = symmetric(item_moments(crowd, person, person + 1) / moment_steps(crowd), len(u))
        agree(each, add_item_moments_reference(items, crowd.weights, u, share, crowd.radius), crowd.radius**2)


@given(crowd=crowds())
@settings(max_examples=100)
def test_weights_of_a_person_have_a_length_below_one(crowd: Crowd) -> None:
    for person in range(crowd.n_people):
        scale, last, total = weight_normalizer(crowd.pattern, crowd.weights, person), -1, Fraction(0)
        assert math.isfinite(scale)
        for item in crowd.of(person)[0].tolist():
            if scale and last < item < len(crowd.weights):
                last, total = item, total + squared(scale) * squared(crowd.weights[item])
        assert total < 1


@given(crowd=crowds())
@settings(max_examples=50)
def test_factors_of_a_person_have_a_length_below_the_radius(crowd: Crowd) -> None:
    row = np.empty(crowd.U.shape[1])
    for person in range(crowd.n_people):
        copy_clipped(crowd.U, person, crowd.radius, row)
        assert sum(squared(one) for one in row) <= squared(crowd.radius)
        if not np.isfinite(crowd.U[person]).all():
            assert not row.any()
        elif (np.abs(crowd.U[person]) < 1e6).all():
            expected = clip_norm_reference(crowd.U[person].astype(np.float64), crowd.radius)
            np.testing.assert_allclose(row, expected, rtol=2e-6, atol=1e-300)


@every_kernel
@pytest.mark.parametrize("n_items", [2, 3, 20_000])
def test_the_bounds_are_reached(kernel: Kernel, n_items: int) -> None:
    crowd = greedy(1 if kernel is implicit_moments else n_items)  # who has much counts for less there
    if kernel is held_out_factors:
        crowd = replace(crowd, c=np.full(n_items, -1e9, np.float32))
    length, bound = squared_length(kernel(crowd, 0, 1)), squared_bound(kernel, crowd, 0)
    assert (1 - Fraction(1, 10_000)) * bound < length <= bound


@every_kernel
def test_an_item_that_is_listed_a_hundred_times_counts_once(kernel: Kernel) -> None:
    crowd = greedy(1)
    repeated = Csr(np.array([0, 100]), np.zeros(100, np.int32), np.repeat(crowd.rated.values, 100))
    often = replace(crowd, rated=repeated)
    if kernel is residuals:  # people are fitted to whatever they have, and still count once
        assert squared_length(kernel(often, 0, 1)) <= squared_bound(kernel, often, 0)
    else:
        np.testing.assert_array_equal(kernel(often, 0, 1), kernel(crowd, 0, 1))


def test_safety_covers_the_rounding_of_as_many_terms_as_there_can_be_items() -> None:
    """Each of n additions loses half a unit in the last place at most, and the root halves what that makes."""
    unit = 2.0**-53
    assert INTS.max * unit / 2 + 100 * unit < 1 - SAFETY


def test_weights_that_vanish_beside_the_sum_do_not_lengthen_it() -> None:
    """Each of these is lost when it is added to the first, and together they would make the person too heavy."""
    n = 1_000_000
    weights = np.full(n, math.sqrt(0.99 * 2.0**-53))
    weights[0] = 1.0
    scale = weight_normalizer(CsrPattern(np.array([0, n]), np.arange(n, dtype=np.int32)), weights, 0)
    assert squared(scale) * (1 + (n - 1) * squared(weights[1])) < 1
