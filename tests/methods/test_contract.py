"""What every method must do: one set of tests, on ratings whose answer is known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from dpmf.errors import InvalidArgument
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import METHODS, Method, configure
from dpmf.model import Model, Release
from dpmf.privacy import Budget
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

N = 40  # users, and items, of the checkerboard

every_method = pytest.mark.parametrize("method", METHODS)
every_factorization = pytest.mark.parametrize("method", [name for name in METHODS if name != "ease"])


def checkerboard() -> Ratings:
    """Return ratings in which even users love even items, odd users odd ones, and hate the others."""
    users, items = np.divmod(np.arange(N * N), N)
    return Ratings.of(users, items, np.where((users + items) % 2 == 0, 5, 1), scale=(1, 5))


def learner(method: str, **settings: object) -> Method:
    """Return a method that is not private, with those of the settings that it has."""
    budget = {} if method == "sgd" else {"budget": Budget(math.inf)}
    turns = {} if method == "ease" else {"n_factors": 4, **settings}
    return configure(method, {"seed": 1, **budget, **turns})


@pytest.fixture(scope="module", params=METHODS)
def taught(request: pytest.FixtureRequest) -> tuple[Model, Ratings]:
    """Return a model of the checkerboard, and the fifth of the cells that it has not seen."""
    train, held_out = checkerboard().split(0.2, seed=3)
    return learner(request.param, n_epochs=60).fit(train, n_threads=2), held_out


def test_cells_never_seen_are_predicted_right(taught: tuple[Model, Ratings]) -> None:
    model, held_out = taught
    if not model.release.predicts:
        return  # it ranks, as the next test says
    errors = np.abs(prediction_errors(model, held_out))
    assert len(errors) > 200
    assert errors.max() < 2.0  # nobody is taken for a member of the other class
    assert errors.mean() < 0.5


def test_recommended_are_items_of_the_right_class(taught: tuple[Model, Ratings]) -> None:
    model, held_out = taught
    for user in range(N):
        unseen = held_out.of_user(user)[0]
        liked = {int(item) for item in unseen if (user + item) % 2 == 0}
        best = model.recommend(user, k=N)[: len(liked)]
        assert {one.item for one in best} == liked


def test_similar_are_items_of_the_same_class(taught: tuple[Model, Ratings]) -> None:
    model, _ = taught
    for item in (0, 1, 17, N - 1):
        if model.release.ranks:  # given all other items, one may say little of another
            assert all(int(one.item) % 2 == item % 2 for one in model.similar_items(item, k=5))
            continue
        near = model.similar_items(item, k=N // 2 - 1)
        assert {one.item for one in near} == {other for other in range(N) if other % 2 == item % 2 and other != item}


def test_a_newcomer_folded_in_gets_items_of_their_class(taught: tuple[Model, Ratings]) -> None:
    model, _ = taught
    newcomer = model.release.fold_in({0: 5, 1: 1, 2: 5, 3: 1})
    assert all(int(one.item) % 2 == 0 for one in newcomer.recommend(k=10))


@every_factorization
def test_learning_beats_the_free_baseline(method: str) -> None:
    train, test = make(400, 100).split(0.1, seed=2)
    model = learner(method).fit(train)
    assert rmse(prediction_errors(model, test)) < 0.95 * rmse(baseline_errors(train, test))


@every_factorization
def test_a_model_says_what_was_done(method: str) -> None:
    model = learner(method, n_epochs=3).fit(checkerboard())
    assert [record.epoch for record in model.history] == [1, 2, 3]
    assert all(record.seconds > 0 and record.train_rmse > 0 for record in model.history)
    assert model.release.configuration["method"] == method
    assert model.release.configuration["n_epochs"] == 3
    assert model.guarantee is model.release.guarantee


@every_method
def test_a_release_predicts_the_same_when_it_comes_back_from_disk(method: str, tmp_path: Path) -> None:
    release = learner(method, n_epochs=5).fit(checkerboard()).release
    release.save(tmp_path / "release")
    mine = {0: 5.0, 1: 2.0}
    back = Release.load(tmp_path / "release")
    assert back.fold_in(mine).recommend(5) == release.fold_in(mine).recommend(5)
    assert back.configuration == release.configuration


@every_method
def test_ids_of_any_type_are_kept(method: str) -> None:
    ratings = Ratings.of(["ann", "bob", "ann"], ["Heat", "Heat", "Up"], [5, 3, 4], scale=(1, 5))
    model = learner(method, n_epochs=2).fit(ratings)
    assert [one.item for one in model.recommend("bob")] == ["Up"]


@every_method
def test_users_and_items_without_ratings_are_fine(method: str) -> None:
    ratings = Ratings.of([1, 1, 2], [1, 2, 3], [5, 1, 4], scale=(1, 5), items=range(6))
    train = ratings.select(np.array([True, True, False]))  # user 2 has nothing left to learn from
    model = learner(method, n_epochs=3).fit(train)
    for user in (1, 2):
        assert not model.release.predicts or np.isfinite(model.predict(user, range(6))).all()
        assert len(model.recommend(user, k=6, include_rated=True)) == 6


@every_method
def test_a_single_rating_is_enough(method: str) -> None:
    model = learner(method, n_epochs=3).fit(Ratings.of(["ann"], ["Heat"], [4], scale=(1, 5)))
    if model.release.predicts:
        assert model.predict("ann", ["Heat"]) == pytest.approx([4.0], abs=0.3)
    assert model.recommend("ann") == []


@every_method
def test_the_number_of_threads_is_checked(method: str) -> None:
    with pytest.raises(InvalidArgument, match="n_threads=0"):
        learner(method).fit(checkerboard(), n_threads=0)


def test_an_unknown_method_is_refused_with_a_choice() -> None:
    with pytest.raises(InvalidArgument, match=r"'svd' is not known: choose from .*sgd"):
        configure("svd", {})


@every_method
def test_an_unknown_setting_is_refused_with_a_choice(method: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"{method} has no setting 'speed': it has .*seed"):
        configure(method, {"speed": 9})


@every_factorization
def test_settings_given_as_text_are_read_as_numbers(method: str) -> None:
    assert learner(method, n_epochs="7") == learner(method, n_epochs=7)
