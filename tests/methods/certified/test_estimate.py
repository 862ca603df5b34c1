"""Averages and shrinkage, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.methods.certified.estimate import Estimate, likely_totals, standardized

RNG = np.random.default_rng(0)
M, K = 400, 3


def estimate() -> Estimate:
    return Estimate(RNG.normal(0, 1, (M, K)), RNG.uniform(0.1, 3, (M, K)))


@given(
    values=st.tuples(st.floats(-5, 5), st.floats(-5, 5)),
    variances=st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)),
    forget=st.floats(0, 0.9),
)
def test_refined_weighs_by_precision(
    values: tuple[float, float], variances: tuple[float, float], forget: float
) -> None:
    old, new = (np.array([[one]]) for one in values)
    after = Estimate(old, np.array([[variances[0]]])).refined(new, np.array([[variances[1]]]), forget)
    kept, added = (1 - forget) / variances[0], 1 / variances[1]
    assert after.value.item() == pytest.approx((kept * values[0] + added * values[1]) / (kept + added))
    assert after.variance.item() == pytest.approx(1 / (kept + added))


def test_whoever_knows_nothing_takes_the_measurement() -> None:
    measured = estimate()
    for forget in (0.0, 0.5):
        after = Estimate.nothing(M, K).refined(measured.value, measured.variance, forget)
        np.testing.assert_allclose(after.value, measured.value)
        np.testing.assert_allclose(after.variance, measured.variance)


def test_the_order_of_measurements_does_not_matter() -> None:
    one, other = estimate(), estimate()
    first, second = one.refined(other.value, other.variance), other.refined(one.value, one.variance)
    np.testing.assert_allclose(first.value, second.value)
    np.testing.assert_allclose(first.variance, second.variance)


def test_turned_there_and_back_is_where_it_was() -> None:
    rotation = np.linalg.qr(RNG.normal(0, 1, (K, K)))[0]
    before = Estimate(RNG.normal(0, 1, (M, K)), np.repeat(RNG.uniform(1, 2, (M, 1)), K, axis=1))
    after = before.turned(rotation).turned(rotation.T)
    np.testing.assert_allclose(after.value, before.value)
    np.testing.assert_allclose(after.variance, before.variance)  # alike in all directions, so in these too


def test_turned_variances_are_those_of_the_new_directions() -> None:
    rotation, before = np.linalg.qr(RNG.normal(0, 1, (K, K)))[0], estimate()
    after = before.turned(rotation)
    for row in range(5):
        covariance = rotation.T @ np.diag(before.variance[row]) @ rotation
        np.testing.assert_allclose(after.variance[row], np.diag(covariance))


def test_what_is_not_known_is_not_known_in_any_basis() -> None:
    rotation = np.linalg.qr(RNG.normal(0, 1, (K, K)))[0]
    partly = Estimate(np.zeros((2, K)), np.array([[1.0, 1.0, np.inf], [1.0, 1.0, 1.0]]))
    assert np.isfinite(partly.turned(rotation).variance).all(axis=1).tolist() == [False, True]


def test_scaled_values_have_scaled_deviations() -> None:
    before = estimate()
    after = before.scaled(-3.0)
    np.testing.assert_allclose(after.value, -3 * before.value)
    np.testing.assert_allclose(after.variance, 9 * before.variance)


def test_shrinking_pulls_noisy_values_to_the_trend_along_popularity() -> None:
    popularity = RNG.normal(0, 1, M)
    trend = 0.4 + 0.3 * popularity
    truth = trend + RNG.normal(0, 0.1, M)
    variance = np.where(np.arange(M) % 2 == 0, 4.0, 1e-4)
    measured = truth + RNG.normal(0, 1, M) * np.sqrt(variance)
    likely = Estimate(measured[:, None], variance[:, None]).shrunk(popularity, np.zeros((M, 1)), 0.0, 3.0)[:, 0]
    noisy = variance > 1
    assert np.abs(likely - trend)[noisy].mean() < 0.2 * np.abs(measured - trend)[noisy].mean()
    np.testing.assert_allclose(likely[~noisy], measured[~noisy], atol=0.05)
    assert np.mean((likely - truth) ** 2) < 0.1 * np.mean((measured - truth) ** 2)


def test_shrinking_by_sampling_variance_is_shrinking_too() -> None:
    one, popularity = estimate(), RNG.normal(0, 1, M)
    little, much = (one.shrunk(popularity, np.full((M, K), extra), 0.0, 3.0) for extra in (0.0, 100.0))
    assert np.var(much) < np.var(little)


@pytest.mark.parametrize("n_items", [1, 2, 3])
def test_few_items_are_enough(n_items: int) -> None:
    one = Estimate(np.ones((n_items, K)), np.full((n_items, K), 0.5))
    assert np.isfinite(one.shrunk(np.zeros(n_items), np.zeros((n_items, K)), 0.0, 3.0)).all()


def test_shrinking_scales_with_the_values() -> None:
    one, popularity = estimate(), RNG.normal(0, 1, M)
    sampling = np.full((M, K), 0.2)
    np.testing.assert_allclose(
        one.scaled(25.0).shrunk(popularity, 625 * sampling, 0.0, 3.0),
        25 * one.shrunk(popularity, sampling, 0.0, 3.0),
        rtol=1e-6,
    )


def test_standardized_numbers_have_mean_0_and_deviation_1() -> None:
    numbers = standardized(RNG.normal(3, 7, M))
    assert (numbers.mean(), numbers.std()) == (pytest.approx(0), pytest.approx(1))
    assert standardized(np.full(5, 2.0)).tolist() == [0.0] * 5


def test_what_is_scaled_down_without_end_can_still_be_refined() -> None:
    estimate = Estimate(np.ones((2, 1)), np.ones((2, 1)))
    with np.errstate(all="raise", under="ignore"):
        for _ in range(300):
            estimate = estimate.scaled(1e-3).refined(np.zeros((2, 1)), np.ones((2, 1)))
    assert np.isfinite(estimate.value).all()
    assert (estimate.variance > 0).all()


def about_features(strength: float, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64], Estimate]:
    """Return features of items, numbers of which they explain a part, and a noisy measurement of these."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(400, 12))
    numbers = strength * features[:, :1] + 0.1 * generator.normal(size=(400, 1))
    variance = np.geomspace(0.01, 4.0, 400)[:, None]
    return features, numbers, Estimate(numbers + variance**0.5 * generator.normal(size=(400, 1)), variance)


def mean_square(errors: NDArray[np.float64]) -> float:
    return float(np.mean(errors**2))


def test_what_features_predict_is_what_noisy_numbers_shrink_to() -> None:
    features, numbers, measured = about_features(0.5)
    plain = measured.shrunk(np.zeros(400), np.zeros((400, 1)), 2.0, 6.0)
    pulled = measured.shrunk(np.zeros(400), np.zeros((400, 1)), 2.0, 6.0, features)
    assert mean_square(pulled - numbers) < 0.2 * mean_square(plain - numbers)


def test_features_that_say_nothing_change_next_to_nothing() -> None:
    ratios = []
    for seed in range(20):
        features, numbers, measured = about_features(0.0, seed)
        plain = measured.shrunk(np.zeros(400), np.zeros((400, 1)), 2.0, 6.0)
        pulled = measured.shrunk(np.zeros(400), np.zeros((400, 1)), 2.0, 6.0, features)
        ratios.append(mean_square(pulled - numbers) / mean_square(plain - numbers))
    assert np.median(ratios) == 1.0
    assert np.mean(ratios) < 1.05


def test_no_features_are_as_good_as_none() -> None:
    _, _, measured = about_features(0.5)
    plain = measured.shrunk(np.zeros(400), np.zeros((400, 1)), 2.0, 6.0)
    assert (measured.shrunk(np.zeros(400), np.zeros((400, 1)), 2.0, 6.0, np.zeros((400, 0))) == plain).all()


def test_totals_that_noise_hides_are_those_of_the_like() -> None:
    rng = np.random.default_rng(3)
    true = np.concatenate([np.full(900, 2.0), np.full(100, 300.0)])
    noise = np.full(1000, 20.0)
    found = likely_totals(true + noise * rng.normal(size=1000), noise)
    assert float(np.median(found.steps[:900])) < 12  # where noise alone would make 20 of nothing
    np.testing.assert_allclose(np.median(found.steps[900:]), 300, rtol=0.1)
    np.testing.assert_allclose(found.levels, np.log(found.steps))


def test_items_that_nobody_rated_are_in_part_like_any_other() -> None:
    noisy, noise = np.concatenate([np.zeros(50), np.full(50, 40.0)]), np.ones(100)
    plain, mixed = (likely_totals(noisy, noise, share) for share in (0.0, 0.1))
    assert (mixed.levels[:50] > plain.levels[:50] + 1).all()
    np.testing.assert_allclose(mixed.levels[50:], plain.levels[50:])
    np.testing.assert_array_equal(mixed.steps, plain.steps)
    assert np.isfinite(likely_totals(-np.ones(5), np.ones(5)).levels).all()
