"""Certified objective perturbation: neighbours, the guarantee, the ledger, and the noise."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import ALS, ObjectivePerturbation
from dpmf.methods.objective.certified import SUMS
from dpmf.methods.objective.profiles import PROFILES, Profiles
from dpmf.model import Release
from dpmf.privacy import Budget, NormNoiseEvent
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.privacy.verify import verify
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

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


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[NDArray[np.int64]]]:
    """Return what goes to the mechanism, in steps, and how far it may move."""
    seen: dict[str, list[Any]] = {}
    release = Mechanism.release

    def record(self: Mechanism, what: str, sums: NDArray[np.int64], sensitivity: float) -> NDArray[np.float64]:
        seen.setdefault(what, []).append((sums.copy(), self.steps(what, sensitivity) * sensitivity))
        return release(self, what, sums, sensitivity)

    monkeypatch.setattr(Mechanism, "release", record)
    return seen


def lengths(one: NDArray[np.int64], other: NDArray[np.int64]) -> list[float]:
    return [math.sqrt(sum(int(step) ** 2 for step in row)) for row in one - other]


@pytest.mark.parametrize("value", [1.0, 5.0])
def test_one_rating_moves_a_row_of_each_sum_by_the_bound_at_most(
    ratings: Ratings, release: Release, released: dict[str, Any], value: float
) -> None:
    """The real run, on data sets that differ in the value of one rating; noise is the same, so profiles differ little.

    Item sums are compared for the same profiles, which is what their noise has to answer for.
    """
    place = 100
    values = ratings.values.copy(), ratings.values.copy()
    values[0][place], values[1][place] = value, 6 - value
    for data in (replace(ratings, values=one) for one in values):
        SEEDED_METHOD.fit(data, profiles=Profiles.from_release(release, BUDGET))
        SEEDED_METHOD.fit(data, profiles=table(ratings, scale=9.0))
    (first, bound), (second, _) = released[PROFILES]
    moved = lengths(first, second)
    assert max(moved) <= bound
    assert np.flatnonzero(moved).tolist() == [ratings.users[place]]
    (_, (first, bound), _, (second, _)) = released[SUMS]
    moved = lengths(first, second)
    assert 0.99 * bound < max(moved) <= bound  # profiles are longer than 1, and are shortened to it
    assert np.flatnonzero(moved).tolist() == [ratings.items[place]]


def test_nothing_but_the_sums_depends_on_values(ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """With sums replaced by a constant, releases of different ratings of the same items are the same."""
    monkeypatch.setattr(
        Mechanism, "release", lambda self, what, sums, sensitivity: self.forfeit(what) or np.ones(sums.shape)
    )  # fmt: skip
    other = replace(ratings, values=np.full(len(ratings), 2.0, np.float32))
    models = [SEEDED_METHOD.fit(data, profiles=table(ratings)) for data in (ratings, other)]
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


def test_noise_taken_back_out_has_the_promised_length(ratings: Ratings) -> None:
    """From a release, public profiles and the ratings: η_j/2 has length Gamma(K, D/ε), for unrated items too."""
    K, mu, taken = 4, 0.01, []
    some = ratings.select(ratings.items != 7)
    profiles = table(some, K, scale=0.2)
    U = np.random.default_rng(5).normal(0, 0.2, (some.n_users, K))
    U /= np.maximum(1, np.linalg.norm(U, axis=1, keepdims=True))
    y, A = np.zeros((some.n_items, K)), np.zeros((some.n_items, K, K)) + len(some) * mu * np.eye(K)
    np.add.at(y, some.items, (some.values - 3)[:, None] * U[some.users])
    np.add.at(A, some.items, U[some.users][:, :, None] * U[some.users][:, None, :])
    for seed in range(25):
        model = replace(METHOD, regularization=mu, noise_seed=seed).fit(some, profiles=profiles)
        noise = np.einsum("jab,jb->ja", A, model.release.item_factors.astype(float)) - y
        taken.append(np.linalg.norm(noise, axis=1))
    assert stats.kstest(np.concatenate(taken), stats.gamma(K, scale=4 / 2.0).cdf).pvalue > 1e-4
    assert stats.kstest(np.concatenate(taken), stats.gamma(K, scale=1.1 * 4 / 2.0).cdf).pvalue < 1e-4
    assert min(one[7] for one in taken) > 0


def test_seeded_noise_certifies_nothing(ratings: Ratings) -> None:
    guarantee = SEEDED_METHOD.fit(ratings, profiles=table(ratings)).guarantee
    assert not guarantee.certified
    assert SEEDED in guarantee.assumptions
    fresh = [METHOD.fit(ratings, profiles=table(ratings)).release.item_factors.tobytes() for _ in range(2)]
    assert fresh[0] != fresh[1]


def test_the_bits_are_the_same_for_any_number_of_threads(ratings: Ratings, release: Release) -> None:
    profiles = Profiles.from_release(release, BUDGET)
    models = [SEEDED_METHOD.fit(ratings, n_threads=n, profiles=profiles) for n in (1, 2, 3)]
    assert len({model.release.item_factors.tobytes() for model in models}) == 1


def test_a_ledger_is_charged_before_anything_is_drawn(
    ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger", Budget(3.0, 1e-6, "rating", "replace"))
    METHOD.fit(ratings, profiles=table(ratings), ledger=ledger)
    assert ledger.spent() == pytest.approx(2.0, abs=1e-4)
    with pytest.raises(InvalidArgument, match="none of the people"):  # found out before it is paid for
        METHOD.fit(ratings, profiles=Profiles.public(["x"], [[1.0]]), ledger=Ledger(tmp_path / "new", ledger.cap))
    assert Ledger(tmp_path / "new").spent() == 0
    monkeypatch.setattr(Mechanism, "release", lambda *_: pytest.fail("drawn"))
    with pytest.raises(BudgetExceeded):
        METHOD.fit(ratings, profiles=table(ratings), ledger=ledger)
    with pytest.raises(InvalidArgument, match="unit='rating' cannot be added to a ledger with unit='user'"):
        METHOD.fit(ratings, profiles=table(ratings), ledger=Ledger(tmp_path / "other", Budget(9.0)))


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


def test_what_is_missing_or_too_much_is_refused(ratings: Ratings, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgument, match=r"Profiles\.public\(…\) or Profiles\.from_release\(…\), or take mode='paper'"
    ):
        METHOD.fit(ratings)
    with pytest.raises(InvalidArgument, match="no checkpoint"):
        METHOD.fit(ratings, profiles=table(ratings), checkpoint=Checkpoint(tmp_path / "run"))
    for other in (
        ObjectivePerturbation(budget=Budget(1.0), mode="paper"),
        ObjectivePerturbation(budget=Budget(math.inf)),
    ):
        with pytest.raises(InvalidArgument, match="profiles are for a certified run"):
            other.fit(ratings, profiles=table(ratings))
    with pytest.raises(InvalidArgument, match="public catalogue"):
        METHOD.fit(Ratings.of([1], [2], [3], scale=(1, 5)), profiles=table(ratings))
    large = replace(BUDGET, epsilon=50.0)
    profiles = Profiles.from_release(ALS_50.fit(ratings).release, large)
    with pytest.raises(BudgetExceeded, match="together they cost more than can be accounted for"):
        replace(METHOD, budget=large).fit(ratings, profiles=profiles)
    heard: list[int] = []
    METHOD.fit(ratings, profiles=table(ratings), callbacks=[lambda record: heard.append(record.epoch)])
    assert heard == [1]
