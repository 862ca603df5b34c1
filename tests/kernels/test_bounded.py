"""Nobody counts for more than the stated bound, whatever their ratings, factors and biases are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.kernels.als_implicit import common_of
from dpmf.kernels.bounded_sums import (
    SAFETY,
    add_counts,
    add_item_moments,
    add_moments,
    bounded_row,
    symmetric,
    weight_scale,
)
from dpmf.kernels.held_out import HeldOut, add_held_out_residuals, held_out_reference
from dpmf.kernels.implicit_sums import Observing, add_observed, add_spreads, observed_reference

Sums = NDArray[np.int64]
INTS = np.iinfo(np.int32)
WILD = [math.nan, math.inf, -math.inf, 1e30, -1e30, 3e38, 1e-45, -0.0]
WILD_WEIGHTS = [0.0, 5e-324, 1e-170, 1e-161, 3e-158, 1e-9, 1e9, 1e155, math.inf, math.nan]
SINGLES = st.one_of(st.floats(-4, 4, width=32), st.sampled_from(WILD))
SIZES = st.one_of(st.floats(1e-4, 1e4), st.just(1.0))
LEVELS = st.one_of(st.floats(1, 2.0**45), st.just(2.0**45))  # steps in the whole of a bound


@dataclass(frozen=True)
class Crowd:
    """Everything that the sums are made of."""

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    weights: NDArray[np.float64]
    shares: NDArray[np.float64]
    mean: float
    c: NDArray[np.float32]
    U: NDArray[np.float32]
    V: NDArray[np.float32]
    clip: float
    radius: float
    height: float
    level: float
    fit: tuple[float, float, float]  # penalties on bias and factors, and the length of first guesses

    @property
    def n_people(self) -> int:
        return len(self.shares)

    def without(self, person: int) -> Crowd:
        """Return the crowd after somebody has left."""
        own = np.zeros(len(self.items), np.bool_)
        own[self.indptr[person] : self.indptr[person + 1]] = True
        lengths = np.delete(np.diff(self.indptr), person)
        return replace(
            self,
            indptr=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            items=self.items[~own],
            values=self.values[~own],
            shares=np.delete(self.shares, person),
            U=np.delete(self.U, person, axis=0),
        )


@st.composite
def crowds(draw: st.DrawFn, wild: bool = True) -> Crowd:
    """Draw up to four people; wild ones break every rule."""
    m, K, n = draw(st.integers(1, 6)), draw(st.integers(0, 3)), draw(st.integers(1, 4))
    single = SINGLES if wild else st.floats(-4, 4, width=32)
    odd = st.one_of(st.integers(-2, m + 2), st.sampled_from([int(INTS.min), int(INTS.max)]))
    some = st.lists(odd, max_size=12) if wild else st.sets(st.integers(0, m - 1), min_size=1).map(sorted)
    weight = st.floats(1e-3, 1e3)
    if wild:
        weight = st.one_of(weight, st.floats(1e-9, 1e9), st.sampled_from(WILD_WEIGHTS))
    share = st.floats(0, 1)
    if wild:
        share = st.one_of(share, st.sampled_from([1.0, 1.5, -0.5, math.nan, math.inf, 1e-310]))
    rated = [draw(some) for _ in range(n)]

    def singles(*shape: int) -> NDArray[np.float32]:
        size = math.prod(shape)
        return np.array(draw(st.lists(single, min_size=size, max_size=size)), np.float32).reshape(shape)

    return Crowd(
        indptr=np.concatenate([[0], np.cumsum([len(one) for one in rated])]).astype(np.int64),
        items=np.array([item for one in rated for item in one], np.int32),
        values=singles(sum(len(one) for one in rated)),
        weights=np.array(draw(st.lists(weight, min_size=m, max_size=m))),
        shares=np.array(draw(st.lists(share, min_size=n, max_size=n))),
        mean=draw(st.one_of(st.just(3.0), st.sampled_from(WILD) if wild else st.just(0.5))),
        c=singles(m), U=singles(n, K), V=singles(m, K),
        clip=draw(SIZES), radius=draw(SIZES), height=draw(SIZES), level=draw(LEVELS),
        fit=(draw(st.floats(0.1, 10)), draw(st.floats(0.1, 10)), draw(st.sampled_from([0.0, 0.7]))),
    )  # fmt: skip


def steps_for(crowd: Crowd, bound: float) -> float:
    return crowd.level / bound


def counts(crowd: Crowd, start: int, stop: int) -> Sums:
    sums = np.zeros(len(crowd.weights), np.int64)
    add_counts(crowd.indptr, crowd.items, start, stop, crowd.weights, crowd.shares, steps_for(crowd, 1.0), sums)
    return sums


def residual_steps(crowd: Crowd) -> float:
    return steps_for(crowd, crowd.clip * math.hypot(crowd.radius, crowd.height))


def residuals(crowd: Crowd, start: int, stop: int) -> Sums:
    of, sums = crowd, np.zeros((len(crowd.weights), crowd.V.shape[1] + 1), np.int64)
    own = of.indptr, of.items, of.values
    add_held_out_residuals(
        *own, *own, start, stop, of.weights, of.shares, of.c, of.V, held_out(of), residual_steps(of), sums
    )
    return sums


def held_out(crowd: Crowd) -> HeldOut:
    ridge_b, ridge_u, length = crowd.fit
    return HeldOut(crowd.mean, ridge_b, ridge_u, length, crowd.clip, crowd.radius, crowd.height)


def triangle_size(crowd: Crowd) -> int:
    K = crowd.U.shape[1]
    return int(K * (K + 1) // 2)


def moment_steps(crowd: Crowd) -> float:
    return steps_for(crowd, crowd.radius**2)


def moments(crowd: Crowd, start: int, stop: int) -> Sums:
    sums = np.zeros(triangle_size(crowd), np.int64)
    add_moments(start, stop, crowd.shares, crowd.U, crowd.radius, moment_steps(crowd), sums)
    return sums


def item_moments(crowd: Crowd, start: int, stop: int) -> Sums:
    of, sums = crowd, np.zeros((len(crowd.weights), triangle_size(crowd)), np.int64)
    add_item_moments(
        of.indptr, of.items, start, stop, of.weights, of.shares, of.U, of.radius, moment_steps(of), sums
    )  # fmt: skip
    return sums


LIFT = 2.5


def spread_steps(crowd: Crowd) -> float:
    return steps_for(crowd, crowd.radius**2 + 1)


def spreads(crowd: Crowd, start: int, stop: int) -> Sums:
    of, K = crowd, crowd.U.shape[1]
    sums = np.zeros((K + 1) * (K + 2) // 2, np.int64)
    add_spreads(
        of.indptr, of.items, start, stop, of.weights, of.shares, of.U, LIFT, of.radius, spread_steps(of), sums
    )  # fmt: skip
    return sums


def observing(crowd: Crowd) -> Observing:
    """Return public numbers; the penalty on the bias has no meaning here, and stands for alpha."""
    return Observing(crowd.fit[0] - 0.1, crowd.fit[2], crowd.radius, crowd.height)


def observed_steps(crowd: Crowd) -> float:
    return steps_for(crowd, math.hypot(crowd.radius, crowd.height))


def observed(crowd: Crowd, start: int, stop: int) -> Sums:
    of, sums = crowd, np.zeros((len(crowd.weights), crowd.V.shape[1] + 1), np.int64)
    add_observed(
        of.indptr, of.items, of.indptr, of.items, start, stop, of.weights, of.shares, of.V, of.c,
        *common_of(of.V, of.c, of.fit[1]), observing(of), observed_steps(of), sums,
    )  # fmt: skip
    return sums


Kernel = Callable[[Crowd, int, int], Sums]
KERNELS: list[Kernel] = [counts, residuals, moments, item_moments, spreads, observed]
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def squared(number: float) -> Fraction:
    return Fraction(number) ** 2


def squared_bound(kernel: Kernel, crowd: Crowd, person: int) -> Fraction:
    """Return (steps · the bound of the docstring)², exactly."""
    share = float(crowd.shares[person])
    share = share if 0 <= share <= 1 else 0.0
    if kernel is counts:
        return squared(share) * squared(steps_for(crowd, 1.0))
    if kernel is residuals:
        reach = squared(crowd.height) + (squared(crowd.radius) if crowd.U.shape[1] else 0)
        return squared(share) * squared(residual_steps(crowd)) * squared(crowd.clip) * reach
    if kernel is spreads:
        length = (squared(crowd.radius) if crowd.U.shape[1] else Fraction(0)) + 1
        return squared(share) * squared(spread_steps(crowd)) * length**2
    if kernel is observed:
        reach = squared(crowd.height) + (squared(crowd.radius) if crowd.U.shape[1] else 0)
        return squared(share) * squared(observed_steps(crowd)) * reach
    return squared(share) * squared(moment_steps(crowd)) * squared(crowd.radius) ** 2


def squared_length(sums: NDArray[Any]) -> int:
    return sum(int(one) ** 2 for one in sums.ravel())


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
    diagonal = [k * (k + 1) // 2 for k in range(crowd.U.shape[1])]
    assert (moments(crowd, 0, crowd.n_people)[diagonal] >= 0).all()
    assert (item_moments(crowd, 0, crowd.n_people)[:, diagonal] >= 0).all()
    assert (spreads(crowd, 0, crowd.n_people)[[*diagonal, -crowd.U.shape[1] - 1]] >= 0).all()
    assert (observed(crowd, 0, crowd.n_people)[:, -1] >= 0).all()


@given(crowd=crowds())
@settings(max_examples=50)
def test_two_people_are_at_right_angles_at_most_in_counts(crowd: Crowd) -> None:
    """So replacing one by the other moves counts by no more than √2."""
    alone = [counts(crowd, person, person + 1) for person in range(crowd.n_people)]
    for one in alone:
        assert squared_length(one - alone[0]) <= 2 * squared(crowd.level)


@given(crowd=crowds(wild=False))
@settings(max_examples=60)
def test_well_behaved_people_count_as_the_reference_says(crowd: Crowd) -> None:
    assume(crowd.level > 1e9)
    of = crowd
    for person in range(of.n_people):
        own = slice(of.indptr[person], of.indptr[person + 1])
        items, share, u = of.items[own], float(of.shares[person]), of.U[person].astype(np.float64)
        given = items, of.values[own].astype(np.float64), of.weights, share, of.c.astype(np.float64), of.V
        if points_nowhere(held_out_reference(*given, held_out(of)._replace(length=0.0)), of.height):
            of = replace(of, fit=(*of.fit[:2], 0.0))
        expected = held_out_reference(*given, held_out(of))
        agree(residuals(of, person, person + 1) / residual_steps(of), expected, of.clip * (of.radius + of.height))
        w = np.zeros(len(of.weights))
        w[items] = share * of.weights[items] / np.linalg.norm(of.weights[items])
        agree(counts(of, person, person + 1) / steps_for(of, 1.0), w, 1.0)
        row = u * min(1.0, of.radius / max(float(np.linalg.norm(u)), 1e-300))
        square = np.outer(row, row)
        shared = symmetric(moments(of, person, person + 1) / moment_steps(of), len(u))
        agree(shared, share * square, of.radius**2)
        each = symmetric(item_moments(of, person, person + 1) / moment_steps(of), len(u))
        agree(each, w[:, None, None] * square, of.radius**2)
        x = np.append(row, 1.0)
        weight = share * min(1.0, LIFT / float(np.linalg.norm(of.weights[items])))
        both = symmetric(spreads(of, person, person + 1) / spread_steps(of), len(x))
        agree(both, weight * np.outer(x, x), of.radius**2 + 1)


@given(crowd=crowds(wild=False))
@settings(max_examples=60)
def test_people_with_items_count_as_the_reference_says(crowd: Crowd) -> None:
    """Directions of first guesses are left out where there is next to nothing to point anywhere."""
    assume(crowd.level > 1e9)
    of = replace(crowd, fit=(*crowd.fit[:2], 0.0), c=np.clip(crowd.c, -1, 1))
    for person in range(of.n_people):
        items, share = of.items[of.indptr[person] : of.indptr[person + 1]], float(of.shares[person])
        expected = observed_reference(items, of.weights, share, of.V, of.c, of.fit[1], observing(of))
        agree(observed(of, person, person + 1) / observed_steps(of), expected, of.radius + of.height)


def points_nowhere(rows: NDArray[np.float64], height: float) -> bool:
    """Tell whether factors are so short that rounding alone decides on the direction in which they are stretched."""
    some = rows[rows[:, -1] != 0]
    lengths = np.linalg.norm(some[:, :-1], axis=1) / np.abs(some[:, -1]) * height
    return bool((lengths < 1e-6).any())


def agree(got: NDArray[Any], expected: NDArray[Any], size: float) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5 * size)


@given(crowd=crowds())
@settings(max_examples=100)
def test_weights_of_a_person_have_a_length_below_one(crowd: Crowd) -> None:
    for person in range(crowd.n_people):
        scale, last, total = weight_scale(crowd.indptr, crowd.items, crowd.weights, person), -1, Fraction(0)
        assert math.isfinite(scale)
        for item in crowd.items[crowd.indptr[person] : crowd.indptr[person + 1]].tolist():
            if scale and last < item < len(crowd.weights):
                last, total = item, total + squared(scale) * squared(crowd.weights[item])
        assert total < 1


@given(crowd=crowds())
@settings(max_examples=50)
def test_factors_of_a_person_have_a_length_below_the_radius(crowd: Crowd) -> None:
    row = np.empty(crowd.U.shape[1])
    for person in range(crowd.n_people):
        bounded_row(crowd.U, person, crowd.radius, row)
        assert sum(squared(one) for one in row) <= squared(crowd.radius)
        if not np.isfinite(crowd.U[person]).all():
            assert not row.any()


def greedy(n_items: int, K: int = 2) -> Crowd:
    """Return a person who uses up every bound: far beyond radius and clip, in one direction."""
    ones = np.ones(n_items)
    return Crowd(
        np.array([0, n_items]), np.arange(n_items, dtype=np.int32), (1e9 * ones).astype(np.float32), ones, np.ones(1),
        0.0, np.zeros(n_items, np.float32), np.full((1, K), 7, np.float32), np.ones((n_items, K), np.float32),
        clip=0.7, radius=1.0, height=0.6, level=2.0**40, fit=(1.0, 1.0, 0.0),
    )  # fmt: skip


@every_kernel
@pytest.mark.parametrize("n_items", [2, 3, 20_000])
def test_the_bounds_are_reached(kernel: Kernel, n_items: int) -> None:
    crowd = greedy(1 if kernel is spreads else n_items)  # who has much counts for less there
    if kernel is observed:
        crowd = replace(crowd, c=np.full(n_items, -1e9, np.float32))
    length, bound = squared_length(kernel(crowd, 0, 1)), squared_bound(kernel, crowd, 0)
    assert (1 - Fraction(1, 10_000)) * bound < length <= bound


@every_kernel
def test_an_item_that_stands_there_a_hundred_times_counts_once(kernel: Kernel) -> None:
    crowd = greedy(1)
    often = replace(
        crowd, indptr=np.array([0, 100]), items=np.zeros(100, np.int32), values=np.repeat(crowd.values, 100)
    )
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
    scale = weight_scale(np.array([0, n]), np.arange(n, dtype=np.int32), weights, 0)
    assert squared(scale) * (1 + (n - 1) * squared(weights[1])) < 1
