"""What the sampler costs beyond the real Gaussian: its constants, exactly."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from dpmf.errors import InvalidArgument
from dpmf.privacy.noise import (
    DELTA_PER_COORDINATE,
    EPSILON_PER_COORDINATE,
    STEPS_PER_SD,
    slack,
)

A = 2**9
S_SQUARED = STEPS_PER_SD**2
BASE_SQUARED = Fraction(S_SQUARED, A**4 + A**2 + 1)
CENTRE = 2**14
LEAST_P = 1e-9  # with 6.5 standard errors elsewhere: a right sampler fails once in ten million runs


def test_delta_covers_convolution_table_and_tails() -> None:
    assert BASE_SQUARED * (A**4 + A**2 + 1) == STEPS_PER_SD**2
    inner = 1 / (1 / BASE_SQUARED + A**2 / BASE_SQUARED)
    outer = 1 / (1 / (BASE_SQUARED * (1 + A**2)) + A**2 / BASE_SQUARED)
    assert min(inner, outer) > Fraction(39999, 10000)
    ripple = 2 * math.exp(-2 * math.pi**2 * 3.9999) * 1.0001
    tables = 3 * (2.0**-145 + 2 * math.exp(-(CENTRE**2) / (2 * float(BASE_SQUARED))))
    assert 2 * ripple + tables + 2 * math.exp(-(13**2) / 2) < DELTA_PER_COORDINATE


def test_epsilon_covers_rounding_the_real_gaussian() -> None:
    assert 7.05 / S_SQUARED < EPSILON_PER_COORDINATE


@pytest.mark.parametrize("sd", [8, 50])
def test_rounded_and_discrete_gaussian_differ_by_no_more_than_the_lemma_says(sd: int) -> None:
    k = np.arange(13 * sd + 1)
    discrete = -(k**2) / (2 * sd**2) - math.log(sd * math.sqrt(2 * math.pi))
    upper, lower = special.log_ndtr(-(k - 0.5) / sd), special.log_ndtr(-(k + 0.5) / sd)
    ratio = upper + np.log1p(-np.exp(lower - upper)) - discrete
    beta = np.maximum(0, (k**2 / sd**2 - 1) / (2 * sd**2))
    assert np.all(ratio >= -1 / (24 * sd**2) - 1e-10)
    assert np.all(ratio <= np.log1p(np.expm1(beta / 4) / 3) + 1e-10)
    assert ratio[-1] > 0.9 * 168 / (24 * sd**2)  # the bound is nearly reached


def test_sum_of_discrete_gaussians_ripples_no_more_than_the_lemma_says() -> None:
    stretch, base_squared = 8, 65  # tau is 1: the ripple is large enough to be seen in floating point
    k = np.arange(-150, 151)
    base = np.exp(-(k**2) / (2 * base_squared))
    base /= base.sum()
    stretched = np.zeros(stretch * 300 + 1)
    stretched[::stretch] = base
    summed = np.convolve(stretched, base)
    x = np.arange(len(summed)) - len(summed) // 2
    exact = np.exp(-(x**2) / (2 * base_squared * (1 + stretch**2)))
    exact /= exact.sum()
    ripple = 2 * math.exp(-2 * math.pi**2) / (1 - math.exp(-2 * math.pi**2))
    assert 0.1 * ripple < np.abs(summed - exact).sum() / 2 <= ripple / (1 - ripple)


def test_slack_is_small_for_ten_million_coordinates() -> None:
    extra_epsilon, extra_delta = slack(10_000_000, 20.0, 1e-6)
    assert 0 < extra_epsilon < 2e-9
    assert 0 < extra_delta < 1e-14
    assert slack(0, 20.0, 1e-6) == (0.0, 0.0)


@pytest.mark.parametrize(("coordinates", "epsilon", "delta"), [(1, 0.0, 0.0), (3 * 10**9, 8.0, 1e-5), (10**7, 40.0, 0)])
def test_slack_is_the_theorem_rounded_up(coordinates: int, epsilon: float, delta: float) -> None:
    with localcontext(Context(prec=60)):
        exact_epsilon = coordinates * Decimal(EPSILON_PER_COORDINATE)
        exact_delta = (exact_epsilon.exp() - 1) * Decimal(delta) + coordinates * Decimal(DELTA_PER_COORDINATE) * (
            1 + (Decimal(epsilon) + exact_epsilon).exp()
        )
        for got, exact in zip(slack(coordinates, epsilon, delta), (exact_epsilon, exact_delta), strict=True):
            assert exact <= Decimal(got) <= exact * Decimal("1.00001")


def test_slack_ends_where_delta_means_nothing() -> None:
    assert slack(1, math.inf, 0.5)[1] == slack(1, 1e6, 0.5)[1] == 1.0


@pytest.mark.parametrize(
    ("coordinates", "epsilon", "delta"),
    [(-1, 1.0, 0.1), (1, -1.0, 0.1), (1, math.nan, 0.1), (1, 1.0, -0.1), (1, 1.0, 1.1), (1, 1.0, math.nan)],
)
def test_slack_refuses_nonsense(coordinates: int, epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidArgument, match="coordinates"):
        slack(coordinates, epsilon, delta)
