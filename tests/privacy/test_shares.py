"""Noise in shares: what each of them is, what they add up to, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmf.errors import InvalidArgument
from dpmf.privacy import noise as module
from dpmf.privacy.noise import (
    DELTA_PER_COORDINATE,
    EPSILON_PER_COORDINATE,
    LARGEST_DRAW,
    MOST_SHARES,
    STEPS_PER_SD,
    Noise,
    shares_slack,
    slack,
)

LEAST_P = 1e-9  # with 6.5 standard errors elsewhere: a right sampler fails once in ten million runs
NUMBERS = [2, 9, 943, MOST_SHARES]


def sum_of(people: list[int] | NDArray[np.intp], n_shares: int, n: int) -> NDArray[np.float64]:
    """Return what the shares of some people add up to, each with a key of their own, in standard deviations."""
    total = np.zeros(n, np.int64)
    for person in people:
        total += Noise().shares(n, n_shares, "sums", int(person))
    return total / STEPS_PER_SD


# One share


@pytest.mark.parametrize("n_shares", NUMBERS)
def test_a_share_has_its_part_of_the_variance(n_shares: int) -> None:
    z = Noise().shares(1_000_000, n_shares, "test", 0) / STEPS_PER_SD * math.sqrt(n_shares)
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs((z**power).mean() - mean) < 6.5 * math.sqrt(variance / len(z)), power
    assert stats.kstest(z, "norm").pvalue > LEAST_P


def test_the_smallest_shares_fit_the_discrete_gaussian_cell_by_cell() -> None:
    drawn = Noise().shares(4_000_000, MOST_SHARES, "cells", 0)
    parameter, width = 2**18, 2**7
    k = np.arange(-8 * parameter, 8 * parameter)
    density = np.exp(-(k**2) / (2 * parameter**2))
    expected = density.reshape(-1, width).sum(axis=1) * (len(drawn) / density.sum())
    seen = np.bincount((drawn + 8 * parameter) // width, minlength=len(expected))
    often = expected > 20
    assert np.count_nonzero(often) > 10_000
    chi = ((seen - expected)[often] ** 2 / expected[often]).sum()
    rest_seen, rest = seen[~often].sum(), expected[~often].sum()
    assert stats.chi2.sf(chi + (rest_seen - rest) ** 2 / rest, np.count_nonzero(often)) > LEAST_P


@pytest.mark.parametrize("n_shares", NUMBERS)
def test_lowest_digits_of_a_share_are_uniform(n_shares: int) -> None:
    drawn = Noise().shares(1_000_000, n_shares, "digits", 0)
    for modulus in (2, 256, 1000, module._table(n_shares).stretch):
        assert stats.chisquare(np.bincount(drawn % modulus, minlength=modulus)).pvalue > LEAST_P


@pytest.mark.parametrize("n_shares", NUMBERS)
def test_tails_of_a_share_are_those_of_a_gaussian(n_shares: int) -> None:
    drawn = np.abs(Noise().shares(2_000_000, n_shares, "tails", 0)) * math.sqrt(n_shares)
    for limit in (3, 4, 4.5):
        beyond = int((drawn > limit * STEPS_PER_SD).sum())
        assert stats.binomtest(beyond, len(drawn), 2 * stats.norm.sf(limit)).pvalue > LEAST_P


@pytest.mark.parametrize("n_shares", [1, *range(2, 70), *NUMBERS])
def test_a_share_reaches_sixteen_standard_deviations_and_no_further_than_the_largest_draw(n_shares: int) -> None:
    table = module._table(n_shares)
    furthest = (table.centre - 1) * (table.stretch**2 + table.stretch + 1)
    assert furthest > 15.9 * STEPS_PER_SD / math.sqrt(n_shares)
    assert furthest < LARGEST_DRAW


@pytest.mark.parametrize("n_shares", [1, 2, 100, 4097, MOST_SHARES])
def test_parameters_belong_to_the_number_of_shares(n_shares: int) -> None:
    table = module._table(n_shares)
    assert table.base_square * (table.stretch**4 + table.stretch**2 + 1) == Fraction(STEPS_PER_SD**2, n_shares)


# Their sum


@pytest.mark.parametrize("n_shares", [2, 3, 40])
def test_shares_add_up_to_one_draw(n_shares: int) -> None:
    total = sum_of(list(range(n_shares)), n_shares, 100_000)
    assert stats.kstest(total, "norm").pvalue > LEAST_P
    assert abs((total**2).mean() - 1) < 6.5 * math.sqrt(2 / len(total))


@pytest.mark.parametrize(("people", "drop_outs", "tolerated"), [(12, 4, 4), (12, 1, 4), (12, 0, 4), (30, 10, 20)])
def test_those_who_stay_add_enough(people: int, drop_outs: int, tolerated: int) -> None:
    n_shares = people - tolerated
    staying = np.random.default_rng(people + drop_outs).permutation(people)[drop_outs:]
    total = sum_of(staying, n_shares, 100_000)
    sd = math.sqrt(len(staying) / n_shares)
    assert sd >= 1
    assert stats.kstest(total / sd, "norm").pvalue > LEAST_P
    if len(staying) > n_shares:  # more noise, and the test can tell
        assert stats.kstest(total, "norm").pvalue < LEAST_P


def test_fewer_than_were_counted_on_add_too_little() -> None:
    total = sum_of(list(range(7)), 8, 100_000)
    assert (total**2).mean() < 1 - 6.5 * math.sqrt(2 / len(total))


@pytest.mark.parametrize(("square", "n"), [(0.25, 2), (0.5, 2), (0.5, 5), (1.0, 2)])
def test_sums_ripple_no_more_than_the_lemma_says(square: float, n: int) -> None:
    k = np.arange(-60, 61)
    share = np.exp(-(k**2) / (2 * square))
    share /= share.sum()
    total = share
    for _ in range(n - 1):
        total = np.convolve(total, share)
    x = np.arange(len(total)) - len(total) // 2
    exact = np.exp(-(x**2) / (2 * n * square))
    exact /= exact.sum()
    ripples = [math.exp(-2 * math.pi**2 * square * m / (m + 1)) for m in range(1, n)]
    seen = np.abs(x) < 10  # further out, floating-point numbers are too coarse
    ratios = np.abs(np.log(total[seen] / exact[seen]))
    assert 0.2 * sum(ripples) < ratios.max() <= 5 * sum(ripples)
    thetas = [2 * q / (1 - q) for q in ripples]
    assert 0.05 * sum(thetas) < np.abs(total - exact).sum() / 2 <= sum(theta / (1 - theta) for theta in thetas)


# Whose they are


def test_one_share_is_a_draw_of_integers() -> None:
    np.testing.assert_array_equal(Noise(3).shares((50, 7), 1, "x", 4), Noise(3).integers((50, 7), "x", 4))


def test_a_seed_repeats_shares() -> None:
    first = Noise(3).shares(20_000, 943, "x", 4)
    np.testing.assert_array_equal(first, Noise(3).shares((200, 100), 943, "x", 4).ravel())
    assert first[:4].tolist() == [-1103556, -1450079, -10874860, -6801086]
    assert not np.array_equal(first, Noise(3).shares(20_000, 944, "x", 4))
    assert not np.array_equal(first, Noise().shares(20_000, 943, "x", 4))


def test_tables_that_were_forgotten_are_made_again_the_same() -> None:
    before = Noise(3).shares(1000, 5, "x", 0)
    for n_shares in range(100, 120):
        module._table(n_shares)
    assert module._table.cache_info().currsize == module._table.cache_info().maxsize
    np.testing.assert_array_equal(before, Noise(3).shares(1000, 5, "x", 0))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda noise: noise.shares(2, 5, "x", 0), lambda noise: noise.shares(2, 5, "x", 0)),
        (lambda noise: noise.shares(2, 5, "x", 0), lambda noise: noise.shares(2, 6, "x", 0)),
        (lambda noise: noise.shares(2, 5, "x", 0), lambda noise: noise.integers(2, "x", 0)),
        (lambda noise: noise.integers(2, "x", 0), lambda noise: noise.shares(2, 5, "x", 0)),
        (lambda noise: noise.coins(2, 0.5, "x", 0), lambda noise: noise.shares(2, 5, "x", 0)),
    ],
)
def test_noise_is_drawn_once(first: Callable[[Noise], object], second: Callable[[Noise], object]) -> None:
    noise = Noise()
    first(noise)
    with pytest.raises(InvalidArgument, match="label 'x', index 0 was drawn before: use a new index"):
        second(noise)


@pytest.mark.parametrize("n_shares", [0, -1, MOST_SHARES + 1, 2**70])
def test_numbers_of_shares_out_of_range_are_refused_and_nothing_is_used_up(n_shares: int) -> None:
    noise = Noise()
    with pytest.raises(InvalidArgument, match=f"n_shares is {n_shares}: it must be at least 1 and at most 1048576"):
        noise.shares(2, n_shares, "x", 0)
    with pytest.raises(InvalidArgument, match=f"n_shares is {n_shares}"):
        shares_slack(1, n_shares, 1.0, 1e-6)
    noise.shares(2, 2, "x", 0)


def test_half_a_share_is_refused() -> None:
    with pytest.raises(TypeError):
        Noise().shares(2, 2.5, "x", 0)  # type: ignore[arg-type]
    drawn = Noise(1).shares(2, np.int32(MOST_SHARES), "x", 0)  # type: ignore[arg-type]
    np.testing.assert_array_equal(drawn, Noise(1).shares(2, MOST_SHARES, "x", 0))


# What they cost


@pytest.mark.parametrize("n_shares", [1, 2, 943, MOST_SHARES])
def test_delta_covers_shares_their_sum_and_tails(n_shares: int) -> None:
    ripple = 2 * math.exp(-2 * math.pi**2 * 3.9999) * 1.0001
    share = 2 * ripple + 3 * (2.0**-145 + 2 * math.exp(-(16**2) / 2))
    tails = 2 * math.exp(-(13**2) / 2)
    # What the sum itself costs has too small a logarithm for a float: it is compared by its logarithm.
    if n_shares > 1:
        log_sum = math.log(3 * (n_shares - 1)) - 2 * math.pi**2 * STEPS_PER_SD**2 / n_shares / 2
        assert log_sum < -6e11 < math.log(tails)
    assert n_shares * share + 2 * tails < n_shares * DELTA_PER_COORDINATE
    assert n_shares * DELTA_PER_COORDINATE < 2 * (n_shares * share + 2 * tails)


@pytest.mark.parametrize(
    ("coordinates", "n_shares", "epsilon", "delta"),
    [(1, 1, 0.0, 0.0), (1, 7, 0.0, 0.0), (10**7, MOST_SHARES, 8.0, 1e-6), (3 * 10**9, 943, 20.0, 1e-5)],
)
def test_slack_is_the_theorem_rounded_up(coordinates: int, n_shares: int, epsilon: float, delta: float) -> None:
    with localcontext(Context(prec=60)):
        exact_epsilon = coordinates * Decimal(EPSILON_PER_COORDINATE)
        exact_delta = (exact_epsilon.exp() - 1) * Decimal(delta) + coordinates * n_shares * Decimal(
            DELTA_PER_COORDINATE
        ) * (1 + (Decimal(epsilon) + exact_epsilon).exp())
        got = shares_slack(coordinates, n_shares, epsilon, delta)
        for one, exact in zip(got, (exact_epsilon, exact_delta), strict=True):
            assert exact <= Decimal(one) <= exact * Decimal("1.00001")


def test_slack_of_many_shares_is_small() -> None:
    extra_epsilon, extra_delta = shares_slack(10**7, MOST_SHARES, 1.0, 1e-6)
    assert 1e-9 < extra_epsilon < 1.2e-9
    assert 1e-15 < extra_delta < 1.2e-15
    assert 1.9e-12 < shares_slack(10**7, MOST_SHARES, 20.0, 1e-6)[1] < 2e-12
    assert shares_slack(0, MOST_SHARES, 20.0, 1e-6) == (0.0, 0.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 1e-6), (40.0, 1e-3), (math.inf, 0.5)])
def test_counting_every_share_as_a_coordinate_is_enough(epsilon: float, delta: float) -> None:
    assert slack(10**6, epsilon, delta) == shares_slack(10**6, 1, epsilon, delta)
    counted, due = slack(943 * 10**6, epsilon, delta), shares_slack(10**6, 943, epsilon, delta)
    assert counted[0] > due[0]
    assert counted[1] >= due[1]
