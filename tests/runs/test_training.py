"""A run: the figures it reports are those of its own split and model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpmf.compare.demo import run_demo
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.leak import leak_figures
from dpmf.evaluation.metrics import mae, rmse
from dpmf.methods import SGD
from dpmf.model import Release
from dpmf.ratings import Ratings
from dpmf.runs.memory import forget_peak_memory, peak_memory
from dpmf.runs.training import train_and_test

METHOD = SGD(n_factors=4, n_epochs=5)


def test_accuracy_is_that_of_the_held_out_part(small_ratings: Ratings) -> None:
    run = train_and_test(METHOD, small_ratings, holdout=0.2, seed=3)
    train, test = small_ratings.split(0.2, seed=3)
    errors = prediction_errors(METHOD.fit(train), test)
    assert run.n_ratings == len(train)
    assert run.accuracy == {
        "rmse": rmse(errors),
        "mae": mae(errors),
        "baseline_rmse": rmse(baseline_errors(train, test)),
        **leak_figures(run.model, train, test, n_threads=1),
    }


def test_without_a_hold_out_all_is_learnt_and_nothing_measured(small_ratings: Ratings) -> None:
    run = train_and_test(METHOD, small_ratings)
    assert run.n_ratings == len(small_ratings)
    assert run.accuracy == {}


def test_speed_is_ratings_by_seconds(small_ratings: Ratings) -> None:
    run = train_and_test(METHOD, small_ratings)
    per_epoch = sum(record.seconds for record in run.model.history) / 5
    assert run.epoch_seconds == pytest.approx(per_epoch)
    assert run.updates_per_second == pytest.approx(len(small_ratings) / per_epoch)
    assert run.seconds >= 5 * run.epoch_seconds


def test_peak_memory_is_in_bytes() -> None:
    peak = peak_memory()
    assert peak is None or 10_000_000 < peak < 10**12


def test_a_peak_can_be_forgotten() -> None:
    if not forget_peak_memory():
        pytest.skip("this system does not let a process forget its peak")
    before = peak_memory()
    assert before is not None
    hump = np.ones(100_000_000, np.uint8)
    assert (peak_memory() or 0) >= before + 90_000_000
    del hump
    assert forget_peak_memory()
    assert (peak_memory() or 0) < before + 50_000_000


def test_the_demonstration_recommends_space_to_somebody_who_loves_space(tmp_path: Path) -> None:
    shown = run_demo(tmp_path / "new" / "demo", n_users=12_000)
    # Noise is fresh in every run: mostly there are four or five, and three in one run of four. Chance would give one.
    assert sum("Space" in genres for _, genres in shown.recommendations) >= 2
    assert not {one.title for one, _ in shown.recommendations} & set(shown.ratings)
    errors = [run.accuracy["rmse"] for run in shown.runs.values()]
    assert errors == sorted(errors, reverse=True)  # the less privacy, the better the predictions
    assert errors[0] < shown.runs[1.0].accuracy["baseline_rmse"]
    assert Release.load(shown.release).guarantee.certified
    assert shown.picture is not None
    assert shown.picture.is_file()
