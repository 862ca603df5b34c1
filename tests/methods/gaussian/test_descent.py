"""Steps along mean gradients, with users kept within a radius, against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.errors import InvalidArgument
from dpmf.methods.gaussian.descent import FullGradients, Pace
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

STEP, USER_PENALTY, ITEM_PENALTY = 2**-5, 0.002, 0.003


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(150, 60, mean_ratings=25)


def started(ratings: Ratings, pace: Pace, length: float = 1.0) -> FullGradients:
    return FullGradients.start(ratings, 5, pace, centre=0.0, unit=1.0, length=length, seed=3, radius=1.0)


def test_steps_are_those_of_the_formula(ratings: Ratings) -> None:
    state = started(ratings, Pace.mean(ratings, STEP, USER_PENALTY, ITEM_PENALTY))
    T, X = (rows.astype(float) for rows in state.factors(1.0))
    R, rated = np.zeros((len(T), len(X))), np.zeros((len(T), len(X)))
    R[ratings.users, ratings.items], rated[ratings.users, ratings.items] = ratings.values, 1
    m, k = (np.maximum(rated.sum(axis=axis), 1)[:, None] for axis in (1, 0))
    for number in range(40):
        error = rated * (R - T @ X.T)
        T, X = (
            T - STEP * (-2 * error @ X / m + 2 * USER_PENALTY * T),
            X - STEP * (-2 * error.T @ T / k + 2 * ITEM_PENALTY * X),
        )
        T /= np.maximum(1, np.linalg.norm(T, axis=1, keepdims=True))
        state.advance(number, n_threads=2)
    found = state.factors(1.0)
    np.testing.assert_allclose(found[0], T, atol=2e-3)
    np.testing.assert_allclose(found[1], X, atol=5e-3)


@pytest.mark.parametrize("length", [1.0, 7.0])
def test_nobody_leaves_the_radius(ratings: Ratings, length: float) -> None:
    state = started(ratings, Pace.mean(ratings, STEP, 0.0, 0.0), length)
    for number in range(60):
        assert np.linalg.norm(state.T.astype(float), axis=1).max() <= 1
        state.advance(number, n_threads=1)
    assert np.linalg.norm(state.T.astype(float), axis=1).max() == pytest.approx(1, abs=1e-4)  # they would if they could


def test_sums_of_gradients_diverge_at_the_published_step(ratings: Ratings) -> None:
    """Why means are taken: the same step along sums over a row's ratings does not even last ten iterations."""
    state = FullGradients.start(
        ratings, 5, Pace.constant(ratings, 2 * STEP, 0.001), centre=0.0, unit=1.0, length=1.0, seed=3
    )
    with pytest.raises(InvalidArgument, match="diverged"):
        [state.advance(number, n_threads=1) for number in range(10)]
