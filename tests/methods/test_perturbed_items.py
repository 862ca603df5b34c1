"""The perturbed objective: its minimum, the steps towards it, and the noise in it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmf.engine.sparse import SparseRows
from dpmf.methods.gaussian.descent import FullGradients
from dpmf.methods.objective.items import PerturbedItems, noise_vectors, plain_fit
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

K, STEP, PENALTY = 5, 2**-5, 0.002
SIGNIFICANCE = 1e-4


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    some = make(150, 60, mean_ratings=25)
    return some.select(some.items != 7)  # which nobody rated


@pytest.fixture(scope="module")
def fitted(ratings: Ratings) -> FullGradients:
    state = plain_fit(ratings, K, STEP, PENALTY, seed=3)
    for number in range(60):
        state.advance(number, n_threads=1)
    return state


def perturbed(state: FullGradients, ratings: Ratings, eta: NDArray[np.float64]) -> PerturbedItems:
    start = plain_fit(ratings, K, STEP, PENALTY, seed=3).X
    return PerturbedItems(state.items, start, eta, STEP, PENALTY)


def drawn(ratings: Ratings, scale: float = 8.0) -> NDArray[np.float64]:
    return noise_vectors(Noise(5), scale, (ratings.n_items, K))


def test_the_solution_is_the_minimum(ratings: Ratings, fitted: FullGradients) -> None:
    """The gradient of the perturbed objective is 0 there, and numpy finds the same."""
    eta = drawn(ratings)
    V = perturbed(fitted, ratings, eta).solve(fitted.T, n_threads=2).astype(float)
    U, M = fitted.factors(1.0)[0].astype(float), len(ratings)
    for j in range(ratings.n_items):
        mine = ratings.items == j
        own, r = U[ratings.users[mine]], ratings.values[mine].astype(float)
        gradient = (-2 * own.T @ (r - own @ V[j]) + eta[j]) / M + 2 * PENALTY * V[j]
        assert np.abs(gradient).max() < 1e-6
        solved = np.linalg.solve(own.T @ own + M * PENALTY * np.eye(K), own.T @ r - eta[j] / 2)
        np.testing.assert_allclose(V[j], solved, rtol=1e-5, atol=1e-6)


def test_noise_can_be_taken_back_out_and_has_the_right_length(ratings: Ratings, fitted: FullGradients) -> None:
    """From V, U and the ratings alone: lengths of η are Gamma(K, scale), and directions uniform."""
    scale, lengths, heights = 8.0, [], []
    U = fitted.factors(1.0)[0].astype(float)
    sums, grams = np.zeros((ratings.n_items, K)), np.zeros((ratings.n_items, K, K))
    np.add.at(sums, ratings.items, ratings.values[:, None] * U[ratings.users])
    np.add.at(grams, ratings.items, U[ratings.users][:, :, None] * U[ratings.users][:, None, :])
    grams += len(ratings) * PENALTY * np.eye(K)
    for seed in range(40):
        eta = noise_vectors(Noise(seed), scale, (ratings.n_items, K))
        V = perturbed(fitted, ratings, eta).solve(fitted.T, n_threads=1).astype(float)
        taken = 2 * (sums - np.einsum("jab,jb->ja", grams, V))
        lengths.append(np.linalg.norm(taken, axis=1))
        heights.append(taken[:, 0] / lengths[-1])
    assert stats.kstest(np.concatenate(lengths), stats.gamma(K, scale=scale).cdf).pvalue > SIGNIFICANCE
    # A coordinate x of a uniform direction: (x + 1) / 2 has the distribution Beta((K - 1)/2, (K - 1)/2).
    half = (np.concatenate(heights) + 1) / 2
    assert stats.kstest(half, stats.beta((K - 1) / 2, (K - 1) / 2).cdf).pvalue > SIGNIFICANCE


def test_a_wrong_scale_would_be_noticed() -> None:
    lengths = np.linalg.norm(noise_vectors(Noise(1), 8.0, (2400, K)), axis=1)
    assert stats.kstest(lengths, stats.gamma(K, scale=8.0).cdf).pvalue > SIGNIFICANCE
    assert stats.kstest(lengths, stats.gamma(K, scale=8.8).cdf).pvalue < SIGNIFICANCE
    assert stats.kstest(lengths, stats.gamma(K + 1, scale=8.0).cdf).pvalue < SIGNIFICANCE


def test_steps_are_those_of_the_formula(ratings: Ratings, fitted: FullGradients) -> None:
    eta = drawn(ratings)
    state = perturbed(fitted, ratings, eta)
    V, U = state.V[:, :K].astype(float), fitted.factors(1.0)[0].astype(float)
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1, rtol=1e-5)
    R, rated = np.zeros((ratings.n_items, len(U))), np.zeros((ratings.n_items, len(U)))
    R[ratings.items, ratings.users], rated[ratings.items, ratings.users] = ratings.values, 1
    k = rated.sum(axis=1)[:, None]
    for _ in range(30):
        error = rated * (R - V @ U.T)
        moved = V - STEP * ((-2 * error @ U + eta) / np.maximum(k, 1) + 2 * PENALTY * V)
        V = np.where(k > 0, moved, V)
        state.advance(fitted.T, n_threads=2)
    np.testing.assert_allclose(state.V[:, :K], V, rtol=1e-3, atol=1e-3)


def test_errors_are_reported_before_each_step(ratings: Ratings, fitted: FullGradients) -> None:
    state = perturbed(fitted, ratings, np.zeros((ratings.n_items, K)))
    U, V = fitted.factors(1.0)[0], state.V[:, :K].copy()
    errors = ratings.values - (U[ratings.users] * V[ratings.items]).sum(axis=1)
    found = [state.advance(fitted.T, n_threads=1) for _ in range(50)]
    assert found[0] == pytest.approx(float(np.sqrt(np.mean(errors**2))), rel=1e-5)
    assert found[-1] < 0.5 * found[0]


def test_what_nobody_rated(ratings: Ratings, fitted: FullGradients) -> None:
    """The minimum is noise alone, as for any other item; steps leave it at its start."""
    eta = drawn(ratings)
    state = perturbed(fitted, ratings, eta)
    start = state.V[7].copy()
    V = state.solve(fitted.T, n_threads=1)
    np.testing.assert_allclose(V[7], -eta[7] / (2 * len(ratings) * PENALTY), rtol=1e-5)
    state.advance(fitted.T, n_threads=1)
    np.testing.assert_array_equal(state.V[7], start)


def test_the_bits_are_the_same_for_any_number_of_threads(ratings: Ratings, fitted: FullGradients) -> None:
    found = set()
    for n_threads in (1, 2, 3):
        state = perturbed(fitted, ratings, drawn(ratings))
        solved = state.solve(fitted.T, n_threads)
        state.advance(fitted.T, n_threads)
        found.add((solved.tobytes(), state.V.tobytes()))
    assert len(found) == 1


def test_a_side_without_ratings_is_solved_too() -> None:
    items = SparseRows(np.zeros(4, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    state = PerturbedItems(items, np.ones((3, 16), np.float32), np.ones((3, K)), STEP, PENALTY)
    assert state.advance(np.ones((1, 16), np.float32), n_threads=1) == 0
