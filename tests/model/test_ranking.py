"""How a release ranks: scores, order, and people of whom nothing is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.evaluation import evaluate, prediction_errors
from dpmf.kernels.csr import Csr
from dpmf.methods.objective.profiles import Profiles
from dpmf.model import Model, Ranking, Release
from dpmf.model.batch import recommend_many
from dpmf.model.ranking_tensors import pack, rounded, unpack
from dpmf.privacy import Budget
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.synthetic import make

Rankings = Callable[..., Ranking]


@pytest.fixture
def ranked(release: Release, ranking_of: Rankings) -> Release:
    """Return a release of six items that predicts and ranks."""
    return dataclasses.replace(release, ranking=ranking_of(6))


def only_ranking(release: Release) -> Release:
    n_items = len(release.items)
    factors, biases = np.zeros((n_items, 0), np.float32), np.zeros(n_items, np.float32)
    return dataclasses.replace(release, item_factors=factors, item_biases=biases)


def dense(ranking: Ranking) -> np.ndarray[Any, Any]:
    """Return the item-item matrix, over the whole catalogue."""
    B = ranking.left.astype(np.float64) @ ranking.right.T
    for j in range(len(B)):
        row = slice(ranking.indptr[j], ranking.indptr[j + 1])
        B[j, ranking.pairs[row]] += ranking.values[row]
    whole = np.zeros((len(ranking.popularity),) * 2)
    whole[np.ix_(ranking.items, ranking.items)] = B
    return whole


def test_scores_are_those_of_the_item_item_matrix_and_the_rest_follows_by_popularity(ranking_of: Rankings) -> None:
    ranking, rng = ranking_of(50, n_pairs=4), np.random.default_rng(3)
    ranking.check(50)
    for _ in range(5):
        positions = np.sort(rng.choice(50, 12, replace=False))
        weights = ranking.weigh(rng.uniform(1, 5, 12).round(), highest=5.0)
        owned = np.zeros(50)
        owned[positions] = weights
        expected = owned @ dense(ranking)
        scores = ranking.scores(positions, weights)
        np.testing.assert_allclose(scores[ranking.items], expected[ranking.items], rtol=1e-4, atol=1e-5)
        order = ranking.order[np.argsort(-scores[ranking.order], kind="stable")]
        assert set(order[: len(ranking.items)]) == set(ranking.items.tolist())
        assert (np.diff(ranking.popularity[order[len(ranking.items) :]]) <= 0).all()


def test_weights_rise_from_the_threshold_to_the_highest_rating(ranking_of: Rankings) -> None:
    ranking = ranking_of(6)
    assert ranking.weigh(np.array([1, 2.9, 3, 4, 5]), 5.0).tolist() == [0, 0, 0.25, 0.625, 1]
    at_the_top = dataclasses.replace(ranking, threshold=5.0)
    assert at_the_top.weigh(np.array([4.5, 5.0]), 5.0).tolist() == [0, 1]
    tenths = dataclasses.replace(ranking, threshold=4.1)  # not a number that 32 bits can hold
    assert tenths.weigh(np.array([4.0, 4.1], np.float32), 5.0).tolist() == [0, 0.25]


def test_nothing_known_is_popularity_and_so_are_ties(ranked: Release) -> None:
    assert ranked.ranking is not None
    ids = [ranked.items.ids[place] for place in ranked.ranking.order]
    assert [one.item for one in ranked.fold_in({}).recommend(6)] == ids
    outside = next(place for place in range(6) if ranked.ranking.places[place] < 0)
    for ratings in (
        {ranked.items.ids[outside]: 5},
        {ranked.items.ids[ranked.ranking.items[0]]: 1},
    ):  # not in the head, too low
        found = ranked.fold_in(ratings).recommend(6, include_rated=True)
        assert [one.item for one in found] == ids
    flat = dataclasses.replace(
        ranked.ranking, left=np.zeros_like(ranked.ranking.left), values=ranked.ranking.values * 0
    )
    tied = dataclasses.replace(
        ranked, ranking=dataclasses.replace(flat, popularity=np.array([1, 2, 2, 1, 3, 0], np.float32))
    )
    head = set(flat.items.tolist())
    expected = sorted([4, 1, 2, 0, 3, 5], key=lambda place: place not in head)
    mine = tied.fold_in({tied.items.ids[flat.items[0]]: 5})
    assert [one.item for one in mine.recommend(6, include_rated=True)] == [tied.items.ids[place] for place in expected]


def test_recommendations_have_a_score_and_the_expected_rating(ranked: Release) -> None:
    mine = ranked.fold_in({10: 5, 30: 4})
    found = mine.recommend(4)
    predicted = mine.predict([one.item for one in found]).tolist()
    assert [one.rating for one in found] == pytest.approx(predicted, abs=1e-4)
    assert found[0].to_json().keys() == {"item", "title", "score", "rating"}
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    plain = dataclasses.replace(ranked, ranking=None).fold_in({10: 5, 30: 4}).recommend(4)
    assert plain[0].to_json().keys() == {"item", "title", "score"}
    assert [one.item for one in mine.recommend(2, only=[40, 60])] == [one.item for one in found if one.item in (40, 60)]


def test_similar_items_are_those_that_an_owner_of_one_would_get(ranked: Release) -> None:
    assert ranked.ranking is not None
    known, unknown = ranked.ranking.items[1], np.flatnonzero(ranked.ranking.places < 0)[0]
    found = ranked.similar_items(ranked.items.ids[known], 3)
    row = dense(ranked.ranking)[known]
    others = [place for place in ranked.ranking.items.tolist() if place != known]
    expected = sorted(others, key=lambda place: -row[place])[:3]
    assert [one.item for one in found] == [ranked.items.ids[place] for place in expected]
    np.testing.assert_allclose([one.score for one in found], row[expected], atol=1e-4)
    of_ratings = dataclasses.replace(ranked, ranking=None)
    one = ranked.items.ids[unknown]
    assert ranked.similar_items(one) == of_ratings.similar_items(one)
    assert only_ranking(ranked).similar_items(one) == []


def test_a_release_that_only_ranks_predicts_nothing(ranked: Release) -> None:
    alone = only_ranking(ranked)
    assert (ranked.predicts, ranked.ranks, alone.predicts, alone.ranks) == (True, True, False, True)
    mine, both = alone.fold_in({10: 5, 30: 4}), ranked.fold_in({10: 5, 30: 4})
    with pytest.raises(InvalidArgument, match="only ranks items"):
        mine.predict([20])
    with pytest.raises(InvalidArgument, match="only ranks items"):
        Profiles.from_release(alone, Budget(1.0), public=True)
    assert repr(alone) == "Release(6 items, 0 factors, Ranking(4 of 6 items, 3 factors, 8 pairs), guarantee none)"
    assert [one._replace(rating=None) for one in both.recommend(6)] == mine.recommend(6)


def test_implicit_feedback_weighs_one(ranked: Release) -> None:
    implicit = dataclasses.replace(only_ranking(ranked), scale=Scale(0, 1), mean=0.0, feedback="implicit")
    assert ranked.ranking is not None
    scores = ranked.ranking.scores(np.array([0, 2]), np.ones(2))
    found = implicit.fold_in([10, 30]).recommend(4)
    assert [one.score for one in found] == pytest.approx(
        [scores[implicit.items.find(one.item)] for one in found], abs=1e-4
    )


@pytest.fixture(scope="module")
def crowd() -> tuple[Ratings, Ratings]:
    return make(150, 40, mean_ratings=12).split(0.3)


def ranking_model(ratings: Ratings, ranking: Ranking, release: Release, n_factors: int = 3) -> Model:
    rng, n_items = np.random.default_rng(1), ratings.n_items
    release = dataclasses.replace(
        release, items=ratings.catalogue, scale=ratings.scale, mean=3.0, ranking=ranking,
        item_factors=rng.normal(size=(n_items, n_factors)).astype(np.float32),
        item_biases=np.zeros(n_items, np.float32),
    )  # fmt: skip
    n_users, weights = len(ratings.user_ids), release.weigh(ratings.values)
    factors, biases = rng.normal(size=(n_users, n_factors)).astype(np.float32), np.zeros(n_users, np.float32)
    return Model(release, ratings.user_ids, factors, biases, ratings.indptr, ratings.items, seen_weights=weights)


@pytest.mark.parametrize("choice", [{}, {"include_rated": True}, {"most_per_genre": 1, "exclude": [2]}])
def test_many_get_what_each_would_get_alone(
    crowd: tuple[Ratings, Ratings], ranking_of: Rankings, release: Release, choice: dict[str, Any]
) -> None:
    model = ranking_model(crowd[0], ranking_of(40), release)
    one, four = (model.recommend_batch(k=5, n_threads=n_threads, **choice) for n_threads in (1, 4))
    np.testing.assert_array_equal(one.positions, four.positions)
    np.testing.assert_array_equal(one.scores, four.scores)
    for user, many in zip(model.user_ids, one, strict=True):
        alone = model.recommend(user, 5, **choice)
        assert [entry.item for entry in many] == [entry.item for entry in alone]
        for name in ("score", "rating"):
            values = [getattr(entry, name) for entry in alone]
            assert [getattr(entry, name) for entry in many] == pytest.approx(values, abs=2e-4)
    users = [model.user_ids[number] for number in (7, 3, 7)]
    some = model.recommend_batch(users, 5, **choice)
    assert some[0] == some[2] == one[7]


def test_a_model_that_ranks_comes_back(
    crowd: tuple[Ratings, Ratings], ranking_of: Rankings, release: Release, tmp_path: Any
) -> None:
    model = ranking_model(crowd[0], ranking_of(40), release)
    model.save(tmp_path / "model")
    assert list(Model.load(tmp_path / "model").recommend_batch(k=3)) == list(model.recommend_batch(k=3))
    dataclasses.replace(model, seen_weights=model.seen_weights * np.float32(2)).save(tmp_path / "heavy")  # type: ignore[operator]
    with pytest.raises(DamagedFile, match="from 0 to 1"):
        Model.load(tmp_path / "heavy")


def test_ranking_figures_come_from_the_ranking_and_errors_from_the_rating_model(
    crowd: tuple[Ratings, Ratings], ranking_of: Rankings, release: Release
) -> None:
    train, test = crowd
    model = ranking_model(train, ranking_of(40), release)
    figures = evaluate(model, test, known=train)
    plain = evaluate(
        dataclasses.replace(model, release=dataclasses.replace(model.release, ranking=None)), test, known=train
    )
    assert figures["rmse"] == plain["rmse"]
    assert figures["recall@10"] != plain["recall@10"]
    alone = evaluate(only_ranking(model.release), test, known=train)
    assert alone == {name: value for name, value in figures.items() if "@" in name}
    with pytest.raises(InvalidArgument, match="only ranks items"):
        prediction_errors(dataclasses.replace(model, release=only_ranking(model.release)), test)


def test_what_people_have_is_needed(ranked: Release) -> None:
    nobody = np.zeros((1, 2), np.float32), np.zeros(1, np.float32), np.zeros(2, np.int64), np.zeros(0, np.int32)
    with pytest.raises(InvalidArgument, match="give it as rated"):
        recommend_many(ranked, *nobody, 3)
    owned = Csr(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    assert len(recommend_many(ranked, *nobody, 3, rated=owned)[0]) == 3


@pytest.mark.parametrize(("n_rows", "n_factors"), [(0, 0), (4, 0), (1, 1), (30, 7), (50, 20)])
def test_packing_is_close_and_happens_once(n_rows: int, n_factors: int) -> None:
    rng = np.random.default_rng(n_rows)
    spread = np.exp(rng.normal(0, 1, (n_rows, 1))) * np.exp(rng.normal(0, 4, n_factors))
    matrix = (spread * rng.normal(size=(n_rows, n_factors))).astype(np.float32)
    matrix[: n_rows // 5] = 0
    back = unpack(*pack(matrix), n_factors)
    off = np.abs(back - matrix) / np.maximum(spread, 1e-30)
    assert off.max(initial=0) < 0.02
    assert np.sqrt(np.mean(np.square(off))) < 2e-3 if off.size else True
    np.testing.assert_array_equal(unpack(*pack(back), n_factors), back)


def test_a_rounded_ranking_does_not_change_again(ranking_of: Rankings) -> None:
    large = ranking_of(30, values=np.array([*np.geomspace(1e-30, 1e30, 39), -1e30], np.float32))
    for name in ("left", "right", "values"):
        np.testing.assert_array_equal(getattr(rounded(large), name), getattr(large, name))
