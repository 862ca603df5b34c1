"""Methods learn from tables what they learn from the same `Ratings`, and have parameters as scikit-learn wants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from dpmf.errors import DpmfError
from dpmf.methods import ALS, EASE, METHODS, SGD, ObjectivePerturbation
from dpmf.privacy import Budget
from dpmf.ratings import Items, Ratings
from dpmf.ratings.synthetic import make


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(60, 30, mean_ratings=10)


def test_tables_and_arrays_are_what_their_ratings_are(ratings: Ratings) -> None:
    method = SGD(n_factors=2, n_epochs=2)
    expected = method.fit(ratings, n_threads=1)
    frame = ratings.to_pandas()
    odd = frame.rename(columns={"user": "who", "item": "what"})
    roles = {"user": "who", "item": "what", "rating": "rating"}
    described: dict[str, Any] = {"scale": ratings.scale, "items": ratings.catalogue, "n_threads": 1}
    for model in (
        method.fit(frame, **described),
        method.fit(ratings.to_polars(), **described),
        method.fit(ratings.to_arrow(), **described),
        method.fit(frame[["user", "item", "rating"]].to_numpy(), **described),
        method.fit(odd, columns=roles, **described),
    ):
        np.testing.assert_array_equal(model.release.item_factors, expected.release.item_factors)
        assert model.user_ids == expected.user_ids
    assert method.fit(scipy.sparse.csr_array(np.eye(3)), n_threads=1).release.n_factors == 2


def test_a_catalogue_may_be_a_table(ratings: Ratings) -> None:
    whole = ratings.catalogue
    frame = pd.DataFrame({"movieId": list(whole.ids), "title": whole.titles, "genres": whole.genres})
    model = ALS(n_factors=1, n_epochs=1, budget=Budget(5)).fit(
        ratings.to_pandas(), scale=(1, 5), items=frame, n_threads=1
    )
    assert model.guarantee.certified
    assert (model.release.items.titles, model.release.items.genres) == (whole.titles, whole.genres)


def test_items_of_a_table_have_their_titles_and_genres() -> None:
    frame = pd.DataFrame({"ISBN": ["a", "b"], "Book-Title": ["Emma", None], "tags": [["x", "y"], None]})
    items = Items.of(frame)
    assert (list(items.ids), items.titles, items.genres) == (["a", "b"], ("Emma", "b"), ("x|y", ""))
    assert Items.of(pd.DataFrame({"item": [3, 1]})).titles == ("3", "1")
    for wrong, words in [
        (pd.DataFrame({"film": [1]}), "column of item ids"),
        (pd.DataFrame({"item": [1.5]}), "item ids must be integers"),
    ]:
        with pytest.raises(DpmfError, match=words):
            Items.of(wrong)
    with pytest.raises(DpmfError, match="table alone"):
        Items.of(frame, titles=["Emma", "Persuasion"])


def test_a_private_run_on_a_table_still_needs_what_is_public(ratings: Ratings) -> None:
    frame, method = ratings.to_pandas(), ALS(n_factors=1, n_epochs=1, budget=Budget(5))
    with pytest.raises(DpmfError, match="scale that is declared"):
        method.fit(frame, items=ratings.catalogue)
    with pytest.raises(DpmfError, match="public catalogue"):
        method.fit(frame, scale=(1, 5))
    with pytest.raises(DpmfError, match="scale=… describes a table, and these are Ratings"):
        method.fit(ratings, scale=(1, 5))
    with pytest.raises(DpmfError, match="cannot take ratings from a list"):
        method.fit([(1, 2, 3)])
    with pytest.raises(DpmfError, match="7 columns"):
        method.fit(np.ones((4, 7)))


def test_implicit_feedback_needs_no_ratings(ratings: Ratings) -> None:
    frame = ratings.to_pandas()[["user", "item"]]
    method = EASE(budget=Budget(math.inf), feedback="implicit")
    by_rating = method.fit(ratings, n_threads=1).release
    by_event = method.fit(frame, items=ratings.catalogue, n_threads=1).release
    assert by_rating.ranking is not None
    assert by_event.ranking is not None
    np.testing.assert_array_equal(by_event.ranking.popularity, by_rating.ranking.popularity)


def test_a_method_with_a_fit_of_its_own_takes_tables_too(ratings: Ratings) -> None:
    method = ObjectivePerturbation(n_factors=2, n_epochs=2, budget=Budget(math.inf))
    model = method.fit(ratings.to_pandas(), scale=(1, 5), items=ratings.catalogue, n_threads=1)
    assert len(model.user_ids) == 60


@pytest.mark.parametrize("name", METHODS)
def test_parameters_are_the_fields(name: str) -> None:
    given = {} if name == "sgd" else {"budget": Budget(math.inf)}
    method: Any = METHODS[name](**given)
    changed = method.set_params(seed=3)
    assert changed.get_params() == {**method.get_params(), "seed": 3}
    assert type(method)(**method.get_params()) == method
    assert method.seed == 0
    with pytest.raises(DpmfError, match=f"{name} has no setting 'shape': it has .*seed"):
        method.set_params(shape=3)
