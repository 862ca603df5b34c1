"""Alternating least squares: what it minimises, what it finds, and that threads change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.engine.factors import factor_rows
from dpmf.engine.sparse import SparseRows
from dpmf.errors import InvalidArgument
from dpmf.kernels.als import solve_rated
from dpmf.kernels.ridge import Penalties
from dpmf.methods.als.half_step import Rows, observed_half
from dpmf.methods.als.plain import (
    Factorization,
    factorize_observations,
    factorize_ratings,
    observations_objective,
)
from dpmf.model import EpochRecord
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

METHODS: list[Callable[..., Factorization]] = [factorize_ratings, factorize_observations]
DATA = make(120, 80)


def predictions(found: Factorization) -> NDArray[np.float64]:
    """Return all predictions, shape (n_users, n_items)."""
    products = found.user_factors.astype(np.float64) @ found.item_factors.T
    return np.asarray(found.mean + found.user_biases[:, None] + found.item_biases + products)


def dense(ratings: Ratings, values: NDArray[np.float32]) -> NDArray[np.float64]:
    table = np.zeros((ratings.n_users, ratings.n_items))
    table[ratings.users, ratings.items] = values
    return table


def arrays(found: Factorization) -> list[NDArray[np.float32]]:
    return [found.user_factors, found.user_biases, found.item_factors, found.item_biases]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_threads", [2, 3])
def test_threads_do_not_change_a_bit(method: Callable[..., Factorization], n_threads: int) -> None:
    data = make(1500, 700)  # enough for several tasks
    one = method(data, n_factors=20, n_epochs=2, n_threads=1)
    other = method(data, n_factors=20, n_epochs=2, n_threads=n_threads)
    for a, b in zip(arrays(one), arrays(other), strict=True):
        assert a.tobytes() == b.tobytes()
    assert [record.train_rmse for record in one.history] == [record.train_rmse for record in other.history]


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides(method: Callable[..., Factorization]) -> None:
    first, again, other = (method(DATA, n_factors=4, n_epochs=1, seed=seed) for seed in (1, 1, 2))
    assert first.item_factors.tobytes() == again.item_factors.tobytes()
    assert first.item_factors.tobytes() != other.item_factors.tobytes()


def test_the_record_is_the_error_on_the_training_ratings() -> None:
    found = factorize_ratings(DATA, n_factors=5, n_epochs=3)
    errors = DATA.values - predictions(found)[DATA.users, DATA.items]
    assert found.history[-1].train_rmse == pytest.approx(float(np.sqrt((errors**2).mean())), rel=1e-3)
    assert [record.epoch for record in found.history] == [1, 2, 3]


def test_the_objective_never_rises_between_half_steps_for_ratings() -> None:
    users = SparseRows.by_user(DATA)
    items = users.transposed(DATA.n_items)
    U, V = factor_rows(DATA.n_users, 6), factor_rows(DATA.n_items, 6)
    b, c = np.zeros(DATA.n_users, np.float32), np.zeros(DATA.n_items, np.float32)
    V[:, :6] = np.random.default_rng(0).normal(0, 0.3, (DATA.n_items, 6))
    mean, ridge_b, ridge, exponent = 3.0, 0.2, 0.7, 0.6
    penalties = Penalties(ridge_b, ridge, exponent)
    heavy = [np.diff(side.indptr).astype(np.float64) ** exponent for side in (users, items)]

    def objective() -> float:
        found = Factorization(mean, U, b, V, c, ())
        errors = DATA.values - predictions(found)[DATA.users, DATA.items]
        penalties = [
            (weight * (ridge_b * np.square(biases) + ridge * np.square(rows).sum(axis=1))).sum()
            for weight, biases, rows in zip(heavy, (b, c), (U, V), strict=True)
        ]
        return float((errors**2).sum() + sum(penalties))

    values = []
    for _ in range(6):
        for side, others, theirs, own, rows in ((users, V, c, b, U), (items, U, b, c, V)):
            errors = np.zeros(side.n_rows)
            solve_rated(side.csr, 0, side.n_rows, others, theirs, mean, penalties, own, rows, errors)
            values.append(objective())
    assert all(later <= earlier * (1 + 1e-6) for earlier, later in pairwise(values))
    assert values[-1] < 0.9 * values[0]


def test_the_objective_never_rises_between_half_steps_for_observations() -> None:
    users = SparseRows.by_user(DATA)
    items = users.transposed(DATA.n_items)
    U, V = Rows.zeros(DATA.n_users, 6), Rows.zeros(DATA.n_items, 6)
    V.factors[:, :6] = np.random.default_rng(0).normal(0, 0.3, (DATA.n_items, 6))
    values = []
    for _ in range(6):
        for side, others, rows in ((users, V, U), (items, U, V)):
            observed_half(0.5, others, 1).solve(side, rows, 1)
            values.append(observations_objective(DATA, U.factors[:, :6], V.factors[:, :6], regularization=0.5))
    assert all(later <= earlier * (1 + 1e-6) for earlier, later in pairwise(values))
    assert values[-1] < 0.9 * values[0]


@pytest.mark.parametrize("alpha", [0.3, 1.0, 40.0])
def test_observations_follow_exact_solutions(alpha: float) -> None:
    ratings, n_epochs, ridge = make(300, 120), 15, 0.1
    found = factorize_observations(ratings, n_factors=8, n_epochs=n_epochs, regularization=ridge, alpha=alpha)
    start = factorize_observations(ratings, n_factors=8, n_epochs=1, regularization=ridge, alpha=alpha)
    weights = alpha * dense(ratings, ratings.values)
    preference = (weights > 0).astype(np.float64)
    U, V = start.user_factors.astype(np.float64), start.item_factors.astype(np.float64)
    for _ in range(n_epochs - 1):
        U = exact_rows(preference, weights, V, ridge)
        V = exact_rows(preference.T, weights.T, U, ridge)
    expected, objective = (
        observations_objective(ratings, *pair, regularization=ridge, alpha=alpha)
        for pair in ((U.astype(np.float32), V.astype(np.float32)), (found.user_factors, found.item_factors))
    )
    assert objective < 1.001 * expected


def exact_rows(
    preference: NDArray[np.float64], weights: NDArray[np.float64], others: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """Return the minimum of the objective over one side."""
    gramian = others.T @ others + ridge * np.eye(others.shape[1])
    A = gramian + np.einsum("ij,jk,jl->ikl", weights, others, others, optimize=True)
    right = ((1 + weights) * preference) @ others
    return np.asarray(np.linalg.solve(A, right[:, :, None])[:, :, 0])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_of_observations_is_that_over_all_pairs(weighted: bool) -> None:
    weights = np.random.default_rng(0).random(len(DATA)).astype(np.float32) if weighted else None
    settings: dict[str, Any] = {"regularization": 0.3, "alpha": 2.0, "weights": weights}
    found = factorize_observations(DATA, n_factors=5, n_epochs=2, **settings)
    objective = observations_objective(DATA, found.user_factors, found.item_factors, **settings)
    confidence = 1 + dense(DATA, 2 * DATA.values if weights is None else weights)
    errors = dense(DATA, np.ones_like(DATA.values)) - predictions(found)
    lengths = sum(float(np.square(rows, dtype=np.float64).sum()) for rows in (found.user_factors, found.item_factors))
    assert objective == pytest.approx(float((confidence * errors**2).sum() + 0.3 * lengths), rel=1e-5)
    assert found.history[-1].train_rmse == pytest.approx((objective / len(DATA)) ** 0.5, rel=1e-4)


def test_a_planted_matrix_is_found() -> None:
    rng = np.random.default_rng(3)
    left, right = rng.normal(0, 0.6, (200, 3)), rng.normal(0, 0.6, (150, 3))
    truth = 3 + rng.normal(0, 0.3, (200, 1)) + rng.normal(0, 0.3, 150) + left @ right.T
    seen = rng.random(truth.shape) < 0.4
    users, items = np.nonzero(seen)
    ratings = Ratings.of(users, items, truth[seen], scale=(-9, 15), items=range(150))
    found = factorize_ratings(ratings, n_factors=3, n_epochs=40, regularization=1e-4)
    errors = predictions(found)[~seen] - truth[~seen]
    assert np.sqrt((errors**2).mean()) < 0.02


def test_planted_groups_are_found() -> None:
    users, items = np.divmod(np.arange(60 * 40), 40)
    kept = (users % 2 == items % 2) & (np.random.default_rng(0).random(len(users)) < 0.7)
    ratings = Ratings.of(users[kept], items[kept], np.ones(kept.sum()), scale=(0, 1), items=range(40))
    scores = predictions(factorize_observations(ratings, n_factors=2, n_epochs=10, alpha=20))
    same = (users % 2 == items % 2).reshape(60, 40)
    assert scores[same].min() > scores[~same].max()


@pytest.mark.parametrize("method", METHODS)
def test_those_without_ratings_get_zeros(method: Callable[..., Factorization]) -> None:
    ratings = Ratings.of([1, 1, 2, 3], [1, 2, 1, 3], [5, 1, 4, 3], scale=(1, 5), items=range(1, 6))
    ratings = ratings.select(np.array([True, True, True, False]))  # user 3 and items 3, 4, 5 have none
    found = method(ratings, n_factors=3, n_epochs=2)
    assert not found.user_factors[2].any()
    assert not found.user_biases[2].any()
    assert not found.item_factors[2:].any()
    assert not found.item_biases[2:].any()
    assert found.user_factors[:2].any()


def test_a_wider_scale_gives_the_same_fit_in_its_own_units() -> None:
    wider = Ratings.of(DATA.users, DATA.items, 20 * DATA.values, scale=(20 * DATA.scale.lo, 20 * DATA.scale.hi))
    narrow = Ratings.of(DATA.users, DATA.items, DATA.values, scale=DATA.scale)
    one, other = (factorize_ratings(data, n_factors=4, n_epochs=5) for data in (narrow, wider))
    np.testing.assert_allclose(20 * predictions(one), predictions(other), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("method", METHODS)
def test_a_callback_that_returns_true_ends_the_training(method: Callable[..., Factorization]) -> None:
    seen: list[EpochRecord] = []

    def watch(record: EpochRecord) -> None:
        seen.append(record)

    found = method(DATA, n_factors=2, n_epochs=9, callbacks=[lambda record: record.epoch == 2, watch])
    assert [asdict(record) for record in found.history] == [asdict(record) for record in seen]
    assert len(seen) == 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "wrong", [{"n_factors": 0}, {"n_epochs": 0}, {"regularization": 0.0}, {"seed": -1}, {"n_threads": 0}]
)
def test_settings_are_checked(method: Callable[..., Factorization], wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        method(DATA, **wrong)


@pytest.mark.parametrize("method", METHODS)
def test_no_ratings_are_refused(method: Callable[..., Factorization]) -> None:
    with pytest.raises(InvalidArgument, match="no ratings"):
        method(DATA.select(np.zeros(len(DATA), np.bool_)))


@pytest.mark.parametrize("wrong", [np.ones(3, np.float32), np.full(len(DATA), -1, np.float32)])
def test_weights_are_checked(wrong: NDArray[np.float32]) -> None:
    with pytest.raises(InvalidArgument, match="weights"):
        factorize_observations(DATA, weights=wrong)


def test_factors_of_another_shape_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="shape"):
        observations_objective(DATA, np.ones((2, 2), np.float32), np.ones((DATA.n_items, 2), np.float32))
