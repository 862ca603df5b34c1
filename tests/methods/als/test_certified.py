"""Private alternating least squares as a whole: what it refuses, promises, keeps, and is good for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.errors import InvalidArgument
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods.als import ALS
from dpmf.methods.verification import verify_release
from dpmf.model import Model, Release
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.subset import select_users
from dpmf.ratings.synthetic import make


def learner(epsilon: float = 5.0, **fields: Any) -> ALS:
    budget = Budget(epsilon, neighbours=fields.pop("neighbours", "add-remove"))
    return ALS(**{"n_factors": 3, "n_epochs": 3, "budget": budget, **fields})


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(211, 40, mean_ratings=12)


@pytest.fixture(scope="module")
def model(ratings: Ratings) -> Model:
    return learner().fit(ratings, n_threads=2)


def bits(model: Model) -> tuple[bytes, ...]:
    release = model.release
    return release.item_factors.tobytes(), release.item_biases.tobytes()


# What it refuses


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cap": 0}, "cap=0"),
        ({"regularization": 0.0}, "regularization=0"),
        ({"moments": "both"}, "moments='both'"),
    ],
)
def test_a_field_that_makes_no_sense_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        learner(**fields)


def test_a_budget_per_rating_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="unit='rating'"):
        ALS(budget=Budget(1.0, unit="rating"))


def test_too_many_factors_for_a_private_run_are_refused(ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="n_factors=257"):
        learner(n_factors=257).fit(ratings)


def test_more_rounds_than_could_be_any_use_are_refused_at_once(ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="n_epochs=2000000000"):
        learner(n_epochs=2_000_000_000).fit(ratings)


# What stays the same


def test_whoever_asks_for_no_epsilon_at_all_leaves_no_trace() -> None:
    everybody = make(300, 20, mean_ratings=8)
    others = select_users(everybody, np.delete(np.arange(300), 7))
    for moments in ("shared", "per-item"):
        method = learner(20.0, noise_seed=5, moments=moments)
        left_out = method.fit(everybody, user_budgets={everybody.user_ids[7]: 0.0, "nobody": 1.0})
        assert bits(left_out) == bits(method.fit(others))
        assert bits(left_out) != bits(method.fit(everybody))
    assert any("chose their own epsilon" in one for one in left_out.guarantee.assumptions)


@pytest.mark.parametrize(("factor", "scale"), [(25.0, (0.0, 100.0)), (0.25, (0.0, 1.0))])
def test_another_unit_of_ratings_gives_the_same_model_in_that_unit(
    ratings: Ratings, factor: float, scale: tuple[float, float]
) -> None:
    users, items = ratings.user_ids.array[ratings.users], ratings.catalogue.ids.array[ratings.items]
    values = (ratings.values - 1) * factor
    other = Ratings.of(users, items, values, scale=scale, items=ratings.catalogue)
    method = learner(20.0, noise_seed=2)
    one, scaled = method.fit(ratings), method.fit(other)
    assert scaled.release.mean == pytest.approx(factor * (one.release.mean - 1))
    for name in ("item_biases", "item_factors"):
        ours, theirs = getattr(scaled.release, name), factor * getattr(one.release, name)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-3 * factor)
    user = ratings.user_ids[5]
    everything = ratings.catalogue.ids
    np.testing.assert_allclose(
        scaled.predict(user, everything), factor * (one.predict(user, everything) - 1), rtol=0, atol=5e-3 * factor
    )


def test_half_stars_are_fine() -> None:
    users, items = np.divmod(np.arange(400), 20)
    half = Ratings.of(users, items, (users + items) % 10 / 2 + 0.5, scale=(0.5, 5), items=range(20))
    model = learner().fit(half)
    assert model.release.mean == 2.75
    assert np.isfinite(model.predict(3, range(20))).all()


# What it is good for


@pytest.mark.parametrize("fields", [{}, {"n_factors": 0}])
def test_a_release_is_as_useful_when_it_comes_back(tmp_path: Path, ratings: Ratings, fields: dict[str, Any]) -> None:
    model = learner(**fields).fit(ratings)
    model.release.save(tmp_path / "release")
    back = Release.load(tmp_path / "release")
    first, second, *_ = ratings.catalogue.ids
    mine = {first: 5.0, second: 1.0}
    assert back.guarantee == model.guarantee
    assert back.n_measured_factors == fields.get("n_factors", 3)
    assert back.fold_in(mine).recommend(5) == model.release.fold_in(mine).recommend(5)
    assert len(back.fold_in(mine).recommend(100)) == ratings.n_items - 2
    own, liked = ratings.user_ids[0], model.recommend(ratings.user_ids[0], k=100)
    rated = {ratings.catalogue.ids[int(item)] for item in ratings.of_user(0)[0]}
    assert not rated & {one.item for one in liked}
    assert np.isfinite(model.predict(own, ratings.catalogue.ids)).all()


def test_somebody_folded_in_gets_the_factors_they_had_in_training(ratings: Ratings, model: Model) -> None:
    for user in (0, 17):
        items, values = ratings.of_user(user)
        ids = [ratings.catalogue.ids[int(item)] for item in items]
        person = model.release.fold_in(dict(zip(ids, values.tolist(), strict=True)))
        everything = ratings.catalogue.ids
        np.testing.assert_allclose(
            person.predict(everything), model.predict(ratings.user_ids[user], everything), atol=1e-3
        )


def test_biases_alone_take_no_rounds(ratings: Ratings) -> None:
    model = learner(n_factors=0).fit(ratings)
    assert model.history == ()
    assert model.release.n_measured_factors == 0
    assert verify(model.guarantee).ok


def test_a_large_budget_beats_the_free_baseline() -> None:
    train, test = make(3000, 300, mean_ratings=50).split(0.1, seed=2)
    free = rmse(baseline_errors(train, test))
    private = learner(20.0, n_factors=4, n_epochs=5, noise_seed=1).fit(
        train
    )  # a seed, so that it never fails by chance
    assert rmse(prediction_errors(private, test)) < 0.95 * free


@pytest.mark.parametrize("feedback", ["explicit", "implicit"])
def test_the_number_of_users_as_released_decides_how_many_factors_there_are(feedback: Any) -> None:
    ratings = make(3000, 12, mean_ratings=6)
    few, many = (
        ALS(budget=Budget(epsilon), n_epochs=1, feedback=feedback).fit(ratings).release for epsilon in (0.5, 40.0)
    )
    assert few.n_measured_factors < many.n_measured_factors
    for release in (few, many):
        assert release.configuration["n_factors"] == release.n_measured_factors
        sums = next(one for one in release.guarantee.events if one.what == "item factors")
        assert isinstance(sums, GaussianEvent)
        assert sums.coordinates >= 12 * (many.n_measured_factors + 1)  # as many as there may be


def test_where_people_have_few_ratings_no_factors_are_measured_and_their_own_mean_counts_more() -> None:
    few, many = (
        ALS(budget=Budget(20.0), n_epochs=1).fit(make(1500, 60, mean_ratings=n), n_threads=1).release for n in (4, 45)
    )
    assert not few.item_factors[:, : few.n_measured_factors].any()
    assert many.item_factors[:, : many.n_measured_factors].any()
    assert few.n_measured_factors == many.n_measured_factors  # what the number of users asks for
    assert few.ridge.bias < many.ridge.bias
    for release in (few, many):
        assert verify_release(release).ok


def test_too_few_people_for_any_factors_still_get_item_biases() -> None:
    model = ALS(budget=Budget(0.5)).fit(make(150, 20, mean_ratings=8))
    assert model.release.configuration["n_factors"] == 0
    assert not model.release.item_factors[:, : model.release.n_measured_factors].any()
    assert verify(model.release.guarantee).ok
    assert len(model.release.fold_in({1: 5.0}).recommend(k=3)) == 3


def test_as_many_factors_as_asked_for_are_released() -> None:
    assert ALS(budget=Budget(0.5), n_factors=5, n_epochs=1).fit(make(100, 40)).release.n_measured_factors == 5
