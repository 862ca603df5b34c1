"""The Gaussian mechanism against sixty digits, and always on the safe side."""

from __future__ import annotations

import math

import pytest

from dpmf.privacy.gaussian import gaussian_delta, gaussian_epsilon

mpmath = pytest.importorskip("mpmath")

CASES = [
    (gdp, delta)
    for gdp in (1e-6, 1e-3, 0.1, 0.26, 1.0, 5.0, 30.0, 500.0)
    for delta in (0.3, 1e-5, 1e-6, 1e-10, 1e-15, 1e-30)
]


def exact_delta(gdp: float, epsilon: float) -> float:
    with mpmath.workdps(60):
        g, e = mpmath.mpf(gdp), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(g / 2 - e / g) - mpmath.exp(e) * mpmath.ncdf(-g / 2 - e / g))


@pytest.mark.parametrize(("gdp", "delta"), CASES)
def test_epsilon_is_the_smallest_that_suffices(gdp: float, delta: float) -> None:
    epsilon = gaussian_epsilon(gdp, delta)
    assert exact_delta(gdp, epsilon) <= delta
    if epsilon > 0:
        assert exact_delta(gdp, epsilon) >= delta * (1 - 1e-5)
        assert exact_delta(gdp, epsilon * (1 - 1e-6)) > delta


@pytest.mark.parametrize(("gdp", "delta"), CASES)
def test_delta_is_right_and_never_too_small(gdp: float, delta: float) -> None:
    for epsilon in (0.0, 0.01, gdp, gdp * gdp):
        exact, ours = exact_delta(gdp, epsilon), gaussian_delta(gdp, epsilon)
        assert ours >= exact * (1 - 1e-9)
        assert ours == pytest.approx(exact, rel=1e-6, abs=1e-300)


def test_known_values() -> None:
    # https://arxiv.org/abs/1905.02383, and by hand: δ(0) = 2 Φ(gdp/2) − 1
    assert gaussian_delta(1.0, 0.0) == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-12)
    assert gaussian_delta(1.0, 1.0) == pytest.approx(0.126936737507, rel=1e-10)
    assert gaussian_epsilon(1.0, 1e-6) == pytest.approx(4.886554117462, rel=1e-10)


def test_the_ends() -> None:
    assert gaussian_epsilon(0.0, 1e-6) == 0.0
    assert gaussian_epsilon(math.inf, 1e-6) == math.inf
    assert gaussian_epsilon(1.0, 0.0) == math.inf
    assert gaussian_delta(0.0, 0.0) == 0.0
    assert gaussian_delta(math.inf, 5.0) == 1.0
    assert gaussian_delta(1e-200, 1.0) == 0.0
