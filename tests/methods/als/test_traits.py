"""Public traits of items, such as genres, beside factors that are measured: everybody's taste for them is their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf.evaluation import evaluate
from dpmf.federated.certified import CertifiedScenario, simulate_certified
from dpmf.methods import ALS, Joint
from dpmf.methods.als.continued import n_factors_of
from dpmf.methods.als.traits import leanings_of, liking_of
from dpmf.methods.certified.script import numbers, within_reach
from dpmf.methods.verification import verify_release
from dpmf.model import Model, Release
from dpmf.model.learnt import LEARNT
from dpmf.privacy import Budget
from dpmf.ratings import Items, Ratings
from dpmf.ratings.features import features_of, traits_of

N_PEOPLE, N_ITEMS, GENRES = 300, 60, ("calm", "loud", "odd")
SETTINGS: dict[str, Any] = {"budget": Budget(20.0), "noise_seed": 2}


def made(*, shuffled: bool = False) -> Ratings:
    """Return ratings that depend on genres, which people like more or less; of other items, if they are shuffled."""
    rng = np.random.default_rng(3)
    genres = rng.integers(len(GENRES), size=N_ITEMS)
    tastes = rng.normal(size=(N_PEOPLE, len(GENRES))) + np.array([0.8, 0.0, -0.8])
    who = np.repeat(np.arange(N_PEOPLE), 20)
    what = np.concatenate([rng.permutation(N_ITEMS)[:20] for _ in range(N_PEOPLE)])
    stars = np.clip(np.rint(3 + tastes[who, genres[what]] + 0.5 * rng.normal(size=len(who))), 1, 5)
    said = rng.permutation(genres) if shuffled else genres
    items = Items.of(np.arange(N_ITEMS), [f"item {j}" for j in range(N_ITEMS)], [GENRES[one] for one in said])
    return Ratings.of(who, what, stars, scale=(1, 5), items=items)


@pytest.fixture(scope="module")
def split() -> tuple[Ratings, Ratings]:
    return made().split(0.2, seed=1)


@pytest.fixture(scope="module")
def model(split: tuple[Ratings, Ratings]) -> Model:
    return ALS(n_factors=1, **SETTINGS).fit(split[0], n_threads=1)


def test_tastes_for_genres_predict_and_cost_nothing(model: Model, split: tuple[Ratings, Ratings]) -> None:
    train, test = split
    untold = replace(train, catalogue=Items.of(np.arange(N_ITEMS)))
    without = ALS(n_factors=1, **SETTINGS).fit(untold, n_threads=1)
    release = model.release
    assert (release.learnt.traits, release.n_measured_factors, release.configuration["n_factors"]) == (3, 1, 1)
    assert (without.release.learnt.traits, without.release.n_measured_factors) == (0, 1)
    assert float(evaluate(model, test)["rmse"]) < 0.98 * float(
        evaluate(without, test)["rmse"]
    )  # leanings say most of it
    assert model.guarantee.events == without.guarantee.events
    assert "tastes go by 3 public traits of items" in str(release.learnt)
    assert release.fold_in({0: 5, 1: 1}).ordered_by == "factors"


def test_genres_that_say_nothing_are_left_alone() -> None:
    release = ALS(n_factors=0, **SETTINGS).fit(made(shuffled=True), n_threads=1).release
    assert (release.learnt.traits, release.n_measured_factors) == (0, 0)


def test_verification_makes_traits_again_from_the_list_of_items(model: Model) -> None:
    release = model.release
    assert verify_release(release).ok
    other = release.item_factors.copy()
    other[5, -1] += 0.01  # what no event accounts for
    longer = np.hstack([release.item_factors, release.item_factors[:, :1]])
    for forged in (
        replace(release, item_factors=other),
        replace(release, item_factors=longer),
        with_traits(release, 2),
    ):
        assert not verify_release(forged).ok


def test_everybody_leans_towards_what_is_well_liked_as_far_as_they_do_and_it_costs_nothing() -> None:
    """Half of the people like what others like, the other half the opposite: biases alone say nothing to either."""
    rng = np.random.default_rng(5)
    quality, slopes = rng.normal(size=N_ITEMS), np.where(np.arange(400) % 4 < 3, 1.0, -0.6)
    who = np.repeat(np.arange(len(slopes)), 25)
    what = np.concatenate([rng.permutation(N_ITEMS)[:25] for _ in slopes])
    stars = np.clip(3 + slopes[who] * quality[what] + 0.4 * rng.normal(size=len(who)), 1, 5)
    ratings = Ratings.of(who, what, stars, scale=(1, 5), items=Items.of(np.arange(N_ITEMS)))
    train, test = ratings.split(0.2, seed=1)
    with_leanings, without = (
        ALS(n_factors=0, traits=traits, **SETTINGS).fit(train, n_threads=1) for traits in (True, False)
    )
    release = with_leanings.release
    assert (release.learnt.leanings, release.n_factors, without.release.n_factors) == (2, 2, 0)
    assert with_leanings.guarantee.events == without.guarantee.events
    assert float(evaluate(with_leanings, test)["rmse"]) < 0.8 * float(evaluate(without, test)["rmse"])
    assert verify_release(release).ok
    assert not release.similar_items(0)  # being popular does not make items alike
    other = release.item_factors.copy()
    other[3, 1] += 0.01
    assert not verify_release(replace(release, item_factors=other)).ok


@pytest.mark.parametrize("settings", [{"traits": False}, {"feedback": "implicit"}])
def test_a_release_that_says_of_factors_that_they_are_leanings_has_to_have_some(settings: dict[str, Any]) -> None:
    release = ALS(n_factors=2, budget=Budget(20.0), **settings).fit(made(), n_threads=1).release
    assert verify_release(release).ok
    learnt = {**release.configuration[LEARNT], "leanings": 2}
    factors = np.column_stack([release.item_factors, np.arange(N_ITEMS), release.item_biases]).astype(np.float32)
    forged = replace(release, item_factors=factors, configuration={**release.configuration, LEARNT: learnt})
    assert "its method releases none" in str(verify_release(forged).reason)


def test_noise_of_any_size_makes_no_question_that_cannot_be_answered() -> None:
    wild = np.array([np.nan, np.inf, -np.inf, 1e30, 3.0], np.float32)
    assert liking_of(wild[1:], 1.0).tolist() == [4.0, -4.0, 4.0, 3.0]
    kept = within_reach(wild)
    assert np.isfinite(kept).all()
    assert (kept[0], kept[-1]) == (0, 3)
    assert numbers("V", wild.shape).holds(kept)


def test_leanings_vanish_where_nothing_is_known() -> None:
    noise = np.ones(N_ITEMS)
    lost = np.linspace(-1.0, 2.9, N_ITEMS)
    np.testing.assert_allclose(leanings_of(lost, noise, np.zeros(N_ITEMS, np.float32), 1.0), 0, atol=1e-6)
    known = leanings_of(np.geomspace(1, 1e4, N_ITEMS), noise, np.linspace(-1, 1, N_ITEMS).astype(np.float32), 2.0)
    assert (np.ptp(known, axis=0) > 0).all()


def with_traits(release: Release, number: int) -> Release:
    record = {**release.configuration[LEARNT], "traits": number}
    return replace(release, configuration={**release.configuration, LEARNT: record})


def test_a_run_that_continues_a_release_keeps_its_traits(model: Model, split: tuple[Ratings, Ratings]) -> None:
    certified = ALS(n_factors=1, budget=Budget(20.0)).fit(split[0], n_threads=1).release
    continued = ALS(budget=Budget(20.0)).fit(split[1], start=certified, n_threads=1).release
    assert (continued.learnt.traits, continued.n_measured_factors) == (3, n_factors_of(certified))
    assert verify_release(continued).ok


def test_lists_and_ratings_in_one_release_have_traits_too(split: tuple[Ratings, Ratings]) -> None:
    release = Joint(**SETTINGS).fit(split[0], n_threads=1).release
    assert release.learnt.traits == 3
    assert verify_release(release).ok


def test_people_who_answer_for_themselves_know_the_traits(split: tuple[Ratings, Ratings]) -> None:
    train, test = split
    outcome = simulate_certified(train, CertifiedScenario(Budget(20.0), n_factors=1, noise_seed=2))
    assert outcome.model.release.learnt.traits == 3
    assert float(evaluate(outcome.model, test)["rmse"]) < 0.8


def test_many_features_become_the_directions_in_which_items_differ_most() -> None:
    features = np.random.default_rng(0).normal(size=(200, 40)) * np.linspace(2, 0.1, 40)
    traits = traits_of(features).astype(np.float64)
    assert traits.shape == (200, 32)
    assert np.square(traits).sum() / 200 == pytest.approx(1, rel=1e-5)
    exact, found = features @ features.T, traits @ traits.T
    assert np.corrcoef(exact.ravel(), found.ravel())[0, 1] > 0.99
    few = features_of(made().catalogue)
    np.testing.assert_allclose(traits_of(few) * np.sqrt(few.shape[1]), few, rtol=1e-5)
