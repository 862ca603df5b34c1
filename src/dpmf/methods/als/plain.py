"""Alternating least squares without privacy, for ratings and for observations.

Users and items take turns: with one side held, the other's rows are independent problems of ridge regression. So the
objective never rises, and the same seed gives the same bits for any number of threads.

`factorize_ratings` predicts a rating as mean + b_i + c_j + u_i·v_j and minimises, over all ratings,

    Σ (r - prediction)² + Σ_i n_i^e (λ_b b_i² + λ ‖u_i‖²) + Σ_j n_j^e (λ_b c_j² + λ ‖v_j‖²),

n being numbers of ratings. Zhou et al. (2008) weigh by the number itself, e = 1; a power of it in between serves users
of few ratings and of many alike, and the λ that is best then is nearly the same for small and large data. Every row is
solved exactly, by a Cholesky factorization.

`factorize_observations` (Hu, Koren and Volinsky, 2008) has no biases and no missing pairs: what was observed is a 1
with confidence 1 + w, everything else a 0 with confidence 1. It minimises, over all pairs of a user and an item,

    Σ confidence (preference - u_i·v_j)² + λ (Σ_i ‖u_i‖² + Σ_j ‖v_j‖²).

Every row takes a few steps of conjugate gradients from where it is: see `dpmf.kernels.conjugate`.

>>> from dpmf.ratings.synthetic import make
>>> result = factorize_ratings(make(50, 40), n_factors=4, n_epochs=5, n_threads=1)
>>> result.user_factors.shape, result.history[-1].train_rmse < result.history[0].train_rmse
((50, 4), True)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint, Snapshots
from dpmf.engine.cluster import Cluster
from dpmf.engine.factors import factor_rows, fill_randomly
from dpmf.engine.sparse import SparseRows
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.kernels.als import observed_error
from dpmf.kernels.blocks import mean_on_grid, sum_on_grid
from dpmf.kernels.ridge import Penalties
from dpmf.methods.als.half_step import Problem, Rows, gramian_of, observed_half, rated_half
from dpmf.methods.base import Callback, RunOptions
from dpmf.methods.checks import not_negative, positive, whole
from dpmf.methods.snapshots import fingerprint_of, restore, save, snapshots_of
from dpmf.methods.units import unit_of
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.ratings import Ratings
from dpmf.streams import stream_key

Array = NDArray[np.float32]
MOST_FACTORS = 1 << 10  # time grows with the square, and memory has room for dozens of squares of this number
EXPONENT = 0.6
BIAS_PART = 0.3  # of the penalty on factors that falls on biases
INITIAL_SD = 0.1


@dataclass(frozen=True, eq=False)
class Factorization:
    """What training found, in the order of the ratings.

    Attributes:
        mean: what every prediction starts from; 0 for observations.
        user_factors, item_factors: shapes (n_users, K) and (n_items, K), float32; zeros where there are no ratings.
        user_biases, item_biases: shapes (n_users,) and (n_items,), float32; zeros for observations.
        history: one record per epoch. `train_rmse` is the error on all training ratings when the epoch ends; for
            observations, the square root of the objective per observed pair, which falls likewise.
    """

    mean: float
    user_factors: Array
    user_biases: Array
    item_factors: Array
    item_biases: Array
    history: tuple[EpochRecord, ...]


def fit_explicit(ratings: Ratings, counted: Ratings, configuration: Mapping[str, Any], options: RunOptions) -> Model:
    """Return a model of exact solutions.

    Args:
        ratings: all of them.
        counted: what to learn from, perhaps fewer.
        configuration: the settings of the method.
        options: threads, callbacks and checkpoint.
    """
    settings = {name: configuration[name] for name in ("n_factors", "n_epochs", "regularization", "seed")}
    how: dict[str, Any] = {name: getattr(options, name) for name in ("n_threads", "callbacks", "checkpoint")}
    found = factorize_ratings(counted, **settings, **how)
    release = _release(ratings, configuration, found.mean, found.item_factors, found.item_biases)
    users = ratings.user_ids, found.user_factors, found.user_biases
    return Model(release, *users, ratings.indptr, ratings.items, found.history)


def fit_explicit_on(
    ratings: StoredRatings, configuration: Mapping[str, Any], options: RunOptions, cluster: Cluster
) -> Model:
    """Return a model of exact solutions, found by the workers of a cluster; it holds nobody."""
    from dpmf.methods.als.spread import train_on

    found = train_on(ratings, configuration, options, cluster)
    release = _release(ratings, configuration, ratings.blocks.mean, found.factors, found.biases)
    return Model.without_users(release, found.history)


def _release(
    ratings: AnyRatings, configuration: Mapping[str, Any], mean: float, factors: Array, biases: Array
) -> Release:
    """Return the release of what was found of items."""
    penalty = configuration["regularization"]
    return Release(
        items=ratings.catalogue,
        scale=ratings.scale,
        mean=mean,
        item_factors=factors,
        item_biases=biases,
        ridge=Ridge(BIAS_PART * penalty, penalty * unit_of(ratings.scale), EXPONENT),
        configuration=dict(configuration),
        guarantee=Guarantee.none(),
    )


def factorize_ratings(
    ratings: Ratings,
    *,
    n_factors: int = 128,
    n_epochs: int = 10,
    regularization: float = 0.7,
    bias_regularization: float | None = None,
    exponent: float = EXPONENT,
    seed: int = 0,
    n_threads: int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> Factorization:
    """Fit biases and factors to ratings.

    Args:
        ratings: what to learn from.
        n_factors: K; time grows with its square.
        n_epochs: how often users and items are solved for.
        regularization: λ, for a scale as wide as 1 to 5; other scales are converted to it.
        bias_regularization: λ_b; 0.3 λ unless given.
        exponent: e, from 0 (the same penalty for everybody) to 1 (in proportion to the number of ratings).
        seed: fixes the initial item factors, made from the items' ids.
        n_threads: all CPUs this process may use by default. It changes the speed, never the result.
        callbacks: called with the record of each epoch when it ends; one that returns True ends the training.
        checkpoint: where to store snapshots, from which a run that was stopped resumes to the same result.
    """
    check_plain(len(ratings), n_factors, n_epochs, seed, regularization)
    not_negative("exponent", exponent)
    ridge_b = BIAS_PART * regularization if bias_regularization is None else bias_regularization
    not_negative("bias_regularization", ridge_b)
    threads = thread_count(n_threads)
    unit, lo, hi = unit_of(ratings.scale), ratings.scale.lo, ratings.scale.hi
    users = SparseRows.by_user(ratings)
    items = users.transposed(ratings.n_items, threads)
    mean = mean_on_grid(sum_on_grid(ratings.values, lo, hi), len(ratings), lo, hi)  # the same in any order
    sd, penalties = initial_sd(unit), Penalties(ridge_b, regularization * unit, exponent)
    U = Rows.zeros(ratings.n_users, n_factors)
    V = initial_rows(ratings.catalogue.ids.keys, np.diff(items.indptr), n_factors, sd, seed)
    epoch = _epoch(partial(rated_half, mean, penalties), users, items, U, V, threads)

    settings = {
        "name": "als", "n_factors": n_factors, "n_epochs": n_epochs, "regularization": regularization,
        "bias_regularization": ridge_b, "exponent": exponent, "seed": seed,
    }  # fmt: skip
    with snapshots_of(checkpoint, settings, ratings, lambda: fingerprint_of(ratings)) as snapshots:
        state = {"U": U.factors, "V": V.factors, "b": U.biases, "c": V.biases}
        history = _train(epoch, n_epochs, tuple(callbacks), state, snapshots)
    return Factorization(mean, *_trimmed(U, n_factors), *_trimmed(V, n_factors), history)


def factorize_observations(
    ratings: Ratings,
    *,
    n_factors: int = 64,
    n_epochs: int = 15,
    regularization: float = 0.01,
    alpha: float = 1.0,
    weights: NDArray[np.float32] | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> Factorization:
    """Fit factors to what was observed, whatever its rating.

    Args:
        ratings: the pairs observed.
        n_factors, n_epochs, seed, n_threads, callbacks, checkpoint: as for `factorize_ratings`.
        regularization: λ, not multiplied by any number of ratings.
        alpha: the weight w of a pair is alpha times its rating.
        weights: the weights themselves, shape (n,), not negative, in the order of the ratings, instead of `alpha`.

    The same objective as that of `implicit.als.AlternatingLeastSquares(alpha=1)` for a matrix of 1 + w.
    """
    check_plain(len(ratings), n_factors, n_epochs, seed, regularization)
    threads = thread_count(n_threads)
    users = _observed(ratings, alpha, weights)
    items = users.transposed(ratings.n_items, threads)
    U = Rows.zeros(ratings.n_users, n_factors)
    V = initial_rows(ratings.catalogue.ids.keys, np.diff(items.indptr), n_factors, INITIAL_SD, seed, common=INITIAL_SD)
    epoch = _epoch(partial(observed_half, regularization), users, items, U, V, threads)

    settings = {
        "name": "als of observations", "n_factors": n_factors, "n_epochs": n_epochs, "regularization": regularization,
        "seed": seed,
    }  # fmt: skip
    with snapshots_of(checkpoint, settings, ratings, lambda: fingerprint_of(ratings, users.values)) as snapshots:
        history = _train(epoch, n_epochs, tuple(callbacks), {"U": U.factors, "V": V.factors}, snapshots)
    return Factorization(0.0, *_trimmed(U, n_factors), *_trimmed(V, n_factors), history)


def observations_objective(
    ratings: Ratings,
    user_factors: Array,
    item_factors: Array,
    *,
    regularization: float = 0.01,
    alpha: float = 1.0,
    weights: NDArray[np.float32] | None = None,
    n_threads: int | None = None,
) -> float:
    """Return what `factorize_observations` minimises, over all pairs of a user and an item, for any factors.

    Only observed pairs are visited: Σ over all pairs of (u·v)² is the inner product of the two Gramians.
    """
    threads = thread_count(n_threads)
    users = _observed(ratings, alpha, weights)
    U, V = _padded(user_factors, ratings.n_users), _padded(item_factors, ratings.n_items)
    ours, theirs = gramian_of(U, threads), gramian_of(V, threads)

    def work(start: int, stop: int) -> float:
        return observed_error(users.csr, start, stop, U, V)

    everywhere = float((ours * theirs).sum()) + regularization * float(np.trace(ours) + np.trace(theirs))
    return users.visit(work, threads) + everywhere


def _epoch(
    problem: Problem, users: SparseRows, items: SparseRows, U: Rows, V: Rows, n_threads: int
) -> Callable[[], float]:
    """Return what solves for all users, then for all items, and returns the objective per rating."""

    def epoch() -> float:
        problem(V, n_threads).solve(users, U, n_threads)
        half = problem(U, n_threads)
        return float(half.solve(items, V, n_threads).sum() + half.everywhere) / len(users.columns)

    return epoch


def _train(
    epoch: Callable[[], float],
    n_epochs: int,
    callbacks: tuple[Callback, ...],
    state: Mapping[str, Array],
    snapshots: Snapshots | None,
) -> tuple[EpochRecord, ...]:
    history = restore(snapshots, state)
    while len(history) < n_epochs:
        began = time.perf_counter()
        squared = epoch()
        seconds = time.perf_counter() - began
        history.append(EpochRecord(len(history) + 1, seconds, math.sqrt(max(squared, 0.0))))
        if snapshots is not None and (snapshots.is_due(len(history)) or len(history) == n_epochs):
            save(snapshots, state, history)
        stops = [callback(history[-1]) is True for callback in callbacks]  # every one is called
        if any(stops):
            break
    return tuple(history)


def check_plain(n_ratings: int, n_factors: int, n_epochs: int, seed: int, regularization: float) -> None:
    """Refuse settings that cannot be, and no ratings."""
    whole("n_factors", n_factors, most=MOST_FACTORS)
    whole("n_epochs", n_epochs)
    whole("seed", seed, least=0, most=(1 << 63) - 1)
    positive("regularization", regularization)
    if not n_ratings:
        raise InvalidArgument("there are no ratings to train on")


def initial_sd(unit: float) -> float:
    """Return the standard deviation of the initial factors of items, for ratings on a scale of this unit."""
    return INITIAL_SD * math.sqrt(unit)


def initial_rows(
    keys: NDArray[np.uint64], counts: NDArray[np.int64], n_factors: int, sd: float, seed: int, common: float = 0.0
) -> Rows:
    """Return random factors of items, each row made from its item's id; those without ratings get zeros.

    Args:
        keys: of the items' ids.
        counts: how many ratings each has.
        n_factors, sd, seed: of the factors.
        common: a direction that all have in common, so that popularity is found at once.
    """
    rows = Rows.zeros(len(keys), n_factors)
    fill_randomly(stream_key(seed, "item factors"), keys, n_factors, sd, rows.factors)
    rows.factors[:, :n_factors] += np.float32(common)
    rows.factors[counts == 0] = 0
    return rows


def _observed(ratings: Ratings, alpha: float, weights: NDArray[np.float32] | None) -> SparseRows:
    if weights is None:
        not_negative("alpha", alpha)
        weights = np.float32(alpha) * ratings.values
    weights = np.ascontiguousarray(weights, np.float32)
    if weights.shape != ratings.values.shape:
        raise InvalidArgument(f"weights of shape {weights.shape}: give one for each of the {len(ratings)} ratings")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InvalidArgument("weights must be numbers, 0 or more: ratings below 0 need weights of their own")
    return SparseRows.by_user(ratings).with_values(weights)


def _padded(factors: Array, n_rows: int) -> Array:
    if factors.ndim != 2 or len(factors) != n_rows:
        raise InvalidArgument(f"factors of shape {factors.shape}: give one row for each of the {n_rows}")
    rows = factor_rows(*factors.shape)
    rows[:, : factors.shape[1]] = factors
    return rows


def _trimmed(rows: Rows, n_factors: int) -> tuple[Array, Array]:
    return np.ascontiguousarray(rows.factors[:, :n_factors]), rows.biases
