"""Figures of tables are those of the same `Ratings`."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import dpmf
from dpmf.errors import DpmfError
from dpmf.methods import SGD
from dpmf.model import Model
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make


@pytest.fixture(scope="module")
def parts() -> tuple[Ratings, Ratings]:
    return make(80, 30, mean_ratings=10).split(0.2, seed=1)


@pytest.fixture(scope="module")
def model(parts: tuple[Ratings, Ratings]) -> Model:
    return SGD(n_factors=2, n_epochs=3).fit(parts[0], n_threads=1)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_tables_have_the_figures_of_their_ratings(model: Model, parts: tuple[Ratings, Ratings], kind: str) -> None:
    train, test = parts
    table: Any = getattr(test, f"to_{kind}")()
    assert dpmf.evaluate(model, table, n_threads=1) == dpmf.evaluate(model, test, n_threads=1)
    known: Any = getattr(train, f"to_{kind}")()
    expected = dpmf.evaluate(model.release, test, known=train, n_threads=1)
    found = dpmf.evaluate(model.release, table, known=known, n_threads=1)
    assert found == pytest.approx(expected)
    mixed = dpmf.evaluate(model, table, known=train, n_threads=1)
    assert mixed == pytest.approx(dpmf.evaluate(model, test, known=train, n_threads=1))


def test_who_and_what_is_new_is_not_in_the_way(model: Model, parts: tuple[Ratings, Ratings]) -> None:
    _, test = parts
    frame = test.to_pandas()
    unlisted = pd.DataFrame({"user": [frame["user"][0]], "item": [10**6], "rating": [5.0]})
    assert dpmf.evaluate(model, pd.concat([frame, unlisted])) == dpmf.evaluate(model, test)
    stranger = pd.DataFrame({"user": ["zoe"], "item": [frame["item"][0]], "rating": [5.0]})
    alone = dpmf.evaluate(model, stranger)
    biases, mean = model.release.item_biases, model.release.mean
    place = model.release.items.find(int(frame["item"][0]))
    assert alone["rmse"] == pytest.approx(abs(min(mean + float(biases[place]), 5.0) - 5.0), abs=1e-5)


def test_ids_that_are_texts_here_and_numbers_there_are_the_same() -> None:
    frame = pd.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "rating": [5, 1, 4, 2]})
    model = SGD(n_factors=1, n_epochs=2).fit(frame, scale=(1, 5), n_threads=1)
    texts = frame.astype({"user": str})
    assert dpmf.evaluate(model, texts) == dpmf.evaluate(model, frame)
    joined = pd.concat([texts, pd.DataFrame({"user": ["x"], "item": [1], "rating": [3]})])
    assert len(dpmf.evaluate(model, joined)) == len(dpmf.evaluate(model, frame))


def test_columns_may_have_any_names(model: Model, parts: tuple[Ratings, Ratings]) -> None:
    _, test = parts
    frame = test.to_pandas().rename(columns={"user": "who"})
    with pytest.raises(DpmfError, match="column for the user"):
        dpmf.evaluate(model, frame)
    roles: Any = {"user": "who", "item": "item", "rating": "rating"}
    assert dpmf.evaluate(model, frame, columns=roles) == dpmf.evaluate(model, test)
