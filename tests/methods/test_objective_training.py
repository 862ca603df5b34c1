"""Objective perturbation as published: the claim, the fit, both solvers, and going on after a stop."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.methods import GaussianGD, ObjectivePerturbation
from dpmf.methods.objective import PUBLISHED
from dpmf.methods.objective.items import PerturbedItems, noise_vectors, plain_fit
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget
from dpmf.privacy.guarantee import SEEDED
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.noise import Noise
from dpmf.ratings import Ratings
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

EXACT = ObjectivePerturbation(n_factors=3, n_epochs=8, budget=Budget(5.0), mode="paper", noise_seed=4)
STEPS = replace(EXACT, solver="steps")
PLAIN = ObjectivePerturbation(n_factors=3, n_epochs=8, budget=Budget(math.inf))
PUBLISHED_PLAIN = replace(PLAIN, mode="paper")


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(150, 60, mean_ratings=25)


def bits(model: Model) -> tuple[bytes, ...]:
    release = model.release
    return (release.item_factors.tobytes(), release.item_biases.tobytes(), model.user_factors.tobytes())


@pytest.mark.parametrize("solver", ["exact", "steps"])
def test_what_is_claimed_is_a_claim_with_all_its_gaps(ratings: Ratings, solver: Any) -> None:
    guarantee = replace(EXACT, noise_seed=None, solver=solver).fit(ratings).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit, guarantee.neighbours) == (
        "paper", False, "rating", "replace",
    )  # fmt: skip
    assert (guarantee.epsilon, guarantee.delta, guarantee.recomputed_epsilon()) == (5.0, 0.0, math.inf)
    text = " ".join(guarantee.assumptions)
    for gap in ("fitted to the same ratings, so the proof does not apply", "value of one rating",
                "does not hide which items were rated", "floating-point"):  # fmt: skip
        assert gap in text
    assert ("stopped before the minimiser, after 8 steps" in text) == (solver == "steps")
    (event,) = guarantee.events
    assert "Gamma(3, 1.6)" in event.to_json()["claim"]


def test_published_settings_are_the_defaults() -> None:
    chosen = ObjectivePerturbation(budget=Budget(1.0), mode="paper").chosen()
    assert {name: getattr(chosen, name) for name in PUBLISHED} == PUBLISHED
    assert (chosen.solver, chosen.learning_rate, chosen.n_turns) == ("exact", 1 / 32, 100)
    assert replace(chosen, solver="steps").n_turns == 200


@pytest.mark.parametrize("method", [EXACT, STEPS], ids=["exact", "steps"])
def test_items_are_those_of_the_parts(method: ObjectivePerturbation, ratings: Ratings) -> None:
    model = method.fit(ratings)
    state = plain_fit(ratings, 3, 1 / 32, 0.001, seed=0)
    eta = noise_vectors(Noise(4), 2 * 4 / 5.0, (ratings.n_items, 3))
    items = PerturbedItems(state.items, state.X.copy(), eta, 1 / 32, 0.001)
    for number in range(8):
        state.advance(number, n_threads=1)
    for _ in range(8):
        items.advance(state.T, n_threads=1)
    expected = items.solve(state.T, n_threads=1) if method is EXACT else items.V[:, :3]
    np.testing.assert_array_equal(model.release.item_factors, expected)
    np.testing.assert_array_equal(model.user_factors, state.factors(1.0)[0])
    assert np.linalg.norm(model.user_factors.astype(float), axis=1).max() <= 1
    assert len(model.history) == method.n_turns


def test_without_noise_the_published_fit_is_the_plain_one(ratings: Ratings) -> None:
    model = PUBLISHED_PLAIN.fit(ratings)
    state = plain_fit(ratings, 3, 1 / 32, 0.001, seed=0)
    errors = [state.advance(number, n_threads=1) for number in range(8)]
    np.testing.assert_array_equal(model.release.item_factors, state.factors(1.0)[1])
    assert [record.train_rmse for record in model.history] == errors
    assert model.guarantee.mode == "none"
    assert np.linalg.norm(model.user_factors.astype(float), axis=1).max() <= 1


def test_without_a_promise_it_is_plain_descent(ratings: Ratings) -> None:
    other = GaussianGD(n_factors=3, n_epochs=8, budget=Budget(math.inf)).fit(ratings)
    assert bits(PLAIN.fit(ratings)) == bits(other)
    facts = PLAIN.fit(ratings).release.configuration
    assert (facts["method"], facts["mode"], facts["learning_rate"]) == ("objective", None, 1.0)


def test_raw_ratings_are_predicted_by_products_alone(ratings: Ratings) -> None:
    model = EXACT.fit(ratings)
    products = np.clip(model.release.item_factors @ model.user_factors[0], 1, 5)
    np.testing.assert_allclose(
        model.predict(ratings.user_ids[0], list(ratings.catalogue.ids)), products, atol=1e-5
    )  # fmt: skip


@pytest.mark.parametrize("method", [EXACT, STEPS, PLAIN, PUBLISHED_PLAIN], ids=["exact", "steps", "plain", "published"])
def test_the_bits_are_the_same_for_any_number_of_threads(method: ObjectivePerturbation, ratings: Ratings) -> None:
    models = [method.fit(ratings, n_threads=n_threads) for n_threads in (1, 2, 3)]
    assert {bits(model) for model in models} == {bits(models[0])}
    assert len({model.history[-1].train_rmse for model in models}) == 1


def test_noise_comes_from_nobody_knows_where_unless_it_is_seeded(ratings: Ratings) -> None:
    fresh = replace(EXACT, noise_seed=None)
    assert bits(fresh.fit(ratings)) != bits(fresh.fit(ratings))
    assert not fresh.fit(ratings).guarantee.seeded
    assert SEEDED in EXACT.fit(ratings).guarantee.assumptions


@pytest.mark.parametrize(
    ("method", "stop"),
    [(replace(EXACT, noise_seed=None), 4), (STEPS, 4), (STEPS, 12), (PUBLISHED_PLAIN, 4), (PLAIN, 4)],
    ids=["exact", "steps, while fitting", "steps", "published", "plain"],
)
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(
    method: ObjectivePerturbation, stop: int, tmp_path: Path, ratings: Ratings
) -> None:
    def interrupt(record: EpochRecord) -> None:
        if record.epoch == stop:
            raise KeyboardInterrupt

    plan = Checkpoint(tmp_path / "run", resume=True)
    with pytest.raises(KeyboardInterrupt):
        method.fit(ratings, checkpoint=plan, callbacks=[interrupt])
    heard: list[int] = []
    resumed = method.fit(ratings, checkpoint=plan, callbacks=[lambda record: heard.append(record.epoch)])
    assert heard[-1] == method.n_turns
    assert 1 < heard[0] <= stop + 1
    if method.noise_seed is not None or not method.is_private:
        assert bits(resumed) == bits(method.fit(ratings))
    assert bits(resumed) == bits(method.fit(ratings, checkpoint=plan))  # noise is drawn once for a run


@pytest.mark.parametrize(("epoch", "n_records"), [(3, 3), (8, 8), (11, 11)])
def test_an_early_end_is_recorded(epoch: int, n_records: int, ratings: Ratings) -> None:
    model = STEPS.fit(ratings, callbacks=[lambda record: record.epoch == epoch])
    assert len(model.history) == n_records
    assert any("ended the run early" in one for one in model.guarantee.assumptions)
    steps = 8 if epoch <= 8 else epoch - 8
    assert any(f"after {steps} steps" in one for one in model.guarantee.assumptions)


def test_steps_that_are_too_long_are_refused(ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match=r"diverged in iteration .*: take a smaller learning_rate"):
        replace(PUBLISHED_PLAIN, learning_rate=1e9, n_epochs=20).fit(ratings)
    with pytest.raises(InvalidArgument, match="diverged"):
        replace(STEPS, learning_rate=30.0, n_epochs=40).fit(ratings)


def test_a_claim_is_unbounded_for_a_ledger(ratings: Ratings, tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded):
        EXACT.fit(ratings, ledger=Ledger(tmp_path / "ledger", Budget(100.0)))


def test_what_makes_no_sense_is_refused(ratings: Ratings, tmp_path: Path) -> None:
    for field, value in {"solver": "exact", "noise_seed": 1}.items():
        for plain in (PLAIN, PUBLISHED_PLAIN):
            with pytest.raises(InvalidArgument, match=rf"{field} means nothing with an infinite epsilon"):
                replace(plain, **{field: value})  # type: ignore[arg-type]
    certified = ObjectivePerturbation(budget=Budget(1.0, unit="rating", neighbours="replace"))
    for field, value in {"n_factors": 5, "n_epochs": 7, "learning_rate": 0.1}.items():
        with pytest.raises(InvalidArgument, match=rf"{field} means nothing with mode='certified'"):
            replace(certified, **{field: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="solver='steps' needs mode='paper'"):
        replace(certified, solver="steps")
    for budget in (Budget(1.0), Budget(1.0, unit="rating"), Budget(1.0, neighbours="replace")):
        with pytest.raises(InvalidArgument, match="needs unit='rating' and neighbours='replace'"):
            ObjectivePerturbation(budget=budget)
    for field, value in (("solver", "lbfgs"), ("mode", "fast"), ("learning_rate", 0), ("regularization", -1.0),
                         ("regularization", 0), ("n_epochs", 0), ("items_public", 1), ("seed", -1)):  # fmt: skip
        with pytest.raises(InvalidArgument, match=field):
            replace(EXACT, **{field: value})  # type: ignore[arg-type]
    for epsilon in (1e-300, 1e300):
        with pytest.raises(InvalidArgument, match=r"epsilon=1e.300 should be between 1e-09 and 1e\+09"):
            replace(EXACT, budget=Budget(epsilon))
    with pytest.raises(InvalidArgument, match="budget=None"):
        ObjectivePerturbation()
    with pytest.raises(InvalidArgument, match="in memory"):
        PLAIN.fit(StoredRatings.build(MemorySource(ratings), tmp_path / "store", memory=0))
    with pytest.raises(InvalidArgument, match="public catalogue"):
        EXACT.fit(Ratings.of([1], [2], [3], scale=(1, 5)))
    with pytest.raises(InvalidArgument, match="declared, not found"):
        EXACT.fit(Ratings.of([1, 2], [2, 2], [3, 4]))
    for method in (EXACT, PLAIN):
        with pytest.raises(InvalidArgument, match="a rating, not a person"):
            method.fit(ratings, user_budgets={1: 1.0})
    with pytest.raises(InvalidArgument, match="ledger means nothing with an infinite epsilon"):
        PLAIN.fit(ratings, ledger=object())  # type: ignore[arg-type]
