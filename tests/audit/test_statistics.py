"""Bounds on ε against numbers that follow from the papers' formulas by hand, and against simulated attacks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpmf.audit.statistics import (
    Counts,
    best_epsilon,
    best_threshold,
    clopper_pearson,
    gdp_at,
    one_run_epsilon,
    one_run_gdp,
    one_run_p_value,
    separation,
    shift_of,
    spread_of,
    too_small,
    usual_counts,
)
from dpmf.privacy.gaussian import gaussian_epsilon


def test_clopper_pearson_bounds_invert_binomial_tails() -> None:
    for count, n in ((0, 10), (3, 20), (20, 20), (57, 100)):
        low, high = clopper_pearson(count, n, 0.01)
        assert low == 0 if count == 0 else binom.sf(count - 1, n, low) == pytest.approx(0.01)
        assert high == 1 if count == n else binom.cdf(count, n, high) == pytest.approx(0.01)


def test_perfect_attacks_show_what_the_rule_of_three_says() -> None:
    """0 of n at error a bounds a rate by 1 - a^(1/n), and n of n by a^(1/n)."""
    n, error = 200, 0.05
    root = (error / 2) ** (1 / n)
    assert best_epsilon(n, 0.0, error) == pytest.approx(math.log(root / (1 - root)))
    assert best_epsilon(n, 0.1, error) == pytest.approx(math.log((root - 0.1) / (1 - root)))
    assert Counts(n, n, 0, n).gdp(error) == pytest.approx(2 * norm.ppf(root))


def test_bounds_use_misses_as_well_as_hits() -> None:
    rare_misses = Counts(1000, 1000, 500, 1000)
    assert rare_misses.epsilon(0.0, 0.05) == pytest.approx(Counts(500, 1000, 0, 1000).epsilon(0.0, 0.05))
    assert Counts(50, 100, 50, 100).epsilon(0.0, 0.05) == 0.0
    assert Counts(50, 100, 50, 100).gdp(0.05) == 0.0


def test_a_bound_is_seldom_above_the_truth() -> None:
    """Randomized response of ε = 1, 400 times: at most about 5 % of the bounds at 5 % are wrong."""
    rng, rate = np.random.default_rng(3), 1 / (1 + math.exp(-1))
    hits, alarms = rng.binomial(100, rate, 400), rng.binomial(100, 1 - rate, 400)
    wrong = sum(
        Counts(h, 100, a, 100).epsilon(0.0, 0.05) > 1 for h, a in zip(hits.tolist(), alarms.tolist(), strict=True)
    )
    assert wrong <= 20


def test_one_run_without_delta_is_a_binomial_tail() -> None:
    assert one_run_p_value(1000, 20, 20, 0.0, 0.0) == pytest.approx(2.0**-20)
    assert one_run_p_value(1000, 10, 9, math.log(4), 0.0) == pytest.approx(10 * 0.8**9 * 0.2 + 0.8**10)
    # all of m guesses right: rate^m = error, so ε = log(r / (1 - r)) with r = error^(1/m)
    root = 0.05 ** (1 / 100)
    assert one_run_epsilon(100, 100, 100, 0.0, 0.05) == pytest.approx(math.log(root / (1 - root)), abs=1e-5)


def test_delta_of_one_run_adds_what_the_theorem_says() -> None:
    """With one guess of one canary: P[Bin(1, q) ≥ 1] + 2 m δ max_i P[1 > Bin ≥ 1 - i] / i = q + 2 δ (1 - q)."""
    q = 1 / (1 + math.exp(-1.5))
    assert one_run_p_value(1, 1, 1, 1.5, 0.01) == pytest.approx(q + 2 * 0.01 * (1 - q))
    # two guesses, both right: i = 1 gives 2 q (1 - q), i = 2 gives (1 - q²) / 2
    added = max(2 * q * (1 - q), (1 - q**2) / 2)
    assert one_run_p_value(50, 2, 2, 1.5, 1e-3) == pytest.approx(q**2 + 2 * 50 * 1e-3 * added)


def test_one_run_of_gaussian_privacy_shows_nothing_from_a_single_guess() -> None:
    """One canary, one right guess: r = error, h = Φ(Φ⁻¹(error) - μ), and r + h never exceeds 1: nothing is shown."""
    assert one_run_gdp(1, 1, 1, 0.05) == 0.0


def test_one_run_of_gaussian_privacy_follows_the_recursion_by_hand() -> None:
    """m = k' = 2, c = 2: h₂ = 0, r₂ = τ; h₁ = F(τ), r₁ = τ + h₁; h₀ = max(h₁, F(r₁)), r₀ = r₁ as i = 0 adds nothing."""
    error = 0.3
    gdp = one_run_gdp(2, 2, 2, error)

    def whole(mu: float) -> float:
        first = norm.cdf(norm.ppf(error) - mu)
        right = error + first
        return float(right + max(first, norm.cdf(norm.ppf(right) - mu)))

    if gdp > 0:
        assert whole(gdp) == pytest.approx(1.0, abs=1e-4)
    else:
        assert whole(0.0) <= 1.0


def test_more_right_guesses_show_more_and_gaussian_privacy_shows_more_than_any_mechanism() -> None:
    shown = [one_run_epsilon(400, 80, correct, 1e-6, 0.05) for correct in (40, 60, 70, 80)]
    assert shown[0] == 0 < shown[1] < shown[2] < shown[3]
    assert gaussian_epsilon(one_run_gdp(400, 80, 70, 0.05), 1e-6) > shown[2]


def test_gaussian_bounds_of_one_run_are_seldom_above_the_truth() -> None:
    """Scores of 200 canaries at μ = 1, 60 times: at most a few of the bounds at 5 % are wrong."""
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(60):
        there = rng.random(200) < 0.5
        order = np.argsort(rng.normal(size=200) + there)
        correct = int((~there[order[:25]]).sum() + there[order[-25:]].sum())
        wrong += one_run_gdp(200, 50, correct, 0.05) > 1.0
    assert wrong <= 6


def test_the_threshold_is_the_best_there_is() -> None:
    best = best_threshold(1.0, 500, 1e-6, 0.05)
    shown = usual_counts(1.0, best, 500).epsilon(1e-6, 0.05)
    assert (
        shown
        >= max(usual_counts(1.0, other, 500).epsilon(1e-6, 0.05) for other in np.linspace(-2, 3, 50).tolist()) - 0.02
    )
    assert best_threshold(0.1, 50, 1e-6, 0.05) == pytest.approx(0.05)  # nothing can be shown: the middle


def test_shifts_and_spreads_come_with_intervals_that_hold_the_truth() -> None:
    """Intervals at 5 %, 400 times: about 20 of them miss, and more than 40 never would."""
    rng, missed = np.random.default_rng(2), np.zeros(2, int)
    for _ in range(400):
        first, second = rng.normal(0, 2.0, 100), rng.normal(3.0, 2.0, 100)
        _, low, high = shift_of(first, second, 0.05)
        _, least, most = spread_of(first, 0.05)
        missed += [not low < 1.5 < high, not least < 2.0 < most]
    assert (missed > 4).all()
    assert (missed < 40).all()


def test_noise_a_tenth_too_small_has_a_tiny_p_value_and_the_right_noise_has_not() -> None:
    normal = np.random.default_rng(1).normal(size=3200)
    assert too_small(0.9 * normal) < 1e-9
    assert too_small(normal) > 0.01


def test_separation_is_one_half_for_equals_and_one_for_those_apart() -> None:
    assert separation([1.0, 2.0], [1.0, 2.0])[0] == 0.5
    assert separation([3.0, 4.0], [1.0, 2.0]) == (1.0, 0.0)


def test_gaussian_privacy_and_epsilon_invert_each_other() -> None:
    assert gaussian_epsilon(gdp_at(2.0, 1e-6), 1e-6) == pytest.approx(2.0, abs=1e-4)
    assert gdp_at(2.0, 0.0) == 0.0
