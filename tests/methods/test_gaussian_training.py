"""Full gradient descent with the published noise: the claim, the steps, and going on after a stop."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.evaluation import prediction_errors
from dpmf.methods import GaussianGD
from dpmf.methods.gaussian.claim import Claim, eps_i_for
from dpmf.methods.gaussian.defaults import PUBLISHED, SWEEPS
from dpmf.methods.gaussian.descent import drawn_noise
from dpmf.model import EpochRecord, Model, Release
from dpmf.privacy import Budget
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

PAPER = GaussianGD(n_factors=3, n_epochs=8, budget=Budget(20.0), mode="paper", noise_seed=4)
PLAIN = GaussianGD(n_factors=3, n_epochs=8, budget=Budget(math.inf))


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(150, 60, mean_ratings=25)


def bits(model: Model) -> tuple[bytes, ...]:
    release = model.release
    return (release.item_factors.tobytes(), release.item_biases.tobytes(), model.user_factors.tobytes())


def test_the_claim_has_the_published_figures() -> None:
    claim = Claim(0.3, 0.01, 1e-5, width=4.0, clip=1.0, n_iterations=100)
    assert claim.sigma == pytest.approx(41.43, abs=0.005)
    assert claim.by_renyi == pytest.approx(5.10, abs=0.005)
    assert replace(claim, n_iterations=500).by_renyi == pytest.approx(12.69, abs=0.005)
    assert replace(claim, width=9.0).sigma == pytest.approx(41.43 * 9 / 4, abs=0.01)


@pytest.mark.parametrize("eps_i", SWEEPS["eps_i"])
@pytest.mark.parametrize("n_iterations", [1, 100, 5000])
def test_the_accountant_never_finds_more_than_the_formula(eps_i: float, n_iterations: int) -> None:
    claim = Claim(eps_i, 0.01, 1e-5, 4.0, 1.0, n_iterations)
    assert 0.5 * claim.by_renyi < claim.by_accountant < claim.by_renyi
    assert eps_i_for(claim.by_renyi, n_iterations, 0.01, 1e-5) == pytest.approx(eps_i, rel=1e-12)


def test_what_is_claimed_is_a_claim_with_all_its_gaps(ratings: Ratings) -> None:
    guarantee = replace(PAPER, noise_seed=None).fit(ratings).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit, guarantee.neighbours) == (
        "paper", False, "rating", "replace",
    )  # fmt: skip
    assert guarantee.epsilon == 20.0
    assert guarantee.delta == PUBLISHED["delta_r"]
    assert guarantee.recomputed_epsilon() == math.inf
    text = " ".join(guarantee.assumptions)
    for gap in ("carry no guarantee at all", "nothing is proven", "value of one rating", "floating-point"):
        assert gap in text
    (event,) = guarantee.events
    assert "by their Rényi formula; the accountant of dpmf says" in event.to_json()["claim"]
    assert "which the claim does not cover" in str(guarantee)


def test_an_iteration_may_be_given_its_own_epsilon(ratings: Ratings) -> None:
    model = replace(PAPER, eps_i=0.3).fit(ratings)
    claim = replace(PAPER, eps_i=0.3).claim(ratings.scale, 8)
    assert model.guarantee.epsilon == pytest.approx(claim.by_renyi, abs=2e-6)
    assert model.release.configuration["eps_i"] == 0.3


def test_published_settings_are_the_defaults() -> None:
    chosen = GaussianGD(budget=Budget(12.69), mode="paper", n_epochs=500).chosen()
    assert {name: getattr(chosen, name) for name in PUBLISHED if name != "eps_i"} == {
        name: value for name, value in PUBLISHED.items() if name != "eps_i"
    }
    assert chosen.eps_i == pytest.approx(PUBLISHED["eps_i"], rel=1e-3)
    assert SWEEPS["n_factors"] == (20, 50, 100, 200, 320, 500)


def test_steps_are_those_of_the_paper(ratings: Ratings) -> None:
    """Dense matrices, from the formulas; they differ from the kernel's by the rounding of floats."""
    method = replace(PAPER, n_epochs=5, learning_rate=0.002, clip=0.8)
    model = method.fit(ratings)
    first = replace(PLAIN, n_epochs=1, mode="paper", learning_rate=1e-30).fit(ratings)
    X, T = first.release.item_factors.astype(float), first.user_factors.astype(float)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(T, axis=1), 1, rtol=1e-5)
    rated, values = np.zeros((len(X), len(T))), np.zeros((len(X), len(T)))
    rated[ratings.items, ratings.users], values[ratings.items, ratings.users] = 1, ratings.values
    noise, sigma = Noise(4), method.claim(ratings.scale, 1).sigma
    for number in range(5):
        error = rated * (X @ T.T - values)
        clipped = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True) / 0.8)
        gradient = error.T @ clipped + 0.01 * T - drawn_noise(noise, sigma, number, T.shape, 1)
        X, T = X - 0.002 * (error @ T + 0.01 * X), T - 0.002 * gradient
    np.testing.assert_allclose(model.release.item_factors, X, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(model.user_factors, T, rtol=1e-3, atol=1e-4)


def test_raw_ratings_are_predicted_by_products_alone(ratings: Ratings, tmp_path: Path) -> None:
    model = PAPER.fit(ratings)
    model.release.save(tmp_path / "release")
    assert Release.load(tmp_path / "release").mean == 1.0  # the point of the scale that is nearest to 0
    user = ratings.user_ids[0]
    products = np.clip(model.release.item_factors @ model.user_factors[0], 1, 5)
    np.testing.assert_allclose(model.predict(user, list(ratings.catalogue.ids)), products, atol=1e-5)


def test_centering_on_the_mean_is_labelled(ratings: Ratings) -> None:
    model = replace(PAPER, centering="mean").fit(ratings)
    assert model.release.mean == pytest.approx(float(ratings.values.mean()), abs=1e-5)
    assert model.release.configuration["centering"] == "mean"
    assert any("mean of the training ratings" in one for one in model.guarantee.assumptions)
    assert PAPER.fit(ratings).release.configuration["centering"] == "raw"


@pytest.mark.parametrize("method", [PAPER, PLAIN, replace(PLAIN, mode="paper")], ids=["paper", "plain", "published"])
def test_the_bits_are_the_same_for_any_number_of_threads(method: GaussianGD, ratings: Ratings) -> None:
    models = [method.fit(ratings, n_threads=n_threads) for n_threads in (1, 2, 3)]
    assert {bits(model) for model in models} == {bits(models[0])}
    assert len({model.history[-1].train_rmse for model in models}) == 1


def test_noise_comes_from_nobody_knows_where_unless_it_is_seeded(ratings: Ratings) -> None:
    fresh = replace(PAPER, noise_seed=None)
    assert bits(fresh.fit(ratings)) != bits(fresh.fit(ratings))
    assert not fresh.fit(ratings).guarantee.seeded
    assert SEEDED in PAPER.fit(ratings).guarantee.assumptions


def test_noise_is_as_large_as_the_claim_says() -> None:
    drawn = drawn_noise(Noise(7), 41.43, 0, (5000, 20), 2)
    assert drawn.std() == pytest.approx(41.43, rel=0.02)
    assert abs(drawn.mean()) < 5 * 41.43 / math.sqrt(drawn.size)


def test_it_stops_when_the_error_does_not_change(ratings: Ratings) -> None:
    model = replace(PAPER, budget=Budget(500.0), learning_rate=0.005, tolerance=0.01, n_epochs=400).fit(ratings)
    errors = [record.train_rmse for record in model.history]
    assert 2 < len(errors) < 400
    assert abs(errors[-1] - errors[-2]) < 0.01
    assert all(abs(one - next_one) >= 0.01 for one, next_one in pairwise(errors[:-1]))
    assert any("until it changed by less than 0.01" in one for one in model.guarantee.assumptions)
    assert model.guarantee.epsilon is not None
    assert model.guarantee.epsilon < 500.0  # of fewer iterations than were allowed


def test_an_early_end_is_recorded(ratings: Ratings) -> None:
    model = PAPER.fit(ratings, callbacks=[lambda record: record.epoch == 3])
    assert len(model.history) == 3
    assert any("ended the run early" in one for one in model.guarantee.assumptions)


@pytest.mark.parametrize("method", [PAPER, PLAIN], ids=["paper", "plain"])
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(method: GaussianGD, tmp_path: Path, ratings: Ratings) -> None:
    def interrupt(record: EpochRecord) -> None:
        if record.epoch == 4:
            raise KeyboardInterrupt

    plan = Checkpoint(tmp_path / "run", resume=True)
    with pytest.raises(KeyboardInterrupt):
        method.fit(ratings, checkpoint=plan, callbacks=[interrupt])
    heard: list[int] = []
    resumed = method.fit(ratings, checkpoint=plan, callbacks=[lambda record: heard.append(record.epoch)])
    assert heard[-1] == 8
    assert 1 < heard[0] <= 5
    assert bits(resumed) == bits(method.fit(ratings))


def test_steps_that_are_too_long_are_halved_or_refused(ratings: Ratings) -> None:
    wild = replace(PLAIN, learning_rate=8.0, n_epochs=60)
    errors = [record.train_rmse for record in wild.fit(ratings).history]
    assert max(errors) > 1.02 * errors[0]  # they were too long
    gentle = replace(PLAIN, n_epochs=60).fit(ratings)
    assert errors[-1] < 1.03 * gentle.history[-1].train_rmse
    with pytest.raises(InvalidArgument, match=r"diverged in iteration .*: take a smaller learning_rate"):
        replace(PAPER, learning_rate=1.0, n_epochs=200).fit(ratings)


def test_scales_of_any_width_are_learnt_alike() -> None:
    train, test = make(400, 100).split(0.1, seed=2)
    errors = []
    for unit in (1, 25):
        wide = [
            replace(one, values=one.values * np.float32(unit), scale=type(one.scale)(unit, 5 * unit))
            for one in (train, test)
        ]
        model = GaussianGD(n_factors=4, budget=Budget(math.inf)).fit(wide[0])
        errors.append(np.abs(prediction_errors(model, wide[1])).mean() / unit)
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)


def test_a_claim_is_unbounded_for_a_ledger(ratings: Ratings, tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded):
        PAPER.fit(ratings, ledger=Ledger(tmp_path / "ledger", Budget(100.0)))


def test_what_makes_no_sense_is_refused(ratings: Ratings, tmp_path: Path) -> None:
    given: dict[str, Any] = {"clip": 1.0, "eps_i": 0.3, "delta_i": 0.1, "delta_r": 1e-5, "noise_seed": 1}
    for field, value in given.items():
        with pytest.raises(InvalidArgument, match=rf"{field} means nothing with an infinite epsilon"):
            replace(PLAIN, **{field: value})
    for field, value in {**given, "tolerance": 1e-4}.items():
        if field != "noise_seed":
            with pytest.raises(InvalidArgument, match=rf"{field} means nothing with mode='certified'"):
                GaussianGD(budget=Budget(1.0), **{field: value})
    for field, value in (("centering", "median"), ("mode", "fast"), ("delta_r", 1.0), ("delta_i", 0), ("eps_i", -1.0),
                         ("n_epochs", 0), ("items_public", 1), ("seed", -1)):  # fmt: skip
        with pytest.raises(InvalidArgument, match=field):
            replace(PAPER, **{field: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="budget=None"):
        GaussianGD()
    with pytest.raises(InvalidArgument, match="in memory"):
        PLAIN.fit(StoredRatings.build(MemorySource(ratings), tmp_path / "store", memory=0))
    with pytest.raises(InvalidArgument, match="public catalogue"):
        PAPER.fit(Ratings.of([1], [2], [3], scale=(1, 5)))
    with pytest.raises(InvalidArgument, match="declared, not found"):
        PAPER.fit(Ratings.of([1, 2], [2, 2], [3, 4]))
    with pytest.raises(InvalidArgument, match="user_budgets need mode='certified'"):
        PAPER.fit(ratings, user_budgets={1: 1.0})
    for name in ("user_budgets", "ledger"):
        with pytest.raises(InvalidArgument, match=f"{name} means nothing with an infinite epsilon"):
            PLAIN.fit(ratings, **{name: object()})  # type: ignore[arg-type]
