"""Results as frames and in notebooks, and one person's or many people's ratings from frames."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpmf
from dpmf.compare.results import Row, Rows
from dpmf.errors import DpmfError, MissingExtra
from dpmf.methods import SGD
from dpmf.model import Model, Ranking, Release
from dpmf.model.recommendation import Recommendation, Recommendations
from dpmf.privacy import Budget
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.synthetic import make
from dpmf.ratings.times import UNKNOWN


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(60, 30, mean_ratings=10)


@pytest.fixture(scope="module")
def model(ratings: Ratings) -> Model:
    return SGD(n_factors=3, n_epochs=3).fit(ratings, n_threads=1)


def check_frames(table: Any, names: list[str], n_rows: int) -> None:
    """Compare the three kinds of frames with each other."""
    pandas, polars, arrow = table.to_pandas(), table.to_polars(), table.to_arrow()
    assert list(pandas.columns) == polars.columns == arrow.column_names == names
    assert len(pandas) == len(polars) == arrow.num_rows == n_rows
    for name in names:
        assert polars[name].to_list() == arrow[name].to_pylist()
        assert pd.Series(polars[name].to_list()).equals(pd.Series(pandas[name].tolist()))


def test_a_list_of_recommendations_is_a_table(model: Model) -> None:
    listed = model.recommend(model.user_ids[3], k=4)
    check_frames(listed, ["item", "title", "score"], 4)
    assert listed.to_pandas()["item"].tolist() == [one.item for one in listed]
    assert listed == list(listed)
    check_frames(model.similar_items(model.release.items.ids[0], k=2), ["item", "title", "score"], 2)
    beside = Recommendations([Recommendation(1, "Heat & <Dust>", 0.5, 4.25)])
    check_frames(beside, ["item", "title", "score", "rating"], 1)
    assert "<td>Heat &amp; &lt;Dust&gt;</td><td>0.5</td><td>4.25</td>" in beside._repr_html_()


def test_many_lists_are_one_table_with_ids(model: Model) -> None:
    users = [model.user_ids[7], model.user_ids[2]]
    batch = model.recommend_batch(users, k=3, n_threads=1)
    assert batch.users is not None
    assert batch.users.tolist() == users
    assert batch.item_ids.tolist() == [[one.item for one in listed] for listed in batch]
    check_frames(batch, ["user", "item", "title", "rank", "score"], 6)
    frame = batch.to_pandas()
    assert frame["user"].tolist() == [users[0]] * 3 + [users[1]] * 3
    assert frame["rank"].tolist() == [1, 2, 3] * 2
    np.testing.assert_allclose(frame["score"], [one.score for listed in batch for one in listed], atol=1e-4)


def test_lists_that_are_short_have_no_ids_and_no_rows(model: Model) -> None:
    few = model.recommend_batch([model.user_ids[0]], k=5, only=[model.release.items.ids[1]], include_rated=True)
    assert few.item_ids.tolist() == [[model.release.items.ids[1], None, None, None, None]]
    assert len(few.to_pandas()) == 1


def test_a_release_recommends_to_whoever_a_table_is_about(model: Model, ratings: Ratings) -> None:
    frame = ratings.to_pandas()
    expected = model.release.recommend_batch(ratings, 3, n_threads=1)
    assert expected.users is not None
    assert expected.users.tolist() == list(ratings.user_ids)
    for table in (frame, ratings.to_polars(), ratings.to_arrow(), frame.to_numpy(object)):
        batch = model.release.recommend_batch(table, 3, n_threads=1)
        assert batch.item_ids.tolist() == expected.item_ids.tolist()
    one = frame[frame["user"] == ratings.user_ids[5]]
    alone = model.release.fold_in(dict(zip(one["item"], one["rating"], strict=True)))
    assert [entry.item for entry in expected[5]] == [entry.item for entry in alone.recommend(k=3)]
    with pytest.raises(DpmfError, match="another catalogue"):
        model.release.recommend_batch(make(10, 12), 3)


@pytest.mark.parametrize(
    "mine",
    [
        pd.DataFrame({"item": [10, 20], "rating": [5, 4.5]}),
        pd.DataFrame({"userId": ["ann", "ann"], "movieId": [10, 20], "rating": [5, 4.5]}),
        pd.DataFrame({"title": ["Heat (1995)", "Alien (1979)"], "stars": [5, 4.5]}),
        pl.DataFrame({"item": ["10", "Alien (1979)"], "rating": [5.0, 4.5]}),
        pl.DataFrame({"item": [10, 20], "rating": [5.0, 4.5]}).lazy(),
        pa.table({"item": [10, 20], "rating": [5, 4.5]}),
        np.array([[10, 5], [20, 4.5]]),
        np.array([[7, 10, 5], [7, 20, 4.5]]),
        np.array([["ann", "10", 5], ["ann", "Alien (1979)", 4.5]], object),
        Ratings.of(["ann", "ann"], [10, 20], [5, 4.5]),
    ],
)
def test_one_person_is_folded_in_from_a_table(release: Release, mine: Any) -> None:
    expected, found = release.fold_in({10: 5, 20: 4.5}), release.fold_in(mine)
    assert (found.bias, found.rated.tolist()) == (expected.bias, expected.rated.tolist())
    assert release.recommend(mine, k=3) == expected.recommend(k=3)


def test_tables_of_implicit_feedback_need_no_ratings(release: Release, ranking_of: Callable[..., Ranking]) -> None:
    implicit = replace(release, mean=0.0, scale=Scale(0, 1), feedback="implicit", alpha=1.0)
    assert implicit.fold_in(pd.DataFrame({"item": [10, 30]})).rated.tolist() == [0, 2]
    counting = replace(implicit, ranking=ranking_of(6, threshold=8.0, lowest_weight=0.5))
    table = pd.DataFrame({"artistID": [10, 30], "weight": [8, 1]})
    assert counting.fold_in(table).owned.values.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("mine", "words"),
    [
        (pd.DataFrame({"user": [1, 2], "item": [10, 20], "rating": [5, 4]}), ["several people", "recommend_batch"]),
        (pd.DataFrame({"film": [10], "rating": [5]}), ["DataFrame", "film, rating", "item"]),
        (pd.DataFrame({"item": [10, 10], "rating": [5, 4]}), ["10 is rated twice"]),
        (pd.DataFrame({"item": [10], "rating": [np.nan]}), ["nan", "scale 1:5"]),
        (pd.DataFrame({"item": [10.5], "rating": [4]}), ["10.5"]),
        (np.ones((2, 5)), ["5 columns", "item, rating"]),
    ],
)
def test_a_table_that_is_no_persons_is_refused_in_one_line(release: Release, mine: Any, words: list[str]) -> None:
    with pytest.raises(DpmfError) as caught:
        release.fold_in(mine)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_ratings_are_a_table_that_can_be_read_again(ratings: Ratings) -> None:
    for table in (ratings.to_pandas(), ratings.to_polars(), ratings.to_arrow()):
        again = Ratings.of(table, scale=ratings.scale, items=ratings.catalogue)
        assert again.user_ids == ratings.user_ids
        np.testing.assert_array_equal(again.values, ratings.values)
        np.testing.assert_array_equal(again.items, ratings.items)
    assert ratings.timestamps is None or "timestamp" in ratings.to_columns()
    timed = Ratings.of([1, 2], [1, 1], [5, 3], [10, 20])
    assert timed.timestamps is not None
    unknown = replace(timed, timestamps=np.array([10, UNKNOWN]))
    assert unknown.to_columns()["timestamp"].tolist() == [10, None]
    counted = Ratings.of(pd.DataFrame({"user": [1], "item": [2], "plays": [3]}))
    check_frames(counted, ["user", "item", "count"], 1)


def test_figures_and_rows_are_tables(ratings: Ratings, model: Model) -> None:
    figures = dpmf.evaluate(model, ratings, n_threads=1)
    check_frames(figures, ["measure", "value"], len(figures))
    assert "<td>rmse</td>" in figures._repr_html_()
    rows = Rows(
        [
            Row(
                "sgd",
                "none",
                np.inf,
                repeat=0,
                seed=1,
                rmse=0.5,
                ranking={"ndcg@100": 0.25, "ndcg@100_interval": [0, 1]},
            )
        ]
    )
    frame = rows.to_pandas()
    assert frame[["method", "rmse", "ndcg@100"]].values.tolist() == [["sgd", 0.5, 0.25]]
    assert not {"guarantee", "history", "ndcg@100_interval"} & set(frame.columns)
    assert "<th>ndcg@100</th>" in rows._repr_html_()
    assert Rows().to_polars().height == 0


def test_notebooks_show_sizes_and_guarantees_and_nothing_of_people(ratings: Ratings, model: Model) -> None:
    shown = ratings._repr_html_()
    assert "<td>60</td>" in shown
    assert "1:5, declared" in shown
    assert "declare it for a private run" in Ratings.of([1], [1], [5])._repr_html_()
    assert "not private" in model.release._repr_html_()
    private = dpmf.ALS(n_factors=1, n_epochs=1, budget=Budget(5.0)).fit(ratings, n_threads=1)
    assert "5.0, 1e-06)-DP per user" in private.release._repr_html_()
    assert "it rests on" in private.guarantee._repr_html_()
    assert not hasattr(model, "_repr_html_")
    assert not hasattr(model.recommend_batch(k=1), "_repr_html_")


def test_a_library_that_is_missing_is_named(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtra, match="pip install polars"):
        model.recommend(model.user_ids[0]).to_polars()
