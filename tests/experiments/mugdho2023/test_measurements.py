"""Measurements of a run, and every figure of the paper on synthetic ratings from end to end."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.figure import Run, make
from experiments.mugdho2023.descent import Trial
from experiments.mugdho2023.measurements import SEARCHED, Parts

from dpmf import Budget, GaussianGD, Ratings
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.ratings.synthetic import make as make_ratings
from experiments.mugdho2023 import FIGURES, measurements, times

MOST = 8


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make_ratings(100, 40, mean_ratings=20)


@pytest.fixture
def parts(ratings: Ratings) -> Parts:
    train, test = ratings.split(0.2, seed=0)
    return Parts(train, test, n_threads=1, most=MOST)


@pytest.fixture
def small(ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make figures use synthetic ratings and few iterations."""
    monkeypatch.setattr(Run, "ratings", lambda run: ratings)
    monkeypatch.setattr(measurements, "_FEWEST", 2)
    monkeypatch.setattr(measurements, "_MOST", MOST)


def test_errors_are_those_of_the_model(parts: Parts) -> None:
    found = parts.settled(Trial(eps_i=0.3, n_factors=4, noise_seed=2), tolerance=0.0)
    model = GaussianGD(
        n_factors=4, n_epochs=MOST, budget=Budget(1.0), eps_i=0.3, mode="paper", noise_seed=2, items_public=True
    ).fit(parts.train, n_threads=1)
    assert found["iterations"] == MOST
    assert not found["settled"]
    assert found["train_rmse"] == model.history[-1].train_rmse
    assert found["clamped_rmse"] == pytest.approx(rmse(prediction_errors(model, parts.test)), rel=1e-6)
    products = (model.user_factors[parts.test.users] * model.release.item_factors[parts.test.items]).sum(axis=1)
    assert found["rmse"] == pytest.approx(rmse(products - parts.test.values), rel=1e-5)
    assert found["rmse"] > found["clamped_rmse"]
    assert found["epsilon"] == pytest.approx(model.guarantee.epsilon or math.nan, abs=2e-6)


def test_a_curve_passes_where_runs_end(parts: Parts) -> None:
    trial = Trial(eps_i=0.3, n_factors=4, noise_seed=2)
    curve = parts.curve(trial, (2, 5, MOST))
    assert [row["iterations"] for row in curve] == [2, 5, MOST]
    for row in curve:
        found = parts.settled(trial, most=row["iterations"], tolerance=0.0)
        assert row == {name: found[name] for name in row}


def test_a_run_settles_where_the_training_error_stops_changing(parts: Parts) -> None:
    trial = Trial(eps_i=math.inf, n_factors=4)
    errors = [row["train_rmse"] for row in parts.curve(trial, range(1, MOST + 1))]
    changes = np.abs(np.diff(errors))
    tolerance = 1.001 * changes[3]
    expected = 2 + int(np.argmax(changes < tolerance))
    found = parts.settled(trial, tolerance=tolerance)
    assert (found["iterations"], found["settled"]) == (expected, True)


def test_a_fifth_of_the_iterations_is_always_run(parts: Parts) -> None:
    found = parts.settled(Trial(n_factors=4), most=50, tolerance=math.inf)
    assert (found["iterations"], found["settled"]) == (10, True)


def test_a_run_that_diverges_has_infinite_errors(parts: Parts) -> None:
    far = replace(parts, most=200)
    trial = Trial(n_factors=4, step=1.0)
    found = far.settled(trial)
    assert (found["rmse"], found["epsilon"], found["settled"]) == (math.inf, math.inf, False)
    assert found["iterations"] < 200
    curve = far.curve(trial, (1, 150, 200))
    assert math.isfinite(curve[0]["rmse"])
    assert [row["rmse"] for row in curve[1:]] == [math.inf, math.inf]


def test_a_searched_step_is_better_than_one_that_is_too_long_or_too_short(parts: Parts) -> None:
    trial = Trial(n_factors=4, noise_seed=1)
    longer = replace(parts, most=60)
    step = longer.searched_step(trial)
    assert 1e-5 < step < 1e-2
    errors = [longer.settled(replace(trial, step=one), tolerance=0.0)["rmse"] for one in (1e-5, step, 1e-1)]
    assert errors[1] < errors[0]
    assert errors[1] < errors[2]


@pytest.mark.parametrize(("published", "found"), [(0.9, False), (1.1, True)])
def test_a_step_is_searched_where_the_published_one_does_not_work(
    parts: Parts, tmp_path: Path, published: float, found: bool
) -> None:
    (tmp_path / "steps-made.csv").write_text(
        "reading,step,searched,rmse,baseline_rmse\n"
        f'"published, raw",0.0005,False,{published},1.0\n'
        '"published, raw",0.0002,True,0.8,1.0\n'
    )
    (tmp_path / "steps-made.json").write_text(json.dumps({"full": False, "seed": 0}))
    trials = parts.readings(Run("made", tmp_path / "figure1-made"))
    assert (SEARCHED in trials) is found
    assert list(trials)[:3] == ["published, raw", "published, mean", "both clipped, mean"]
    if found:
        assert trials[SEARCHED].step == 0.0002


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["figure1", "figure4", "figure7", "figure16", "steps"])
def test_every_figure_is_made(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "_TURNS", 1)
    out = tmp_path / f"{name}-made"
    verdict = make(FIGURES[name], Run("made", out, n_threads=1), "")
    assert verdict.sentence.endswith(".")
    assert out.with_name(f"{name}-made.png").stat().st_size > 1000
    assert len(out.with_name(f"{name}-made.csv").read_text().splitlines()) > 3
