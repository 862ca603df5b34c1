"""Recommendations for many users at once equal those for one, for any number of threads."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpmf.errors import InvalidArgument, UnknownId
from dpmf.methods import SGD
from dpmf.model import Model, Recommendation
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make


@pytest.fixture(scope="module")
def model() -> Model:
    return SGD(n_factors=6, n_epochs=10).fit(make(200, 60, mean_ratings=15))


def agree(many: list[Recommendation], one: list[Recommendation]) -> None:
    """Compare two lists; scores are sums in different orders, so they agree up to rounding."""
    assert [(entry.item, entry.title) for entry in many] == [(entry.item, entry.title) for entry in one]
    assert [entry.score for entry in many] == pytest.approx([entry.score for entry in one], abs=2e-4)


@pytest.mark.parametrize("n_threads", [1, 4])
def test_all_users_get_what_each_would_get_alone(model: Model, n_threads: int) -> None:
    batch = model.recommend_batch(k=5, n_threads=n_threads)
    assert len(batch) == len(model.user_ids) == 200
    for user, many in zip(model.user_ids, batch, strict=True):
        agree(many, model.recommend(user, k=5))


def test_the_number_of_threads_does_not_change_a_bit(model: Model) -> None:
    one, four = (model.recommend_batch(k=7, n_threads=n_threads) for n_threads in (1, 4))
    np.testing.assert_array_equal(one.positions, four.positions)
    np.testing.assert_array_equal(one.scores, four.scores)


@pytest.mark.parametrize(
    "choice",
    [
        {"include_rated": True},
        {"only": [1, 2, 3, 4]},
        {"exclude": [1, "The Silent Vault"]},
        {"k": 999},
        {"only_genres": ["Space", "Heist"], "exclude_genres": ["Comedy"]},
        {"most_per_genre": 1},
        {"most_per_genre": 2, "k": 999, "exclude": [1], "include_rated": True},
    ],
)
def test_some_users_with_a_choice_get_what_each_would_get_alone(model: Model, choice: dict[str, object]) -> None:
    users = ["person-00190", "person-00003", "person-00003"]
    batch = model.recommend_batch(users, **{"k": 6, **choice})  # type: ignore[arg-type]
    for place, user in enumerate(users):
        agree(batch[place], model.recommend(user, **{"k": 6, **choice}))  # type: ignore[arg-type]


def test_short_lists_are_marked_in_the_arrays(model: Model) -> None:
    batch = model.recommend_batch(["person-00000"], k=3, only=[1, 2], include_rated=True)
    assert batch.positions.shape == (1, 3)
    assert sorted(batch.positions[0].tolist()) == [-1, 0, 1]
    assert batch.scores[0, 2] == 0.0


def test_limits_on_genres_hold_for_everybody(model: Model) -> None:
    one, four = (model.recommend_batch(k=60, most_per_genre=2, n_threads=n_threads) for n_threads in (1, 4))
    np.testing.assert_array_equal(one.positions, four.positions)
    np.testing.assert_array_equal(one.scores, four.scores)
    genres = [set(text.split("|")) for text in model.release.items.genres]
    for row, unlimited in zip(one.positions, model.recommend_batch(k=60).positions, strict=True):
        listed = [genre for place in row[row >= 0] for genre in genres[place]]
        assert max(map(listed.count, listed)) == 2
        assert (np.diff([unlimited.tolist().index(place) for place in row[row >= 0]]) > 0).all()
    assert (one.scores[one.positions < 0] == 0).all()


def test_nobody_asked_nobody_served(model: Model) -> None:
    assert list(model.recommend_batch([], k=3)) == []


def test_unknown_users_are_told_what_to_do(model: Model) -> None:
    for ask in (model.recommend, model.person, lambda user: model.recommend_batch([user])):
        with pytest.raises(UnknownId, match="user 'eve' was not in the training ratings: fold them in"):
            ask("eve")


def test_fewer_than_one_item_is_refused(model: Model) -> None:
    with pytest.raises(InvalidArgument, match="k=0"):
        model.recommend_batch(k=0)


def test_a_users_profile_is_the_one_learnt(model: Model) -> None:
    person = model.person("person-00007")
    np.testing.assert_array_equal(person.factors, model.user_factors[7])
    assert model.predict("person-00007", [1])[0] == person.predict([1])[0]


def test_seen_items_out_of_order_are_refused() -> None:
    ratings = Ratings.of([1, 1], [1, 2], [5, 4], scale=(1, 5))
    model = SGD(n_factors=2, n_epochs=1).fit(ratings)
    turned = dataclasses.replace(model, seen_items=model.seen_items[::-1].copy())
    with pytest.raises(InvalidArgument, match="ascending order"):
        turned.recommend_batch(k=1)
