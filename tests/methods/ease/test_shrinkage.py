"""Shrinking what was measured with noise: spectra and single entries, against what is known of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.methods.ease.shrinkage import edge_of_noise, posterior_means, shrink_along, shrink_entries, shrink_spectrum


def symmetric_noise(size: int, sd: float, seed: int = 0) -> NDArray[np.float32]:
    """Return noise of standard deviation sd on the diagonal, and sd/√2 off it."""
    below = np.tril(np.random.default_rng(seed).normal(0, sd / 2**0.5, (size, size)), -1)
    noise = below + below.T + np.diag(np.random.default_rng(seed + 1).normal(0, sd, size))
    return noise.astype(np.float32)


def test_nothing_is_found_in_the_spectrum_of_noise() -> None:
    noise = symmetric_noise(300, 2.0)
    vectors, values = shrink_spectrum(noise, 2.0)
    assert vectors.shape == (300, 0)
    assert values.shape == (0,)
    assert np.linalg.eigvalsh(noise).max() == pytest.approx(edge_of_noise(300, 2.0), rel=0.05)


def test_what_is_beyond_the_noise_is_found_and_shrunk_to_about_its_size() -> None:
    size, sd = 300, 1.0
    direction = np.random.default_rng(2).normal(size=size)
    direction /= np.linalg.norm(direction)
    true = 4 * edge_of_noise(size, sd)
    noisy = (true * np.outer(direction, direction)).astype(np.float32) + symmetric_noise(size, sd)
    vectors, values = shrink_spectrum(noisy, sd)
    assert values == pytest.approx([true], rel=0.05)
    assert abs(float(vectors[:, 0] @ direction)) > 0.95
    spiked = true * np.outer(direction, direction)
    found = (vectors * values) @ vectors.T
    assert np.linalg.norm(found - spiked) < 0.6 * np.linalg.norm(noisy - spiked)


def bayes(noisy: NDArray[np.float64], values: list[float], shares: list[float], sd: float) -> NDArray[np.float64]:
    """Return posterior means if the prior is known: what can be reached at best."""
    likely = np.array(shares) * np.exp(-0.5 * ((noisy[:, None] - np.array(values)) / sd) ** 2)
    return np.asarray(likely @ np.array(values) / likely.sum(axis=1))


@pytest.mark.parametrize(
    ("values", "shares"),
    [([0.0], [1.0]), ([0.0, 10.0], [0.97, 0.03]), ([0.0, 5.0, 40.0], [0.9, 0.08, 0.02]), ([3.0], [1.0])],
    ids=["nothing", "few", "two kinds", "all alike"],
)
def test_posterior_means_are_nearly_those_of_the_true_prior(values: list[float], shares: list[float]) -> None:
    generator, sd = np.random.default_rng(3), 2.0
    true = generator.choice(values, 30_000, p=shares)
    noisy = true + generator.normal(0, sd, len(true))
    found, best = posterior_means(noisy, sd), bayes(noisy, values, shares, sd)
    assert np.mean((found - true) ** 2) < np.mean((best - true) ** 2) + 0.02 * sd**2
    assert (np.diff(found[np.argsort(noisy)]) > -0.05 * sd).all()  # whatever was measured larger is not shrunk below


def test_few_or_equal_numbers_are_no_problem() -> None:
    assert len(posterior_means(np.zeros(0), 1.0)) == 0
    assert np.isfinite(posterior_means(np.array([7.0]), 1.0)).all()
    assert np.isfinite(posterior_means(np.full(5, -3.0), 1.0)).all()
    assert np.isfinite(posterior_means(np.array([1e6, -1e6, 0.0]), 1e-3)).all()


def test_entries_are_shrunk_with_those_of_their_size() -> None:
    size, sd = 250, 1.0
    true = np.zeros((size, size), np.float32)
    true[:10, :10] = 12.0  # what popular items have in common
    np.fill_diagonal(true, 0)
    sizes = np.where(np.arange(size) < 10, 100.0, 1.0)
    noisy = true + symmetric_noise(size, sd * 2**0.5)
    found = shrink_entries(noisy, sd, sizes)
    np.testing.assert_array_equal(found, found.T)
    assert not np.diag(found).any()
    assert np.mean((found - true) ** 2) < 0.1 * sd**2
    assert found[:10, :10][np.triu_indices(10, 1)].mean() == pytest.approx(12.0, abs=0.5)
    assert shrink_entries(np.ones((1, 1), np.float32), 1.0, np.ones(1)).tolist() == [[0.0]]


def test_what_is_far_beyond_the_noise_stays_as_it_is() -> None:
    noisy = np.concatenate([np.random.default_rng(3).normal(size=2000), np.geomspace(40.0, 1e6, 500)])
    found = posterior_means(noisy, 1.0)
    np.testing.assert_array_equal(found[2000:], noisy[2000:])
    assert np.abs(found[:2000]).max() < 1.5
    between = posterior_means(np.concatenate([noisy, np.linspace(5.0, 40.0, 500)]), 1.0)[-500:]
    assert np.abs(between - np.linspace(5.0, 40.0, 500)).max() < 2.0  # no gap where one way of estimating ends


def test_a_few_known_directions_show_what_is_lost_in_all_of_them() -> None:
    rng = np.random.default_rng(4)
    size, sd = 400, 1.0
    columns = rng.normal(size=(size, 5)).astype(np.float32)
    basis, _ = np.linalg.qr(columns)
    strengths = np.array([14.0, -14.0, 0, 0, 0])  # the edge of the noise is at 28; within five directions at 3
    signal = (basis * strengths) @ basis.T
    noise = np.triu(rng.normal(0, sd / 2**0.5, (size, size)), 1)
    noise += noise.T + np.diag(rng.normal(0, sd, size))
    noisy = (signal + noise + np.diag(rng.uniform(0, 50, size))).astype(np.float32)  # a diagonal says nothing of pairs
    assert not len(shrink_spectrum(np.array(signal + noise, np.float32), sd).values)
    vectors, values = shrink_along(noisy, sd, columns)
    found = (vectors * values) @ vectors.T
    assert np.square(found - signal).sum() < 0.2 * np.square(signal).sum()
    others = rng.normal(size=(size, 5)).astype(np.float32)  # genres of other items
    vectors, values = shrink_along(noisy, sd, others)
    assert np.abs(values).sum() < 3
