"""scikit-learn clones methods and estimators, searches over settings, and is refused where that would cost privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict

import dpmf
from dpmf.errors import DpmfError
from dpmf.methods import ALS, EASE, METHODS, SGD
from dpmf.privacy import Budget
from dpmf.ratings.synthetic import make
from dpmf.runs.estimator import Estimator


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make(80, 30, mean_ratings=12).to_pandas()


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_cloned(name: str) -> None:
    given: dict[str, Any] = {} if name == "sgd" else {"budget": Budget(math.inf)}
    method = METHODS[name](**given)
    assert clone(method) == method
    assert clone(method).set_params(seed=4) == method.set_params(seed=4)


def test_a_grid_is_searched(frame: pd.DataFrame) -> None:
    estimator = Estimator(SGD(n_factors=2, n_epochs=3, learning_rate=0.05), scale=(1, 5))
    grid = {"method__n_epochs": [1, 8], "method__regularization": [0.02]}
    search = GridSearchCV(estimator, grid, cv=3, error_score="raise").fit(frame)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max() < 0
    assert search.best_estimator_.method.n_epochs == search.best_params_["method__n_epochs"]
    train, test = next(KFold(3).split(frame))
    by_hand = clone(estimator).set_params(method__n_epochs=8, method__regularization=0.02).fit(frame.iloc[train])
    assert search.cv_results_["split0_test_score"][1] == by_hand.score(frame.iloc[test])
    assert search.best_estimator_.model_.release.n_factors == 2
    assert estimator.method == SGD(n_factors=2, n_epochs=3, learning_rate=0.05)
    assert not hasattr(estimator, "model_")


def test_ratings_may_come_by_themselves(frame: pd.DataFrame) -> None:
    pairs, ratings = frame[["user", "item"]], frame["rating"].to_numpy()
    estimator = Estimator(SGD(n_factors=2, n_epochs=3), scale=(1, 5))
    together, apart = clone(estimator).fit(frame), clone(estimator).fit(pairs, ratings)
    np.testing.assert_array_equal(together.predict(frame), apart.predict(pairs))
    assert apart.score(pairs, ratings) == pytest.approx(together.score(frame))
    error = math.sqrt(np.mean((apart.predict(pairs) - ratings) ** 2))
    assert apart.score(pairs, ratings) == pytest.approx(-error, abs=1e-6)
    predicted = cross_val_predict(estimator, pairs.to_numpy(object), ratings, cv=2)
    assert predicted.shape == ratings.shape
    search = GridSearchCV(estimator, {"method__seed": [0, 1]}, scoring="neg_mean_absolute_error", cv=2)
    assert search.fit(pairs, ratings).best_score_ < 0


def test_predictions_are_those_of_the_model(frame: pd.DataFrame) -> None:
    fitted = Estimator(SGD(n_factors=2, n_epochs=3), scale=(1, 5)).fit(frame)
    first = frame[frame["user"] == frame["user"][0]]
    expected = fitted.model_.predict(frame["user"][0], first["item"])
    np.testing.assert_allclose(fitted.predict(first), expected, rtol=1e-5)
    new = pd.DataFrame({"user": ["zoe", frame["user"][0]], "item": [frame["item"][0], -5]})
    release = fitted.model_.release
    place = release.items.find(int(frame["item"][0]))
    bias = fitted.model_.person(frame["user"][0]).bias
    assert place is not None
    by_hand = [release.mean + float(release.item_biases[place]), release.mean + bias]
    np.testing.assert_allclose(fitted.predict(new), by_hand, rtol=1e-5)


def test_rankings_are_searched_by_their_own_figure(frame: pd.DataFrame) -> None:
    estimator = Estimator(EASE(budget=Budget(math.inf)), scale=(1, 5), figure="ndcg@10").fit(frame[:-100])
    assert 0 <= estimator.score(frame[-100:]) <= 1
    with pytest.raises(DpmfError, match="only ranks"):
        estimator.predict(frame)
    with pytest.raises(DpmfError, match="figure='rmse' is not known: choose from recall@10"):
        estimator.set_params(figure="rmse").score(frame[-100:])


def test_private_methods_are_searched_on_public_ratings_only(frame: pd.DataFrame) -> None:
    items = sorted(set(frame["item"]))
    method = ALS(n_factors=1, n_epochs=1, budget=Budget(5.0))
    with pytest.raises(DpmfError, match="search on public ratings"):
        Estimator(method, scale=(1, 5), items=items).fit(frame)
    fitted = Estimator(method, scale=(1, 5), items=items, public=True).fit(frame)
    guarantee = fitted.model_.guarantee
    assert guarantee.certified
    assert "asserted to be public" in guarantee.assumptions[-1]


def test_what_is_wrong_is_said_in_one_line(frame: pd.DataFrame) -> None:
    estimator = Estimator(SGD(n_factors=2, n_epochs=1))
    wrongs: list[tuple[Callable[[], object], str]] = [
        (lambda: estimator.predict(frame), "call fit first"),
        (lambda: estimator.set_params(depth=3), "no parameter 'depth'.*method__n_factors"),
        (lambda: estimator.set_params(method__depth=3), "sgd has no setting 'depth'"),
        (lambda: estimator.fit([1, 2, 3]), "cannot take ratings from a list"),
        (lambda: estimator.fit([1, 2, 3], [4, 5, 1]), "users and items from list"),
    ]
    for wrong, words in wrongs:
        with pytest.raises(DpmfError, match=words):
            wrong()
    assert "SGD(n_factors=2" in repr(estimator)
    assert dpmf.Estimator is Estimator
