"""What methods are held against on held-out ratings: means, biases, popularity, and EASE without privacy for lists.

>>> from dpmf.ratings.synthetic import make
>>> from dpmf.runs.parts import Split
>>> parts = RankedParts.of(make(300, 60), Split(0.2, seed=1))
>>> found = {name: measure_reference(Row(name, "none", asked, 0, 1), parts, Budget(5.0), n_threads=1)
...          for name, asked in references_of([5.0])}
>>> list(found), found["biases"].rmse < found["own-mean"].rmse
(['own-mean', 'biases', 'popular', 'exact-ease', 'private-popular'], True)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.compare.measurement import RankedParts, error_figures, ranking_figures
from dpmf.compare.results import BIASES, EXACT_EASE, OWN_MEAN, POPULAR, PRIVATE_POPULAR, Row
from dpmf.errors import DpmfError
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.accuracy import own_means
from dpmf.evaluation.peers import MOST_ITEMS, count_items, positives_of, private_counts
from dpmf.methods import EASE
from dpmf.model import Model, Release, Ridge
from dpmf.privacy import Budget, Guarantee
from dpmf.ratings import Ratings

# What shrinks biases towards 0, in ratings: those of Koren (2010), Factor in the neighbors.
_ITEM_RIDGE, _USER_RIDGE = 25.0, 10.0


def references_of(epsilons: Iterable[float]) -> tuple[tuple[str, float], ...]:
    """Return the name of every reference and its epsilon: infinity, or one of these for private popularity."""
    exact = tuple((name, math.inf) for name in (OWN_MEAN, BIASES, POPULAR, EXACT_EASE))
    return *exact, *((PRIVATE_POPULAR, epsilon) for epsilon in sorted(set(epsilons)))


def measure_reference(row: Row, parts: RankedParts, budget: Budget, *, n_threads: int | None = None) -> Row:
    """Return the row with the figures of the reference that it names, or with what kept it from having any.

    Args:
        row: which reference it is.
        parts: what to learn from and to test on.
        budget: that of private popularity.
        n_threads: all CPUs by default.
    """
    try:
        return replace(row, **_figures(row.method, parts, budget, n_threads))
    except DpmfError as error:
        return replace(row, error=str(error))


def _figures(name: str, parts: RankedParts, budget: Budget, n_threads: int | None) -> dict[str, Any]:
    if name == OWN_MEAN:
        return error_figures(parts, parts.baseline)
    train = parts.train
    assert isinstance(train, Ratings)
    if name == BIASES:
        model = _biases(train)
        errors = prediction_errors(model, parts.test, n_threads=n_threads)
        return {**error_figures(parts, errors), **ranking_figures(model, parts, n_threads)}
    if name == EXACT_EASE:
        ease = EASE(budget=Budget(math.inf), head=min(MOST_ITEMS, train.n_items))
        return ranking_figures(ease.fit(train, n_threads=n_threads), parts, n_threads)
    everything = positives_of(train, -math.inf)
    counts = (
        private_counts(everything, train.n_items, budget)
        if name == PRIVATE_POPULAR
        else count_items(everything, train.n_items)
    )
    biases = own_means(train) - train.scale.middle
    return ranking_figures(_model(train, train.scale.middle, counts, biases), parts, n_threads)


def _biases(train: Ratings) -> Model:
    """Return the mean of all ratings, and what items, and then users, differ by, shrunk; without privacy."""
    mean = float(train.values.mean())
    by_item = _shrunk(train.items, train.values - mean, train.n_items, _ITEM_RIDGE)
    by_user = _shrunk(train.users, train.values - mean - by_item[train.items], train.n_users, _USER_RIDGE)
    return _model(train, mean, by_item, by_user)


def _shrunk(whose: NDArray[Any], values: NDArray[Any], n: int, ridge: float) -> NDArray[np.float64]:
    return np.bincount(whose, values, n) / (np.bincount(whose, minlength=n) + ridge)


def _model(train: Ratings, mean: float, by_item: NDArray[Any], by_user: NDArray[Any]) -> Model:
    """Return a model without factors."""
    release = Release(
        items=train.catalogue,
        scale=train.scale,
        mean=mean,
        item_factors=np.zeros((train.n_items, 0), np.float32),
        item_biases=by_item.astype(np.float32),
        ridge=Ridge(1.0, 1.0),
        configuration={"method": "reference"},
        guarantee=Guarantee.none(),
    )
    factors = np.zeros((train.n_users, 0), np.float32)
    return Model(release, train.user_ids, factors, by_user.astype(np.float32), train.indptr, train.items)
