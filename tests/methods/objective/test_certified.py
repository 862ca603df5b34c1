"""Certified objective perturbation: neighbours, the guarantee, the ledger, and the noise."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import ALS, ObjectivePerturbation
from dpmf.methods.objective.plan import SUMS
from dpmf.methods.objective.profiles import PROFILES, Profiles
from dpmf.model import Release
from dpmf.privacy import Budget, GaussianEvent, NormNoiseEvent
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

from ..watch import Record, Watch

BUDGET = Budget(2.0, 1e-6, "rating", "replace")
METHOD = ObjectivePerturbation(budget=BUDGET)
ALS_50 = ALS(n_factors=2, n_epochs=1, budget=Budget(50.0, neighbours="replace"))
SEEDED_METHOD = replace(METHOD, noise_seed=3)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(300, 60, mean_ratings=30)


@pytest.fixture(scope="module")
def release(ratings: Ratings) -> Release:
    return ALS(n_factors=3, n_epochs=2, budget=Budget(10.0, neighbours="replace")).fit(ratings).release


def table(ratings: Ratings, K: int = 4, scale: float = 0.4) -> Profiles:
    rng = np.random.default_rng(5)
    return Profiles.public(ratings.user_ids.array, rng.normal(0, scale, (ratings.n_users, K)))


def moved(one: dict[str, Record], other: dict[str, Record], what: str) -> list[float]:
    """Return how far each row of a sum moved, relative to how far it may."""
    most = one[what].steps * one[what].sensitivity
    return [math.sqrt(sum(int(step) ** 2 for step in row)) / most for row in one[what].sums - other[what].sums]


@pytest.mark.parametrize("noise", ["norm", "gaussian"])
@pytest.mark.parametrize("value", [1.0, 5.0])
def test_one_rating_moves_a_row_of_each_sum_by_the_bound_at_most(
    ratings: Ratings, release: Release, watch: Watch, value: float, noise: Literal["norm", "gaussian"]
) -> None:
    """The real run, on data sets that differ in the value of one rating; noise is the same, so profiles differ little.

    Item sums are compared for the same profiles, which is what their noise has to answer for.
    """
    place = 100
    values = ratings.values.copy(), ratings.values.copy()
    values[0][place], values[1][place] = value, 6 - value
    pair = [replace(ratings, values=one) for one in values]
    worlds = []
    for profiles in (Profiles.from_release(release, BUDGET), table(ratings, scale=9.0)):
        for data in pair:
            replace(SEEDED_METHOD, noise=noise).fit(data, profiles=profiles)
            worlds.append({one.what: one for one in watch.records})
    assert max(moved(worlds[0], worlds[1], PROFILES)) <= 1
    assert np.flatnonzero(moved(worlds[0], worlds[1], PROFILES)).tolist() == [ratings.users[place]]
    assert 0.99 < max(moved(worlds[2], worlds[3], SUMS)) <= 1  # profiles are longer than 1, and are shortened to it
    assert np.flatnonzero(moved(worlds[2], worlds[3], SUMS)).tolist() == [ratings.items[place]]


def test_nothing_but_the_sums_depends_on_values(ratings: Ratings, watch: Watch) -> None:
    """Where the same sums are seen, releases of different ratings of the same items are the same."""
    other = replace(ratings, values=np.full(len(ratings), 2.0, np.float32))
    models = [SEEDED_METHOD.fit(ratings, profiles=table(ratings))]
    watch.script = watch.records
    models.append(SEEDED_METHOD.fit(other, profiles=table(ratings)))
    assert models[0].release.item_factors.tobytes() == models[1].release.item_factors.tobytes()
    assert models[0].release.ridge == models[1].release.ridge


def test_the_guarantee_is_of_everything(ratings: Ratings, release: Release) -> None:
    model = METHOD.fit(ratings, profiles=Profiles.from_release(release, replace(BUDGET, epsilon=1.0)))
    guarantee = model.guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit, guarantee.neighbours) == (
        "certified", True, "rating", "replace",
    )  # fmt: skip
    assert len(guarantee.events) == len(release.guarantee.events) + 2
    assert [event.what for event in guarantee.events[-2:]] == [PROFILES, SUMS]
    assert release.guarantee.epsilon is not None
    assert guarantee.epsilon is not None
    assert 2.0 + release.guarantee.epsilon < guarantee.epsilon < 2.0 + 1.0 + release.guarantee.epsilon
    assert verify(guarantee).ok
    text = " ".join(guarantee.assumptions)
    assert "does not hide which items were rated" in text
    assert "not about all ratings of a person" in text
    assert len(set(guarantee.assumptions)) == len(guarantee.assumptions)


def test_with_public_profiles_items_are_all_there_is_to_pay(ratings: Ratings) -> None:
    model = METHOD.fit(ratings, profiles=table(ratings))
    (event,) = model.guarantee.events
    assert isinstance(event, NormNoiseEvent)
    assert event.coordinates == ratings.n_items * 4
    assert model.guarantee.epsilon == pytest.approx(2.0, abs=1e-5)
    assert model.release.configuration["n_factors"] == model.release.n_factors == 4
    assert model.release.configuration["solver"] == "exact"
    assert len(model.history) == 1


def noise_taken_out(method: ObjectivePerturbation, ratings: Ratings, K: int, n_runs: int) -> NDArray[np.float64]:
    """Return the noise of several runs, computed from releases, public profiles and the ratings."""
    mu, taken = 0.01, []
    profiles = table(ratings, K, scale=0.2)
    U = np.random.default_rng(5).normal(0, 0.2, (ratings.n_users, K))
    U /= np.maximum(1, np.linalg.norm(U, axis=1, keepdims=True))
    y, A = np.zeros((ratings.n_items, K)), np.zeros((ratings.n_items, K, K)) + len(ratings) * mu * np.eye(K)
    np.add.at(y, ratings.items, (ratings.values - 3)[:, None] * U[ratings.users])
    np.add.at(A, ratings.items, U[ratings.users][:, :, None] * U[ratings.users][:, None, :])
    for seed in range(n_runs):
        model = replace(method, regularization=mu, noise_seed=seed).fit(ratings, profiles=profiles)
        taken.append(np.einsum("jab,jb->ja", A, model.release.item_factors.astype(float)) - y)
    return np.array(taken)


def test_noise_taken_back_out_has_the_promised_length(ratings: Ratings) -> None:
    """η_j/2 has length Gamma(K, D/ε), for unrated items too."""
    K = 4
    noise = noise_taken_out(METHOD, ratings.select(ratings.items != 7), K, n_runs=25)
    lengths = np.linalg.norm(noise, axis=2)
    assert stats.kstest(lengths.ravel(), stats.gamma(K, scale=4 / 2.0).cdf).pvalue > 1e-4
    assert stats.kstest(lengths.ravel(), stats.gamma(K, scale=1.1 * 4 / 2.0).cdf).pvalue < 1e-4
    assert lengths[:, 7].min() > 0


def test_gaussian_noise_taken_back_out_has_the_promised_spread(ratings: Ratings) -> None:
    """Every number has a standard deviation of σD, those of unrated items too."""
    method = replace(METHOD, noise="gaussian")
    (event,) = method.fit(ratings, profiles=table(ratings)).guarantee.events
    assert isinstance(event, GaussianEvent)
    noise = noise_taken_out(method, ratings.select(ratings.items != 7), 4, n_runs=25)
    sd = event.noise_multiplier * 4
    assert stats.kstest(noise.ravel(), stats.norm(scale=sd).cdf).pvalue > 1e-4
    assert stats.kstest(noise.ravel(), stats.norm(scale=1.15 * sd).cdf).pvalue < 1e-4
    assert np.abs(noise[:, 7]).min() > 0


def test_gaussian_items_and_profiles_compose_to_less_than_their_sum(ratings: Ratings, release: Release) -> None:
    profiles = Profiles.from_release(release, BUDGET, public=True)
    totals = [replace(METHOD, noise=noise).fit(ratings, profiles=profiles).guarantee for noise in ("norm", "gaussian")]
    assert totals[0].epsilon == pytest.approx(4.0, abs=1e-3)
    assert totals[1].epsilon == pytest.approx(2.9, abs=0.1)
    assert all(verify(one).ok for one in totals)


def test_the_usual_noise_is_not_written_down() -> None:
    """Releases and checkpoints have been without it since before there was another."""
    for usual in (METHOD, replace(METHOD, noise="norm"), ObjectivePerturbation(budget=Budget(math.inf))):
        assert "noise" not in usual.configuration()
        assert "noise" not in usual.recorded()
    assert replace(METHOD, noise="gaussian").configuration()["noise"] == "gaussian"


def test_a_ledger_is_charged_before_anything_is_drawn(ratings: Ratings, tmp_path: Path, watch: Watch) -> None:
    ledger = Ledger(tmp_path / "ledger", Budget(3.0, 1e-6, "rating", "replace"))
    METHOD.fit(ratings, profiles=table(ratings), ledger=ledger)
    assert ledger.spent() == pytest.approx(2.0, abs=1e-4)
    with pytest.raises(InvalidArgument, match="none of the people"):  # found out before it is paid for
        METHOD.fit(ratings, profiles=Profiles.public(["x"], [[1.0]]), ledger=Ledger(tmp_path / "new", ledger.cap))
    assert Ledger(tmp_path / "new").spent() == 0
    drawn = len(watch.drawn)
    with pytest.raises(BudgetExceeded):
        METHOD.fit(ratings, profiles=table(ratings), ledger=ledger)
    with pytest.raises(InvalidArgument, match="unit='rating' cannot be added to a ledger with unit='user'"):
        METHOD.fit(ratings, profiles=table(ratings), ledger=Ledger(tmp_path / "other", Budget(9.0)))
    assert len(watch.drawn) == drawn


def test_more_epsilon_learns_more_and_beats_the_free_baseline() -> None:
    train, test = make(2000, 100, mean_ratings=40).split(0.1, seed=2)
    release = ALS(n_factors=3, budget=Budget(20.0, neighbours="replace")).fit(train).release
    errors = []
    for epsilon in (0.3, 20.0):
        method = ObjectivePerturbation(budget=replace(BUDGET, epsilon=epsilon))
        model = method.fit(train, profiles=Profiles.from_release(release, replace(BUDGET, epsilon=5.0)))
        errors.append(rmse(prediction_errors(model, test)))
    assert errors[1] < 0.97 * errors[0]
    assert errors[1] < 0.94 * rmse(baseline_errors(train, test))


def test_what_is_missing_or_too_much_is_refused(ratings: Ratings) -> None:
    with pytest.raises(
        InvalidArgument, match=r"Profiles\.public\(…\) or Profiles\.from_release\(…\), or take mode='paper'"
    ):
        METHOD.fit(ratings)
    for other in (
        ObjectivePerturbation(budget=Budget(1.0), mode="paper"),
        ObjectivePerturbation(budget=Budget(math.inf)),
    ):
        with pytest.raises(InvalidArgument, match="profiles are for a certified run"):
            other.fit(ratings, profiles=table(ratings))
    large = replace(BUDGET, epsilon=50.0)
    profiles = Profiles.from_release(ALS_50.fit(ratings).release, large)
    with pytest.raises(BudgetExceeded, match="together they cost more than can be accounted for"):
        replace(METHOD, budget=large).fit(ratings, profiles=profiles)
