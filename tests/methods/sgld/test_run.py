"""SGLD: the same bits for any number of threads and from the disk, going on after a stop, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine import layout
from dpmf.engine.resources import Resources
from dpmf.engine.store import StoredRatings
from dpmf.errors import DpmfError, InvalidArgument
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import SGD, SGLD
from dpmf.model import Model
from dpmf.privacy import Budget
from dpmf.ratings import Ratings
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

PLAIN = SGLD(n_factors=10, n_epochs=4, budget=Budget(math.inf), seed=5)
CLAIM = SGLD(
    n_factors=10,
    n_epochs=4,
    budget=Budget(2000),
    mode="paper",
    cap=20,
    rho=3.0,
    items_public=True,
    noise_seed=7,
    seed=5,
)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(300, 120, mean_ratings=30)


@pytest.fixture(autouse=True)
def _many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small data have a grid as large data have it."""
    monkeypatch.setattr(layout, "_LEAST_BLOCK", 100)


def bits(model: Model) -> tuple[bytes, ...]:
    release = model.release
    arrays = (model.user_factors, model.user_biases, release.item_factors, release.item_biases)
    return (*(array.tobytes() for array in arrays), np.float64(release.mean).tobytes())


@pytest.mark.parametrize("method", [replace(PLAIN, table=0), replace(CLAIM, table=0)])
def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(ratings: Ratings, method: SGLD) -> None:
    models = [method.fit(ratings, n_threads=n_threads) for n_threads in (1, 2, 3)]
    assert {bits(model) for model in models} == {bits(models[0])}
    assert len({tuple(one.train_rmse for one in model.history) for model in models}) == 1


@pytest.mark.parametrize("memory", [0, 10**9])
@pytest.mark.parametrize("table", [0, 1 << 16])
def test_training_from_disk_gives_the_same_bits(tmp_path: Path, ratings: Ratings, memory: int, table: int) -> None:
    method = replace(PLAIN, table=table)
    stored = StoredRatings.build(MemorySource(ratings), tmp_path / "store", memory=memory)
    assert stored.blocks.size >= 8
    assert bits(method.fit(stored, n_threads=2)) == bits(method.fit(ratings, n_threads=1))


def test_averaging_draws_predicts_better_than_one_draw_and_as_well_as_descent() -> None:
    train, test = make(1500, 400, mean_ratings=60).split(0.1, seed=2)
    method = SGLD(n_factors=8, budget=Budget(math.inf))
    errors = {
        name: rmse(prediction_errors(one.fit(train), test))
        for name, one in (("mean", method), ("draw", replace(method, n_samples=1)), ("descent", SGD(n_factors=8)))
    }
    assert errors["mean"] < errors["draw"] < rmse(baseline_errors(train, test))
    assert errors["mean"] < errors["descent"] + 0.005


def test_a_callback_may_stop_before_the_first_draw_that_counts(ratings: Ratings) -> None:
    model = replace(PLAIN, n_epochs=9, n_samples=1).fit(ratings, callbacks=[lambda record: record.epoch == 2])
    assert len(model.history) == 2
    assert np.isfinite(model.release.item_factors).all()
    assert model.release.item_factors.any()


def test_a_wider_scale_gives_the_same_model_in_its_own_units(ratings: Ratings) -> None:
    users, items = ratings.users, ratings.items
    narrow = Ratings.of(users, items, ratings.values, scale=(1, 5), items=range(ratings.n_items))
    wide = Ratings.of(users, items, 25 * ratings.values, scale=(25, 125), items=range(ratings.n_items))
    for method in (PLAIN, replace(CLAIM, kappa=0.0)):
        small, large = method.fit(narrow), method.fit(wide)
        expected = 25 * small.predict(0, range(ratings.n_items))
        np.testing.assert_allclose(large.predict(0, range(ratings.n_items)), expected, rtol=1e-3)


def test_a_step_that_diverges_ends_in_a_clear_error(ratings: Ratings) -> None:
    with pytest.raises(DpmfError, match=r"diverged in epoch \d+ at step size [\d.]+: use a smaller learning_rate"):
        replace(PLAIN, learning_rate=1.0, regularization=0.1).fit(ratings)


def test_steps_that_no_prior_could_follow_are_refused(ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match=r"learning_rate=0\.1 is too large for regularization=20"):
        replace(CLAIM, regularization=20.0, learning_rate=0.1).fit(ratings)


def test_steps_that_are_chosen_are_never_too_large() -> None:
    rates = [
        SGLD(n_factors=K, budget=Budget(epsilon), mode="paper", rho=rho).resolve().learning_rate
        for K in (16, 1024) for epsilon in (1.0, 1e4, 1e6) for rho in (1.0, 30.0)
    ]  # fmt: skip
    assert max(rates) == 0.1
    assert SGLD(budget=Budget(1e4), mode="paper", rho=10.0).resolve().learning_rate == pytest.approx(0.04 / 15.625)
    assert SGLD(n_factors=1024, budget=Budget(math.inf)).resolve().learning_rate * 32 < 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_factors", 0), ("decay", -1.0), ("regularization", 0.0), ("temperature", 0.0), ("temperature", math.inf),
        ("n_samples", 0), ("n_samples", 5), ("table", -1), ("cap", 0), ("kappa", -0.5), ("rho", 0.0), ("mode", "exact"),
    ],
)  # fmt: skip
def test_a_bad_setting_is_refused_by_name_and_value(field: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match=rf"{field}={value!r}"):
        replace(CLAIM, **{field: value})


def test_nothing_waits_so_long_that_the_busiest_row_would_show_it(ratings: Ratings) -> None:
    method = replace(PLAIN, n_factors=1)
    with method.prepared(ratings, None) as prepared:
        chain = method.chain_on(*prepared, Resources(1))
    busiest = int(np.bincount(ratings.items).max())
    for rate in (1e-4, 0.01, 0.1):
        waiting = chain.sampler.patience(rate)
        assert waiting <= len(ratings) / 256
        assert waiting * busiest / len(ratings) * rate <= 0.1  # of the time in which its ratings pull it back
    assert chain.sampler.patience(1e-4) == len(ratings) // 256


@pytest.mark.parametrize("learning_rate", [1.5, 5.0])
def test_a_step_beyond_what_the_priors_bear_is_refused(learning_rate: float) -> None:
    with pytest.raises(InvalidArgument, match="too large for regularization"):
        replace(CLAIM, learning_rate=learning_rate, regularization=0.3).resolve()
