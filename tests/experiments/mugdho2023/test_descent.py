"""The published steps in several readings: what `GaussianGD` does, and what sets the others apart."""

from __future__ import annotations

import math
from itertools import islice
from typing import Literal

import numpy as np
import pytest
from experiments.mugdho2023.descent import READINGS, Moment, Trial, descend

from dpmf import Budget, GaussianGD, Ratings
from dpmf.methods.gaussian.claim import Claim
from dpmf.ratings.synthetic import make

ITERATIONS = 6


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(120, 50, mean_ratings=20)


def after(ratings: Ratings, trial: Trial, iterations: int = ITERATIONS) -> Moment:
    return list(islice(descend(ratings, trial, n_threads=1), iterations))[-1]


@pytest.mark.parametrize(("reading", "centering"), [("published, raw", "raw"), ("published, mean", "mean")])
def test_the_published_readings_are_paper_mode_to_the_bit(
    ratings: Ratings, reading: str, centering: Literal["raw", "mean"]
) -> None:
    moment = after(ratings, Trial(reading, n_factors=4, noise_seed=3, seed=2))
    model = GaussianGD(
        n_factors=4,
        n_epochs=ITERATIONS,
        budget=Budget(1.0),
        eps_i=0.3,
        mode="paper",
        centering=centering,
        seed=2,
        noise_seed=3,
        items_public=True,
    ).fit(ratings, n_threads=1)
    assert moment.iterations == ITERATIONS
    assert np.array_equal(moment.T[:, :4], model.user_factors)
    assert np.array_equal(moment.X[:, :4], model.release.item_factors)
    assert moment.train_rmse == model.history[-1].train_rmse


@pytest.mark.parametrize("reading", list(READINGS))
def test_a_step_is_what_the_reading_says(ratings: Ratings, reading: str) -> None:
    K, step, what = 3, 0.01, READINGS[reading]
    trial = Trial(reading, eps_i=math.inf, n_factors=K, step=step)
    moments = descend(ratings, trial, n_threads=1)
    first = next(moments)
    T, X = first.T[:, :K].astype(np.float64), first.X[:, :K].astype(np.float64)
    then = next(moments)
    centre = ratings.values.mean(dtype=np.float64) if what.centred else 0.0
    users, items = ratings.users, ratings.items
    errors = ratings.values - centre - (T[users] * X[items]).sum(axis=1)
    shorter_X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    shorter_T = T / np.maximum(np.linalg.norm(T, axis=1, keepdims=True), 1) if what.users_clipped else T
    pull_T, pull_X = np.zeros_like(T), np.zeros_like(X)
    np.add.at(pull_T, users, errors[:, None] * shorter_X[items])
    np.add.at(pull_X, items, errors[:, None] * shorter_T[users])
    if what.averaged:
        pull_T /= np.maximum(np.bincount(users, minlength=len(T)), 1)[:, None]
        pull_X /= np.maximum(np.bincount(items, minlength=len(X)), 1)[:, None]
    expected_T, expected_X = T + step * (pull_T - 0.01 * T), X + step * (pull_X - 0.01 * X)
    if what.projected:
        expected_X /= np.maximum(np.linalg.norm(expected_X, axis=1, keepdims=True), 1)
    np.testing.assert_allclose(then.T[:, :K], expected_T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(then.X[:, :K], expected_X, rtol=1e-4, atol=1e-5)


def test_noise_is_on_the_mean_gradient_where_gradients_are_means(ratings: Ratings) -> None:
    plain, noisy = (
        after(ratings, Trial("averaged, raw", n_factors=16, eps_i=eps_i, noise_seed=1), 1).T[:, :16].copy()
        for eps_i in (math.inf, 0.3)
    )
    sigma = Trial().sigma(4.0)
    assert (noisy - plain).std() == pytest.approx(Trial().step * sigma, rel=0.1)


def test_what_is_claimed_is_the_formula_of_the_paper() -> None:
    assert Trial(eps_i=0.3).claimed(4.0, 500) == pytest.approx(12.69, abs=0.005)
    assert Trial(eps_i=0.9).claimed(9.0, 7) == Claim(0.9, 0.01, 1e-5, 9.0, 1.0, 7).by_renyi
    assert (Trial(eps_i=math.inf).claimed(4.0, 500), Trial(eps_i=math.inf).sigma(4.0)) == (math.inf, 0.0)
