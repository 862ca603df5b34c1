"""One person's side: fold-in by the closed form, predictions, recommendations, and clear refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpmf.errors import InvalidArgument, UnknownId
from dpmf.kernels.ridge import Penalties, solve_person
from dpmf.methods import SGD
from dpmf.model import Release, Ridge
from dpmf.model.person import fold_in_many
from dpmf.ratings import Items
from dpmf.ratings.synthetic import make

MINE = {10: 5, 20: 4, 30: 1}


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
def test_fold_in_is_the_ridge_regression_with_a_bias(release: Release, exponent: float) -> None:
    release = replace(release, ridge=Ridge(0.5, 0.25, exponent))
    person = release.fold_in(MINE)
    # minimise |r - mean - c - b - Vu|² + n (0.5 b² + 0.25 |u|²), n = 3 if per rating and 1 otherwise
    Z = np.c_[np.ones(3), release.item_factors[:3]]
    rest = np.array([5, 4, 1]) - release.mean - release.item_biases[:3]
    penalty = np.diag([0.5, 0.25, 0.25]) * 3**exponent
    expected = np.linalg.inv(Z.T @ Z + penalty) @ Z.T @ rest
    np.testing.assert_allclose([person.bias, *person.factors], expected, rtol=1e-4, atol=1e-6)
    assert person.rated.tolist() == [0, 1, 2]


def test_prediction_is_mean_and_biases_and_factors(release: Release) -> None:
    person = release.fold_in(MINE)
    by_hand = release.mean + person.bias + release.item_biases[5] + release.item_factors[5] @ person.factors
    assert person.predict([60])[0] == pytest.approx(by_hand, rel=1e-5)
    assert person.predict([]).tolist() == []


def test_predictions_and_scores_stay_within_the_scale(release: Release) -> None:
    loud = replace(release, item_biases=100 * release.item_biases)
    person = loud.fold_in({10: 3})
    assert person.predict([20, 30, 60]).tolist() == [1.0, 5.0, 5.0]
    assert [one.score for one in person.recommend(k=2)] == [5.0, 5.0]
    assert [one.item for one in person.recommend(k=2)] == [60, 30]  # ordered by what they were before clamping


def test_somebody_without_ratings_is_average(release: Release) -> None:
    nobody = release.fold_in({})
    assert nobody.bias == 0
    np.testing.assert_allclose(nobody.predict([10, 20]), release.mean + release.item_biases[:2], rtol=1e-6)


def test_fewer_ratings_than_factors_have_an_answer_even_without_a_penalty(release: Release) -> None:
    person = replace(release, ridge=Ridge(0.0, 0.0)).fold_in({10: 5})
    assert person.predict([10])[0] == pytest.approx(5, abs=1e-3)
    assert np.isfinite(person.factors).all()


def test_ids_come_before_titles(release: Release) -> None:
    items = Items.of([10, 20, 30, 40, 50, 60], ["20", "Alien (1979)", "c", "d", "e", "f"])
    person = replace(release, items=items).fold_in({"20": 4})
    assert person.rated.tolist() == [1]


def test_titles_and_the_text_of_ids_are_found(release: Release) -> None:
    by_id, by_text, by_title = (release.fold_in({key: 5}) for key in (60, "60", "七人の侍"))
    assert by_id.rated.tolist() == by_text.rated.tolist() == by_title.rated.tolist() == [5]
    assert by_id.bias == by_text.bias == by_title.bias


def test_a_title_of_several_items_is_refused(release: Release) -> None:
    with pytest.raises(InvalidArgument, match="'Up' is the title of several items: use the id"):
        release.fold_in({"Up": 3})
    assert release.fold_in({40: 3}).rated.tolist() == [3]


def test_an_item_rated_by_id_and_by_title_is_refused(release: Release) -> None:
    with pytest.raises(InvalidArgument, match="rated twice"):
        release.fold_in({10: 3, "Heat (1995)": 4})


def test_items_outside_the_catalogue_are_reported_and_left_out(release: Release) -> None:
    person = release.fold_in({**MINE, 999: 5, "Gremlins": 2})
    assert person.unknown == (999, "Gremlins")
    np.testing.assert_array_equal(person.factors, release.fold_in(MINE).factors)
    with pytest.raises(InvalidArgument, match=r"none of the rated items is in the catalogue .*'Gremlins'"):
        release.fold_in({"Gremlins": 2})


@pytest.mark.parametrize("value", [0.5, 5.01, float("nan"), float("inf"), "4", None])
def test_a_rating_off_the_scale_is_refused(release: Release, value: object) -> None:
    with pytest.raises(InvalidArgument, match=rf"the rating {value!r} of 10 is not on the scale 1:5"):
        release.fold_in({10: value})


def test_recommended_are_the_best_of_what_is_not_rated(release: Release) -> None:
    person = release.fold_in(MINE)
    expected = sorted([40, 50, 60], key=lambda item: -person.predict([item])[0])
    found = person.recommend(k=10)
    assert [one.item for one in found] == expected
    assert [one.score for one in found] == pytest.approx(sorted(person.predict([40, 50, 60]), reverse=True), abs=1e-4)
    assert [one.title for one in found] == [release.items.titles[item // 10 - 1] for item in expected]
    assert person.recommend(k=2) == found[:2]


def test_choices_narrow_what_is_recommended(release: Release) -> None:
    person = release.fold_in(MINE)
    assert {one.item for one in person.recommend(include_rated=True)} == {10, 20, 30, 40, 50, 60}
    assert {one.item for one in person.recommend(exclude=["七人の侍", 50])} == {40}
    assert {one.item for one in person.recommend(only=[10, 50, 60], exclude=[60])} == {50}
    assert {one.item for one in person.recommend(only=[10, 50], include_rated=True)} == {10, 50}
    assert person.recommend(only=[]) == []
    assert person.recommend(only=[10]) == []


def test_genres_narrow_what_is_recommended(release: Release) -> None:
    person = release.fold_in({40: 3})
    assert {one.item for one in person.recommend(only_genres=["Space", "Crime"])} == {10, 20}
    assert {one.item for one in person.recommend(exclude_genres=["Space", "Crime"])} == {30, 50, 60}
    assert person.recommend(only_genres=["Space"], exclude_genres=["Horror"]) == []
    crowded = replace(release, items=Items.of(release.items.ids, genres=["a", "a|b", "b", "a", "", "c|b"]))
    ranking = [one.item for one in crowded.fold_in({}).recommend()]
    assert ranking == [60, 10, 30, 50, 40, 20]
    assert [one.item for one in crowded.fold_in({}).recommend(most_per_genre=1)] == [60, 10, 50]
    assert [one.item for one in crowded.fold_in({}).recommend(4, most_per_genre=2)] == [60, 10, 30, 50]
    assert [one.item for one in crowded.fold_in({60: 3}).recommend(most_per_genre=1, exclude=[50])] == [10, 30]


@pytest.mark.parametrize("k", [0, -1])
def test_fewer_than_one_item_is_refused(release: Release, k: int) -> None:
    for ask in (release.fold_in(MINE).recommend, lambda k: release.similar_items(10, k)):
        with pytest.raises(InvalidArgument, match=f"k={k}"):
            ask(k)


def test_unknown_items_are_refused_with_a_suggestion(release: Release) -> None:
    person = release.fold_in(MINE)
    with pytest.raises(UnknownId, match=r"item 'alien' is not in the catalogue: did you mean 'Alien \(1979\)'\?"):
        person.predict(["alien"])
    with pytest.raises(UnknownId, match="item 77 is not in the catalogue: use an id or an exact title"):
        person.recommend(exclude=[77])
    with pytest.raises(UnknownId, match="item 'q' is not in the catalogue"):
        person.recommend(only=["q"])
    with pytest.raises(UnknownId, match="item 77 is not in the catalogue"):
        release.similar_items(77)


def test_similar_items_have_the_largest_cosine(release: Release) -> None:
    unit = release.item_factors / np.linalg.norm(release.item_factors, axis=1, keepdims=True)
    cosines = unit @ unit[0]
    found = release.similar_items("Heat (1995)", k=3)
    assert [one.item for one in found] == [20, 40, 50]
    assert [one.score for one in found] == pytest.approx([cosines[1], cosines[3], cosines[4]], abs=1e-4)
    assert len(release.similar_items(10, k=100)) == 5


def test_an_item_without_factors_is_similar_to_nothing(release: Release) -> None:
    factors = release.item_factors.copy()
    factors[0] = 0
    assert replace(release, item_factors=factors).similar_items(10) == []


@pytest.mark.parametrize("n_threads", [1, 4])
def test_many_people_are_folded_in_like_one(n_threads: int) -> None:
    ratings = make(700, 50, mean_ratings=10)
    release = SGD(n_factors=4, n_epochs=2).fit(ratings).release
    biases, factors = fold_in_many(release, ratings.indptr, ratings.items, ratings.values, n_threads)
    penalties = Penalties(release.ridge.bias, release.ridge.factors, release.ridge.exponent)
    for user in (0, 255, 256, 699):
        items, values = ratings.of_user(user)
        V, c, mean = release.item_factors, release.item_biases, release.mean
        expected = solve_person(items, values, V, c, mean, penalties)
        np.testing.assert_allclose([biases[user], *factors[user]], expected, rtol=1e-3, atol=1e-5)
