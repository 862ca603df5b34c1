"""Private alternating least squares as a whole: what it refuses, promises, keeps, and is good for."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods.als import ALS
from dpmf.model import Model, Release
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.noise import Noise
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


def test_a_missing_budget_is_refused_with_both_choices() -> None:
    with pytest.raises(InvalidArgument, match=r"budget=None.*Budget\(epsilon\).*Budget\(math.inf\)"):
        ALS()
    with pytest.raises(InvalidArgument, match=r"budget=1\.0"):
        ALS(budget=1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"n_factors": -1}, "n_factors=-1"),
        ({"n_factors": 2.5}, "n_factors=2.5"),
        ({"n_epochs": 0}, "n_epochs=0"),
        ({"cap": 0}, "cap=0"),
        ({"regularization": 0.0}, "regularization=0"),
        ({"regularization": math.nan}, "regularization=nan"),
        ({"moments": "both"}, "moments='both'"),
        ({"seed": -1}, "seed=-1"),
        ({"noise_seed": -1}, "noise_seed=-1"),
        ({"items_public": "false"}, "items_public='false'"),  # a text is true, whatever it says
        ({"items_public": 1}, "items_public=1"),
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


def test_a_scale_found_in_the_data_is_refused() -> None:
    found = Ratings.of([1, 1, 2], [1, 2, 1], [5, 1, 4], items=range(3))
    with pytest.raises(InvalidArgument, match="scale that is declared"):
        learner().fit(found)


def test_a_catalogue_found_in_the_data_is_refused_or_recorded() -> None:
    found = Ratings.of([1, 1, 2], [1, 2, 1], [5, 1, 4], scale=(1, 5))
    with pytest.raises(InvalidArgument, match="public catalogue"):
        learner().fit(found)
    asserted = learner(items_public=True).fit(found).guarantee
    assert any("taken from the data" in one for one in asserted.assumptions)
    declared = Ratings.of([1, 1, 2], [1, 2, 1], [5, 1, 4], scale=(1, 5), items=range(3))
    assert not any("taken from the data" in one for one in learner().fit(declared).guarantee.assumptions)


def test_refusals_come_before_any_noise(monkeypatch: pytest.MonkeyPatch, ratings: Ratings) -> None:
    monkeypatch.setattr(Noise, "integers", never)
    with pytest.raises(InvalidArgument):
        learner().fit(ratings, user_budgets={"person-00001": -1.0})


def never(*_: object) -> None:
    raise AssertionError("noise was drawn")


# What it promises


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("moments", ["shared", "per-item"])
def test_the_guarantee_can_be_verified_and_keeps_within_the_budget(
    ratings: Ratings, neighbours: str, moments: str
) -> None:
    guarantee = learner(2.0, neighbours=neighbours, moments=moments).fit(ratings).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit) == ("certified", True, "user")
    assert guarantee.neighbours == neighbours
    verdict = verify(guarantee)
    assert verdict.ok
    assert verdict.recomputed_epsilon is not None
    assert verdict.recomputed_epsilon <= 2.0
    assert guarantee.epsilon is not None
    assert verdict.recomputed_epsilon <= guarantee.epsilon <= 2.0


def test_noise_from_a_seed_is_not_certified_and_said_to_be_so(
    ratings: Ratings, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        guarantee = learner(noise_seed=3).fit(ratings).guarantee
    assert not guarantee.certified
    assert not guarantee.is_private
    assert guarantee.assumptions[0] == SEEDED
    assert str(guarantee).startswith("not private")
    assert SEEDED in caplog.text
    caplog.clear()
    learner().fit(ratings)
    assert not caplog.text


def test_a_private_release_tells_nothing_about_people(tmp_path: Path, ratings: Ratings, model: Model) -> None:
    model.release.save(tmp_path / "release")
    assert sorted(path.name for path in (tmp_path / "release").iterdir()) == ["release.json", "release.safetensors"]
    facts = json.loads((tmp_path / "release" / "release.json").read_text())
    facts.pop("items")
    facts.pop("sha256")
    facts.pop("digest")
    numbers = set(numbers_in(facts))
    for secret in (ratings.n_users, len(ratings), *(record.train_rmse for record in model.history)):
        assert secret not in numbers
    text = json.dumps(facts)
    assert "person-" not in text
    assert "noise_seed" not in text
    assert "budget" not in facts["configuration"]
    assert facts["mean"] == 3.0
    assert facts["configuration"]["method"] == "als"


def numbers_in(content: Any) -> list[float]:
    if isinstance(content, dict):
        return [number for value in content.values() for number in numbers_in(value)]
    if isinstance(content, list):
        return [number for value in content for number in numbers_in(value)]
    return [content] if isinstance(content, int | float) else []


def test_the_release_of_seeded_noise_does_not_tell_the_seed(tmp_path: Path, ratings: Ratings) -> None:
    learner(noise_seed=918273645).fit(ratings).release.save(tmp_path / "release")
    assert "918273645" not in (tmp_path / "release" / "release.json").read_text()


def test_logs_tell_nothing_about_people(ratings: Ratings, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="dpmf"):
        learner().fit(ratings)
    assert not [record for record in caplog.records if record.name.startswith("dpmf")]


def test_a_ledger_is_charged_what_the_guarantee_says(tmp_path: Path, ratings: Ratings) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(3.0))
    guarantee = learner(2.0).fit(ratings, ledger=ledger).guarantee
    assert guarantee.epsilon is not None
    assert ledger.spent() == pytest.approx(guarantee.epsilon, abs=1e-6)
    assert ledger.entries()[0].guarantee == guarantee


def test_a_ledger_at_its_cap_lets_no_noise_be_drawn(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(2.5))
    learner(2.0).fit(ratings, ledger=ledger)
    monkeypatch.setattr(Noise, "integers", never)
    with pytest.raises(BudgetExceeded, match="more than the cap"):
        learner(2.0).fit(ratings, ledger=ledger)
    assert len(ledger.entries()) == 1


def test_a_run_that_fails_stays_in_the_ledger(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger.json", Budget(3.0))
    monkeypatch.setattr(Noise, "integers", never)
    with pytest.raises(AssertionError):
        learner(2.0).fit(ratings, ledger=ledger)
    assert len(ledger.entries()) == 1


def test_seeded_noise_is_not_entered_as_a_finite_cost(tmp_path: Path, ratings: Ratings) -> None:
    with pytest.raises(BudgetExceeded):
        learner(2.0, noise_seed=1).fit(ratings, ledger=Ledger(tmp_path / "ledger.json", Budget(3.0)))


def test_a_callback_cannot_stop_a_run_whose_cost_is_fixed(ratings: Ratings) -> None:
    seen: list[int] = []

    def stop(record: Any) -> bool:
        seen.append(record.epoch)
        return True

    assert len(learner().fit(ratings, callbacks=[stop]).history) == 3
    assert seen == [1, 2, 3]


# What stays the same


@pytest.mark.parametrize("fields", [{}, {"moments": "per-item", "cap": 5}, {"n_factors": 0}])
def test_bits_do_not_depend_on_the_number_of_threads(ratings: Ratings, fields: dict[str, Any]) -> None:
    runs = [learner(noise_seed=7, **fields).fit(ratings, n_threads=n) for n in (1, 2, 3)]
    assert bits(runs[0]) == bits(runs[1]) == bits(runs[2])
    for run in runs[1:]:
        np.testing.assert_array_equal(run.user_factors, runs[0].user_factors)


def test_noise_is_new_in_every_run(ratings: Ratings) -> None:
    one, other = (learner().fit(ratings) for _ in range(2))
    assert bits(one) != bits(other)
    assert bits(learner(noise_seed=1).fit(ratings)) != bits(learner(noise_seed=2).fit(ratings))


def test_whoever_asks_for_no_epsilon_at_all_leaves_no_trace() -> None:
    everybody = make(300, 20, mean_ratings=8)
    others = select_users(everybody, np.delete(np.arange(300), 7))
    for moments in ("shared", "per-item"):
        method = learner(20.0, noise_seed=5, moments=moments)
        left_out = method.fit(everybody, user_budgets={everybody.user_ids[7]: 0.0, "nobody": 1.0})
        assert bits(left_out) == bits(method.fit(others))
        assert bits(left_out) != bits(method.fit(everybody))
    assert any("chose their own epsilon" in one for one in left_out.guarantee.assumptions)


def test_training_leaves_the_ratings_as_they_were(ratings: Ratings) -> None:
    before = ratings.values.copy(), ratings.items.copy(), ratings.indptr.copy()
    learner(cap=3).fit(ratings)
    for one, other in zip(before, (ratings.values, ratings.items, ratings.indptr), strict=True):
        np.testing.assert_array_equal(one, other)


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
    assert back.n_factors == fields.get("n_factors", 3)
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
    assert model.release.item_factors.shape == (ratings.n_items, 0)
    assert verify(model.guarantee).ok


@pytest.mark.parametrize("epsilon", [0.1, 20.0])
@pytest.mark.parametrize("fields", [{}, {"n_factors": 0}, {"moments": "per-item"}, {"n_epochs": 1, "cap": 1}])
def test_tiny_data_are_fine(epsilon: float, fields: dict[str, Any]) -> None:
    model = learner(epsilon, **fields).fit(make(1, 10))
    assert np.isfinite(model.release.item_factors).all()
    assert np.isfinite(model.release.item_biases).all()
    assert len(model.recommend("person-00000", k=10, include_rated=True)) == 10


def test_one_item_is_fine() -> None:
    model = learner().fit(Ratings.of([1, 2], [7, 7], [5, 1], scale=(1, 5), items=[7]))
    assert np.isfinite(model.predict(1, [7])).all()


def test_users_and_items_without_ratings_are_fine() -> None:
    ratings = Ratings.of([1, 1, 2], [1, 2, 3], [5, 1, 4], scale=(1, 5), items=range(6))
    model = learner().fit(ratings.select(np.array([True, True, False])))
    for user in (1, 2):
        assert np.isfinite(model.predict(user, range(6))).all()


def test_no_ratings_at_all_are_not_enough(ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="no ratings"):
        learner().fit(ratings.select(np.zeros(len(ratings), np.bool_)))


def test_a_large_budget_beats_the_free_baseline() -> None:
    train, test = make(3000, 300, mean_ratings=50).split(0.1, seed=2)
    free = rmse(baseline_errors(train, test))
    private = learner(20.0, n_factors=4, n_epochs=5, noise_seed=1).fit(
        train
    )  # a seed, so that it never fails by chance
    assert rmse(prediction_errors(private, test)) < 0.95 * free


@pytest.mark.parametrize("feedback", ["explicit", "implicit"])
def test_the_number_of_users_as_released_decides_how_many_factors_there_are(feedback: Any) -> None:
    ratings = make(6000, 20, mean_ratings=6)
    few, many = (
        ALS(budget=Budget(epsilon), n_epochs=1, feedback=feedback).fit(ratings).release for epsilon in (0.5, 40.0)
    )
    assert few.n_factors < many.n_factors
    for release in (few, many):
        assert release.configuration["n_factors"] == release.n_factors
        sums = next(one for one in release.guarantee.events if one.what == "item factors")
        assert isinstance(sums, GaussianEvent)
        assert sums.coordinates >= 20 * (many.n_factors + 1)  # as many as there may be


def test_too_few_people_for_any_factors_still_get_item_biases() -> None:
    model = ALS(budget=Budget(0.5)).fit(make(150, 20, mean_ratings=8))
    assert model.release.n_factors == 0
    assert verify(model.release.guarantee).ok
    assert len(model.release.fold_in({1: 5.0}).recommend(k=3)) == 3


def test_as_many_factors_as_asked_for_are_released() -> None:
    assert ALS(budget=Budget(0.5), n_factors=5, n_epochs=1).fit(make(100, 40)).release.n_factors == 5
