"""How much a model's errors reveal about which ratings it was trained on: the measure of Balu and Furon (2016).

A Gaussian is fitted to the errors on training ratings, and another to the errors on held-out ratings; the divergence
between the two is the information, in nats, that an error gives on average about whether its rating was used for
training. It is an average, over one model and one split, and no guarantee: a model that reveals everything about a few
people may have a small divergence.

>>> from dpmf.methods import SGD
>>> from dpmf.ratings.synthetic import make
>>> train, test = make(60, 40).split(0.2)
>>> model = SGD(n_factors=8, n_epochs=20).fit(train, n_threads=1)
>>> sorted(leak_figures(model, train, test, n_threads=1))
['kld', 'kld_top_users', 'rmse_top_users']
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.layout import equal_masses
from dpmf.engine.threads import run_tasks
from dpmf.evaluation.metrics import gaussian_divergence
from dpmf.kernels.scores import predict_pairs
from dpmf.model import Model
from dpmf.ratings import Ratings

_RATINGS_PER_TASK = 1 << 18  # errors on all training ratings at once could take more memory than the model
_TOP = 0.1  # of the users
Predict = Callable[..., None]
"""`dpmf.kernels.scores.predict_pairs`, or what does the same."""


def leak_figures(
    model: Model, train: Ratings, test: Ratings, *, n_threads: int, predict: Predict = predict_pairs
) -> dict[str, float]:
    """Return kld, and kld_top_users and rmse_top_users for the tenth of the users with the most ratings."""
    top = top_users(train)
    learnt, unseen = (_moments(model, ratings, top, n_threads, predict) for ratings in (train, test))
    return {
        "kld": gaussian_divergence(*_mean_and_variance(learnt[0]), *_mean_and_variance(unseen[0])),
        "kld_top_users": gaussian_divergence(*_mean_and_variance(learnt[1]), *_mean_and_variance(unseen[1])),
        "rmse_top_users": math.sqrt(unseen[1, 2] / unseen[1, 0]) if unseen[1, 0] else math.nan,
    }


def top_users(train: Ratings) -> NDArray[np.bool_]:
    """Return a mask of the tenth of the users, at least one, with the most ratings; ties go to the first.

    >>> ratings = Ratings.of([1, 1, 2], [1, 2, 1], [5, 3, 3], scale=(1, 5))
    >>> top_users(ratings).tolist()
    [True, False]
    """
    counts = np.diff(train.indptr)
    chosen = np.zeros(len(counts), np.bool_)
    chosen[np.argsort(-counts, kind="stable")[: max(round(_TOP * np.count_nonzero(counts)), 1)]] = True
    return chosen


def frequent(known: Ratings, test: Ratings, least: int, item_counts: NDArray[np.int64] | None = None) -> Ratings:
    """Return the test ratings whose user and item both have at least `least` known ratings.

    Args:
        known, test: of the same users.
        least: the number.
        item_counts: how many each item has of everybody, where these are not all users.
    """
    counts = np.bincount(known.items, minlength=known.n_items) if item_counts is None else item_counts
    return test.select((np.diff(known.indptr) >= least)[test.users] & (counts >= least)[test.items])


def _moments(
    model: Model, ratings: Ratings, top: NDArray[np.bool_], n_threads: int, predict: Predict
) -> NDArray[np.float64]:
    """Return count, sum and sum of squares of errors, predictions clamped, shape (2, 3): of all, and of top users."""
    counts = np.diff(ratings.indptr)
    n_tasks = -(-max(len(ratings), 1) // _RATINGS_PER_TASK)
    starts = equal_masses(counts, n_tasks)
    found = np.zeros((n_tasks, 2, 3))
    release = model.release
    factors = model.user_factors, release.item_factors
    biases = model.user_biases, release.item_biases

    def work(task: int) -> None:
        first, last = starts[task], starts[task + 1]
        users = np.repeat(np.arange(first, last, dtype=np.int32), counts[first:last])
        part = slice(ratings.indptr[first], ratings.indptr[last])
        predicted = np.empty(len(users), np.float32)
        predict(users, ratings.items[part], *factors, *biases, release.mean, predicted)
        errors = np.clip(predicted, release.scale.lo, release.scale.hi).astype(np.float64) - ratings.values[part]
        for group, chosen in enumerate((errors, errors[top[users]])):
            found[task, group] = len(chosen), chosen.sum(), np.square(chosen).sum()

    run_tasks(work, n_tasks, n_threads)
    return np.asarray(found.sum(axis=0))


def _mean_and_variance(moments: NDArray[np.float64]) -> tuple[float, float]:
    count, total, squares = moments.tolist()
    if not count:
        return math.nan, math.nan
    return total / count, max(squares / count - (total / count) ** 2, 0.0)
