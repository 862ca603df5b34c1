"""Training in a count sketch: sizes, reading, biases, determinism, checkpoints, the claim, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.store import StoredRatings
from dpmf.errors import DpmfError, InvalidArgument
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.kernels import sketch as kernels
from dpmf.methods import SGD, Sketch
from dpmf.methods.sketch.run import exact_means
from dpmf.model import EpochRecord, Model
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

METHOD = Sketch(n_factors=4, n_epochs=6, budget=Budget(math.inf))
CLAIM = replace(METHOD, budget=Budget(2.0), mode="paper")


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(300, 80, mean_ratings=25)


def bits(model: Model) -> tuple[bytes, ...]:
    release = model.release
    return release.item_factors.tobytes(), release.item_biases.tobytes(), model.user_factors.tobytes()


def error(method: Sketch | SGD, parts: tuple[Ratings, Ratings]) -> float:
    return rmse(prediction_errors(method.fit(parts[0]), parts[1]))


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(ratings: Ratings) -> None:
    models = [METHOD.fit(ratings, n_threads=n_threads) for n_threads in (1, 2, 5)]
    assert {bits(model) for model in models} == {bits(models[0])}
    assert bits(replace(METHOD, seed=1).fit(ratings)) != bits(models[0])


def test_a_large_table_does_as_well_as_dense_factors() -> None:
    parts = make(1000, 200, mean_ratings=60).split(0.1, seed=1)
    plain = {"n_factors": 8, "n_epochs": 40, "learning_rate": 0.02, "regularization": 0.05}
    dense = error(SGD(**plain), parts)  # type: ignore[arg-type]
    for depth in (1, 4):
        errors = [
            error(Sketch(**plain, budget=Budget(math.inf), depth=depth, gain=gain), parts)  # type: ignore[arg-type]
            for gain in (0.01, 1.0, 8.0)
        ]
        assert errors[0] == pytest.approx(dense, abs=0.01)
        assert errors[0] < errors[1] < errors[2]  # less space, more collisions


def test_the_gain_sets_the_size(ratings: Ratings) -> None:
    for depth, gain in ((1, 1.0), (4, 2.0), (3, 4.0)):
        method = replace(METHOD, depth=depth, gain=gain)
        table = method.chosen_for(ratings).table_for(ratings.n_users, ratings.n_items, ratings.scale)
        dense = 4 * 4 * (ratings.n_users + ratings.n_items)
        assert dense / gain <= table.memory < dense / gain + 4 * depth
    assert replace(METHOD, width=123).chosen_for(ratings).table_for(9, 9, ratings.scale).memory == 4 * 4 * 123


@pytest.mark.parametrize("biases", ["sketch", "means", "none"])
@pytest.mark.parametrize("query", ["mean", "median"])
def test_every_kind_of_reading_and_biases_learns(biases: Any, query: Any) -> None:
    parts = make(1000, 200, mean_ratings=60).split(0.1, seed=1)
    method = Sketch(n_factors=8, n_epochs=30, budget=Budget(math.inf), biases=biases, query=query)
    middle = rmse(np.full(len(parts[1]), parts[0].values.mean()) - parts[1].values)
    assert error(method, parts) < (0.97 if biases == "none" else 0.9) * middle


def test_means_are_those_of_items_and_then_of_users(ratings: Ratings) -> None:
    mean = float(ratings.values.mean())
    b, c = exact_means(ratings, mean)
    items, values = ratings.of_user(3)
    mine = ratings.items == 7
    assert c[7] == pytest.approx(ratings.values[mine].mean() - mean, abs=1e-5)
    assert b[3] == pytest.approx(np.mean(values - mean - c[items]), abs=1e-5)


def test_decay_is_linear_or_as_in_the_paper() -> None:
    method = replace(METHOD, learning_rate=0.1, n_epochs=10)
    assert replace(method, decay="linear").rate(6) == pytest.approx(0.05)
    assert replace(method, decay=3.0).rate(6) == pytest.approx(0.1 / 2.5)


def test_ratings_of_any_scale_give_the_same_model(ratings: Ratings) -> None:
    wide = replace(ratings, values=10 * ratings.values, scale=Scale(10, 50))
    one, ten = METHOD.fit(ratings), METHOD.fit(wide)
    np.testing.assert_allclose(10 * one.release.item_biases, ten.release.item_biases, atol=1e-3)
    claims = replace(CLAIM, budget=Budget(2.0)).fit(ratings), replace(CLAIM, budget=Budget(200.0)).fit(wide)
    np.testing.assert_allclose(
        math.sqrt(10) * claims[0].release.item_factors, claims[1].release.item_factors, atol=1e-3
    )  # e²/2 is a hundred times as large


def test_a_run_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path, ratings: Ratings) -> None:
    def interrupt(record: EpochRecord) -> None:
        if record.epoch == 4:
            raise KeyboardInterrupt

    plan = Checkpoint(tmp_path / "run", resume=True)
    with pytest.raises(KeyboardInterrupt):
        METHOD.fit(ratings, checkpoint=plan, callbacks=[interrupt])
    heard: list[int] = []
    resumed = METHOD.fit(ratings, checkpoint=plan, callbacks=[lambda record: heard.append(record.epoch)])
    assert heard == list(range(heard[0], 7))
    assert 1 < heard[0] <= 5  # no snapshot is begun while another is being written
    assert bits(resumed) == bits(METHOD.fit(ratings))
    with pytest.raises(DpmfError):
        replace(METHOD, depth=2).fit(ratings, checkpoint=plan)


def test_a_claim_is_a_claim_about_ratings_and_never_certified(ratings: Ratings, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", Budget(math.inf, unit="rating"))
    guarantee = CLAIM.fit(ratings, ledger=ledger).guarantee
    assert (guarantee.mode, guarantee.certified, guarantee.unit) == ("paper", False, "rating")
    assert (guarantee.epsilon, guarantee.recomputed_epsilon()) == (2.0, math.inf)
    text = " ".join(guarantee.assumptions)
    for words in (
        "without any chance",
        "valid likelihood",
        "section 4.3 bounds e²",
        "subtracted as they are",
        "size of",
    ):
        assert words in text
    assert ledger.spent() == math.inf
    given = replace(CLAIM, width=500, learning_rate=0.02, regularization=0.05, biases="sketch")
    text = " ".join(given.fit(ratings).guarantee.assumptions)
    assert "subtracted as they are" not in text
    assert "size of" not in text


def test_the_claim_is_the_threshold_of_the_loss(ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CLAIM.chosen_for(ratings).step(1, 3.0, ratings.scale).most == 4.0  # e²/2 ≤ 2
    assert METHOD.chosen_for(ratings).step(1, 3.0, ratings.scale).most == kernels.NO_LIMIT
    assert bits(replace(CLAIM, budget=Budget(0.02)).fit(ratings)) != bits(CLAIM.fit(ratings))


def test_divergence_is_said(ratings: Ratings) -> None:
    with pytest.raises(DpmfError, match="use a smaller learning_rate"):
        replace(METHOD, learning_rate=50.0).fit(ratings)


def test_what_makes_no_sense_is_refused(ratings: Ratings, tmp_path: Path) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"budget": None}, "Budget"),
        ({"depth": 0}, "depth=0"),
        ({"depth": 17}, "depth=17"),
        ({"gain": 0.0}, "gain=0.0"),
        ({"width": 0}, "width=0"),
        ({"query": "mode"}, "choose mean or median"),
        ({"biases": "yes"}, "choose sketch or means or none"),
        ({"mode": "best"}, "choose certified or paper"),
        ({"decay": -1.0}, "decay=-1.0"),
        ({"sampling_rate": 0.5}, "sampling_rate means nothing with an infinite epsilon"),
        ({"noise_seed": 1}, "noise_seed means nothing with an infinite epsilon"),
        ({"budget": Budget(2.0), "biases": "means"}, "biases means nothing with mode='certified'"),
        ({"budget": Budget(2.0), "sampling_rate": 1.0}, "sampling_rate=1.0"),
        ({"budget": Budget(2.0, unit="rating")}, "protects users"),
        ({"budget": Budget(2.0, neighbours="replace"), "mode": "paper"}, "rating that is added"),
    )
    for change, words in wrong:
        with pytest.raises(InvalidArgument, match=words):
            replace(METHOD, **change)
    with pytest.raises(InvalidArgument, match="user_budgets means nothing"):
        CLAIM.fit(ratings, user_budgets={})
    with pytest.raises(InvalidArgument, match="ledger means nothing"):
        METHOD.fit(ratings, ledger=Ledger(tmp_path / "ledger", Budget(1.0)))
    with pytest.raises(InvalidArgument, match="public catalogue"):
        CLAIM.fit(Ratings.of([1], [2], [3], scale=(1, 5)))
    with pytest.raises(InvalidArgument, match="too many"):
        replace(METHOD, width=1 << 30).fit(ratings)
    with pytest.raises(InvalidArgument, match="in memory"):
        METHOD.fit(StoredRatings.build(MemorySource(ratings), tmp_path / "store", memory=0))
