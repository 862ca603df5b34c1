"""Item features beside the list of items: what they bring, what they cost nobody, and what is said about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.evaluation import evaluate, prediction_errors
from dpmf.methods import ALS, Joint
from dpmf.methods.als.descriptions import DESCRIBED
from dpmf.methods.verification import verify_release, with_descriptions
from dpmf.model import Model, Release
from dpmf.privacy import Budget
from dpmf.ratings import Items, Ratings

N_PEOPLE, N_ITEMS, WIDTH = 400, 80, 3
COLD = 8  # items that nobody rates, the last ones
SETTINGS: dict[str, Any] = {"budget": Budget(20.0), "noise_seed": 2, "n_factors": 0}
RNG = np.random.default_rng(4)
FEATURES = RNG.normal(size=(N_ITEMS, WIDTH))


def made(features: Any = None) -> Ratings:
    """Return ratings that depend on features, which people like more or less."""
    rng = np.random.default_rng(3)
    tastes = 0.6 * rng.normal(size=(N_PEOPLE, WIDTH)) + np.array([0.6, 0.0, -0.6])
    who = np.repeat(np.arange(N_PEOPLE), 20)
    what = np.concatenate([rng.permutation(N_ITEMS)[:20] for _ in range(N_PEOPLE)])
    liking = (tastes[who] * FEATURES[what]).sum(axis=1)
    stars = np.clip(np.rint(3 + liking + 0.5 * rng.normal(size=len(who))), 1, 5)
    items = Items.of(np.arange(N_ITEMS))
    return Ratings.of(
        who, what, stars, scale=(1, 5), items=items if features is None else items.with_features(features)
    )


def split(features: Any = None) -> tuple[Ratings, Ratings]:
    """Return ratings to train on, and those of cold items."""
    ratings = made(features)
    cold = ratings.items >= N_ITEMS - COLD
    return ratings.select(~cold), ratings.select(cold)


@pytest.fixture(scope="module")
def model() -> Model:
    return ALS(**SETTINGS).fit(split(FEATURES)[0], n_threads=1)


def test_new_items_get_predictions_from_what_is_said_about_them(model: Model) -> None:
    cold = split(FEATURES)[1]
    told, untold = (
        float(np.square(prediction_errors(one, test)).mean()) ** 0.5
        for one, test in ((model, cold), (ALS(**SETTINGS).fit(split()[0], n_threads=1), split()[1]))
    )
    assert told < 0.8 * untold
    release = model.release
    assert release.learnt.traits == WIDTH
    person = release.fold_in({0: 5, 1: 1, 2: 3})
    listed = {one.item: one for one in person.recommend(N_ITEMS)}
    assert not any(listed[item].known for item in range(N_ITEMS - COLD, N_ITEMS))
    assert listed[N_ITEMS - 1].to_json()["known"] is False
    assert "known" not in listed[10].to_json()
    assert not person.explain(N_ITEMS - 1).known
    assert person.explain(10).known


def test_features_cost_nothing_and_are_an_assumption(model: Model) -> None:
    without = ALS(**SETTINGS).fit(split()[0], n_threads=1)
    assert model.guarantee.events == without.guarantee.events
    (digest,) = {one["sha256"] for one in model.release.configuration[DESCRIBED]}
    (said,) = set(model.guarantee.assumptions) - set(without.guarantee.assumptions)
    assert digest in said
    assert "were not made from these people's behaviour" in said


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_features_of_other_items_change_nothing(seed: int) -> None:
    dealt = FEATURES[np.random.default_rng(seed).permutation(N_ITEMS)]
    train, untold = split(dealt)[0], split()[0]
    release = ALS(**SETTINGS).fit(train, n_threads=1).release
    alone = ALS(**SETTINGS).fit(untold, n_threads=1).release
    assert release.learnt.traits == 0
    np.testing.assert_array_equal(release.item_biases, alone.item_biases)


def test_implicit_factors_go_by_features_too() -> None:
    rng = np.random.default_rng(8)
    sides = rng.integers(2, size=N_ITEMS)
    who = np.repeat(np.arange(3000), 12)
    what = np.concatenate([_chosen(rng, sides, person % 2) for person in range(3000)])
    train, test = Ratings.of(who, what, np.ones(len(who)), scale=(0, 1), items=range(N_ITEMS)).split(0.2, seed=1)
    told = train.catalogue.with_features(sides[:, None] + 0.1 * rng.normal(size=(N_ITEMS, 1)))
    method = ALS(feedback="implicit", n_factors=2, n_epochs=3, budget=Budget(2.0), noise_seed=3)
    found, without = (
        evaluate(method.fit(replace(train, catalogue=one), n_threads=1), replace(test, catalogue=one))["ndcg@10"]
        for one in (told, train.catalogue)
    )
    assert found > without


def _chosen(rng: np.random.Generator, sides: Any, side: int) -> Any:
    """Return twelve items, most of them of one side, the first ones more often."""
    weights = np.where(sides == side, 4.0, 1.0) / np.sqrt(1 + np.arange(N_ITEMS))
    return rng.choice(N_ITEMS, size=12, replace=False, p=weights / weights.sum())


def test_a_release_on_disk_is_compared_with_the_features_if_they_are_given(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", FEATURES)
    np.save(tmp_path / "others.npy", FEATURES[::-1])
    train = split()[0]
    described = replace(train, catalogue=train.catalogue.with_features(tmp_path / "features.npy"))
    for method in (ALS(**SETTINGS), Joint(budget=Budget(20.0), noise_seed=2)):
        saved = replace(method, noise_seed=None).fit(described, n_threads=1).release
        saved.save(tmp_path / "release")
        release = Release.load(tmp_path / "release")
        verdict = verify_release(release)
        assert verdict.ok, verdict.reason
        assert "were not compared" in str(verdict.reason)
        whole = verify_release(with_descriptions(release, None, tmp_path / "features.npy"))
        assert whole.ok, whole.reason
        assert "were not compared" not in str(whole.reason)
        assert not verify_release(with_descriptions(release, None, tmp_path / "others.npy")).ok
        forged = saved.item_factors.copy()
        forged[3, -1] += 0.1
        assert not verify_release(replace(saved, item_factors=forged)).ok
        unsaid = replace(saved.guarantee, assumptions=saved.guarantee.assumptions[:1])
        assert "does not rest on the features" in str(verify_release(replace(release, guarantee=unsaid)).reason)
        wide = np.hstack([saved.item_factors] * 20)
        assert not verify_release(replace(release, item_factors=wide)).ok


def test_an_earlier_release_keeps_its_features() -> None:
    train, test = made(FEATURES).split(0.5, seed=1)
    certified = ALS(n_factors=0, budget=Budget(20.0)).fit(train, n_threads=1).release
    continued = ALS(budget=Budget(20.0)).fit(test, start=certified, n_threads=1).release
    assert certified.learnt.traits == continued.learnt.traits == WIDTH
    assert verify_release(continued).ok
