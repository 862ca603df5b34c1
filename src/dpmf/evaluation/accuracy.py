"""The accuracy of a model or a release on held-out ratings.

The figures are for the holder of the data: no guarantee covers them.

>>> import dpmf
>>> ratings = dpmf.Ratings.of([1, 1, 2, 2, 3], [1, 2, 1, 2, 1], [5, 1, 5, 1, 5], scale=(1, 5))
>>> train, test = ratings.split(0.4, seed=4)
>>> model = dpmf.SGD(n_factors=2, n_epochs=3).fit(train, n_threads=1)
>>> sorted(dpmf.evaluate(model, test, k=1))
['coverage@1', 'hit_rate@1', 'mae', 'ndcg@1', 'recall@1', 'rmse']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.threads import run_tasks, thread_count
from dpmf.errors import InvalidArgument
from dpmf.evaluation.alone import best_of_each, fold_in_each, is_small, predict_each
from dpmf.evaluation.given import aligned
from dpmf.evaluation.leak import Predict, frequent, leak_figures
from dpmf.evaluation.metrics import coverage, hit_rate, mae, ndcg, recall, rmse
from dpmf.frames import Columnar
from dpmf.html import show_table
from dpmf.kernels.scores import predict_pairs
from dpmf.kernels.sort import row_sums
from dpmf.model import Model, Ranking, Release
from dpmf.model.batch import recommend_many
from dpmf.model.person import fold_in_many
from dpmf.ratings import Ratings
from dpmf.ratings.ids import Ids

_PAIRS_PER_TASK = 1 << 16
_GROUPS = (0.01, 0.1, 0.5, 1.0)  # upper ends, as fractions of the items or users, those with most ratings first


class Figures(dict[str, float], Columnar):
    """Figures by name; also a table with a row for each."""

    def to_columns(self) -> dict[str, Any]:
        """Return the names of the figures, and the figures."""
        return {"measure": list(self), "value": list(self.values())}

    def _repr_html_(self) -> str:
        return show_table(self.to_columns())


def evaluate(
    model: Model | Release,
    test: Ratings | Any,
    *,
    known: Ratings | Any = None,
    columns: Mapping[str, str | int | None] | None = None,
    k: int = 10,
    least_ratings: int = 0,
    n_threads: int | None = None,
) -> Figures:
    """Return rmse, mae, recall@k, ndcg@k, hit_rate@k and coverage@k; the last four if there are no ratings to predict.

    Lists are ordered by the ranking part of the release, if it has one. Without a rating model, or for implicit
    feedback, there are no errors.

    With known ratings, also kld, kld_top_users and rmse_top_users, see `dpmf.evaluation.leak`: how much errors on
    known ratings differ from errors on test ratings.

    Predictions are clamped to the scale. Held-out items are relevant if rated at least three quarters up the scale, or,
    for implicit feedback, always; candidates are all items of the catalogue that the person has not already rated.
    recall@k is divided by all relevant items, even if there are more than k; in `dpmf.evaluation.new_users`, by k then.

    Args:
        model: a model, which knows its users; or a release, into which people are folded with their known ratings.
        test: the held-out ratings: `Ratings`, or whatever `Ratings.of` takes, such as a table or an array of rows user,
            item, rating. Of a table, items outside the catalogue are left out, and users who are new are people of whom
            nothing is known.
        known: the ratings that the model was trained on, from the same split. Required for a release: the ratings to
            fold in.
        columns: of tables, as in `Ratings.of`.
        k: the length of the lists for ranking figures.
        least_ratings: test ratings whose user or item has fewer known ratings are left out.
        n_threads: all CPUs by default.
    """
    n_threads = thread_count(n_threads)
    model, test, known = aligned(model, test, known, columns)
    alone = isinstance(model, Release) and known is not None and is_small(known)
    model = _folded(model, test, known, n_threads, alone)
    if known is not None:
        _check_same(known, test.user_ids, model.release)
        test = frequent(known, test, least_ratings)
    elif least_ratings:
        raise InvalidArgument(f"least_ratings={least_ratings} counts known ratings: give them as known=…")
    if not len(test):
        remedy = "hold out a larger part" + (", or ask for fewer known ratings" if least_ratings else "")
        raise InvalidArgument(f"there are no test ratings: {remedy}")
    figures = Figures()
    if model.release.predicts_ratings:
        predict = predict_each if alone else predict_pairs
        errors = prediction_errors(model, test, n_threads=n_threads, predict=predict)
        figures |= {"rmse": rmse(errors), "mae": mae(errors)}
        if known is not None:
            figures |= leak_figures(model, known, test, n_threads=n_threads, predict=predict)
    _check_same(test, model.user_ids, model.release)
    indptr, relevant = relevant_items(model.release, test)
    asked = np.flatnonzero(np.diff(indptr))
    positions = best_of_each(model, asked, k) if alone else _best_of_many(model, asked, k, n_threads)
    asked_indptr = np.concatenate([[0], np.cumsum(np.diff(indptr)[asked])])
    figures |= {
        f"recall@{k}": recall(positions, asked_indptr, relevant),
        f"ndcg@{k}": ndcg(positions, asked_indptr, relevant),
        f"hit_rate@{k}": hit_rate(positions, asked_indptr, relevant),
        f"coverage@{k}": coverage(positions, len(model.release.items)),
    }
    return figures


def _best_of_many(model: Model, asked: NDArray[np.int64], k: int, n_threads: int) -> NDArray[np.int32]:
    rated = model.rated(asked)
    of_people = model.user_factors[asked], model.user_biases[asked], *rated.pattern
    return recommend_many(model.release, *of_people, k, rated=rated, n_threads=n_threads).positions


def prediction_errors(
    model: Model, test: Ratings, *, n_threads: int | None = None, predict: Predict = predict_pairs
) -> NDArray[np.float64]:
    """Return predicted minus given rating for every test rating, predictions clamped to the scale."""
    _check_same(test, model.user_ids, model.release)
    release, users = model.release, test.users
    release.check_predicts()
    factors = model.user_factors, release.item_factors
    biases = model.user_biases, release.item_biases
    predicted = np.empty(len(test), np.float32)

    def work(task: int) -> None:
        part = slice(task * _PAIRS_PER_TASK, (task + 1) * _PAIRS_PER_TASK)
        predict(users[part], test.items[part], *factors, *biases, release.mean, predicted[part])

    run_tasks(work, -(-len(test) // _PAIRS_PER_TASK), thread_count(n_threads))
    return np.clip(predicted, release.scale.lo, release.scale.hi).astype(np.float64) - test.values


def popularity_figures(
    release: Release, known: Ratings, test: Ratings, *, k: int = 10, counts: NDArray[np.int64] | None = None
) -> dict[str, float]:
    """Return the ranking figures of `evaluate` for recommending the most popular items to everybody.

    Args:
        release, known, test, k: as those of `evaluate`.
        counts: how popular items are, where these are not all users.
    """
    if counts is None:
        counts = np.bincount(known.items, minlength=known.n_items)
    popular = replace(
        release,
        item_factors=np.zeros((len(counts), 0), np.float32),
        item_biases=np.zeros(len(counts), np.float32),
        ranking=Ranking.by_popularity(counts),
    )
    return evaluate(popular, test, known=known, k=k)


def baseline_errors(train: Ratings, test: Ratings) -> NDArray[np.float64]:
    """Return the errors of the baseline: each user's mean training rating, or the midpoint without one."""
    return np.asarray(own_means(train)[test.users] - test.values, np.float64)


def own_means(train: Ratings) -> NDArray[np.float64]:
    """Return the mean rating of every user, or the midpoint of the scale for users without ratings."""
    counts = np.diff(train.indptr)
    sums = row_sums(train.indptr, train.values)
    return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), train.scale.middle))


def by_popularity(train: Ratings, test: Ratings, *errors: NDArray[np.float64]) -> list[tuple[float, int, list[float]]]:
    """Return the rmse by popularity of the item.

    Args:
        train: the ratings that define popularity.
        test: the held-out ratings.
        errors: errors on the test ratings, one array per predictor.

    Returns:
        For the most popular 1 % of the items, those up to 10 %, up to 50 % and the rest: the upper end as a fraction of
        the catalogue, the number of test ratings, and the rmse of each predictor (NaN without ratings).
    """
    return _by_rank(np.bincount(train.items, minlength=train.n_items), test.items, errors)


def by_activity(train: Ratings, test: Ratings, *errors: NDArray[np.float64]) -> list[tuple[float, int, list[float]]]:
    """Return the rmse by activity of the user; as `by_popularity`, for users."""
    return _by_rank(np.diff(train.indptr), test.users, errors)


def _by_rank(
    counts: NDArray[np.int64], of: NDArray[np.int32], errors: tuple[NDArray[np.float64], ...]
) -> list[tuple[float, int, list[float]]]:
    rank = np.empty(len(counts))
    rank[np.argsort(-counts, kind="stable")] = (np.arange(len(counts)) + 0.5) / len(counts)
    place, rows, low = rank[of], [], 0.0
    for high in _GROUPS:
        chosen = (place > low) & (place <= high)
        found = [rmse(error[chosen]) if chosen.any() else float("nan") for error in errors]
        rows.append((high, int(chosen.sum()), found))
        low = high
    return rows


def _folded(model: Model | Release, test: Ratings, known: Ratings | None, n_threads: int, alone: bool) -> Model:
    """Return a model unchanged; for a release, a model whose users are folded in from their known ratings."""
    if isinstance(model, Model):
        return model
    if known is None:
        raise InvalidArgument("a release knows no users: give their other ratings as known=…")
    _check_same(known, test.user_ids, model)
    if alone:
        biases, factors = fold_in_each(model, known)
    else:
        biases, factors = fold_in_many(model, known.indptr, known.items, known.values, n_threads)
    weights = model.weigh(known.values)
    return Model(model, known.user_ids, factors, biases, known.indptr, known.items, seen_weights=weights)


def _check_same(ratings: Ratings, users: Ids, release: Release) -> None:
    """Refuse ratings of other users or items: kernels would read out of bounds."""
    if ratings.user_ids != users or ratings.catalogue.ids != release.items.ids:
        raise InvalidArgument("ratings and model have different users or items: use both parts of one split")


def relevant_items(release: Release, test: Ratings) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the held-out items that should be in the list of their person: pointers, and items."""
    if release.is_implicit:
        return test.indptr, test.items
    liked = test.select(test.values >= test.scale.liked)
    return liked.indptr, liked.items
