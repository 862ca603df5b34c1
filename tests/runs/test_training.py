"""A run: the figures it reports are those of its own split and model."""

from __future__ import annotations

import pytest

from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.leak import leak_figures
from dpmf.evaluation.metrics import mae, rmse
from dpmf.methods import SGD
from dpmf.ratings import Ratings
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
