"""Measurements of a run: training and held-out errors along the way, where it settles, and the claimed ε.

Errors on held-out ratings are `rmse`, of raw predictions, as published; and `clamped_rmse`, of predictions clamped to
the scale, as dpmf makes them. A run that diverges has infinite errors.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmf import Ratings
from dpmf.engine.threads import run_tasks
from dpmf.errors import InvalidArgument
from dpmf.evaluation import baseline_errors
from dpmf.evaluation.metrics import rmse
from dpmf.kernels.scores import predict_pairs
from dpmf.methods.gaussian.defaults import PUBLISHED
from experiments.figure import Row, Run
from experiments.mugdho2023.data import ratings_of
from experiments.mugdho2023.descent import Moment, Trial, descend
from experiments.search import two_stage_search

SEARCHED = "searched step, raw"
TOLERANCE = 1e-4  # of the training error: the paper's stopping rule
_HOLDOUT = 0.1
_VALIDATION = 0.1  # of the training ratings
_SLOWEST, _QUICKEST = 1e-5, 1e-2  # range of the search
_PAIRS_PER_TASK = 1 << 16
_VISITS = 1.5e8  # of ratings in a run that is not full
_FEWEST, _MOST = 60, 250  # iterations of such a run
_FULL = 1000
_EARLIEST = 5  # a fifth of the iterations is always run
REPEATS = 3  # of a run that is full


@dataclass(frozen=True, eq=False)
class Parts:
    """Training and held-out ratings.

    Attributes:
        train, test: the two parts.
        n_threads: the number of threads.
        most: the largest number of iterations of a run.
    """

    train: Ratings
    test: Ratings
    n_threads: int
    most: int

    @classmethod
    def of(cls, run: Run) -> Parts:
        """Read and split the data of a run."""
        train, test = ratings_of(run).split(_HOLDOUT, seed=run.seed)
        most = _FULL if run.full else int(min(max(_VISITS / len(train), _FEWEST), _MOST))
        return cls(train, test, run.n_threads, most)

    @property
    def half(self) -> int:
        """A number of iterations that is enough to see whether a step is too long."""
        return max(self.most // 2, 1)

    @property
    def width(self) -> float:
        """D, the width of the scale."""
        return self.train.scale.hi - self.train.scale.lo

    @property
    def baseline(self) -> float:
        """The error of the free baseline, the per-user mean of the training ratings."""
        return rmse(baseline_errors(self.train, self.test))

    def errors(self, moment: Moment) -> dict[str, float]:
        """Return the three errors of a state."""
        predicted, users = np.empty(len(self.test), np.float32), self.test.users
        no_b, no_c = np.zeros(len(moment.T), np.float32), np.zeros(len(moment.X), np.float32)

        def predict(task: int) -> None:
            part = slice(task * _PAIRS_PER_TASK, (task + 1) * _PAIRS_PER_TASK)
            pairs = users[part], self.test.items[part]
            predict_pairs(*pairs, moment.T, moment.X, no_b, no_c, moment.centre, predicted[part])

        run_tasks(predict, -(-len(predicted) // _PAIRS_PER_TASK), self.n_threads)
        scale, given = self.test.scale, self.test.values
        return {
            "train_rmse": moment.train_rmse,
            "rmse": rmse(predicted - given),
            "clamped_rmse": rmse(np.clip(predicted, scale.lo, scale.hi) - given),
        }

    def curve(self, trial: Trial, iterations: Collection[int]) -> list[dict[str, Any]]:
        """Return the errors after each of these numbers of iterations; infinite once the run has diverged."""
        rows: list[dict[str, Any]] = []
        try:
            for moment in descend(self.train, trial, n_threads=self.n_threads):
                if moment.iterations in iterations:
                    rows.append({"iterations": moment.iterations, **self.errors(moment)})
                if moment.iterations == max(iterations):
                    break
        except InvalidArgument:
            rows += [{"iterations": one, **_DIVERGED} for one in sorted(iterations)[len(rows) :]]
        return rows

    def settled(self, trial: Trial, *, most: int | None = None, tolerance: float = TOLERANCE) -> dict[str, Any]:
        """Return errors, iterations and the claim of a run until the training error changes by less than a tolerance.

        The error may be flat at first, or rise; so a fifth of the iterations is always run.

        Args:
            trial: what to run.
            most: the largest number of iterations.
            tolerance: 0 for exactly `most` iterations.
        """
        most = self.most if most is None else most
        began, before, moment = time.perf_counter(), math.inf, None
        try:
            for moment in descend(self.train, trial, n_threads=self.n_threads):
                done = moment.iterations >= most // _EARLIEST and abs(before - moment.train_rmse) < tolerance
                before = moment.train_rmse
                if done or moment.iterations == most:
                    break
        except InvalidArgument:
            return {
                "iterations": moment.iterations + 1 if moment else 1,
                "settled": False,
                "epsilon": math.inf,
                **_DIVERGED,
            }
        assert moment is not None
        return {
            "iterations": moment.iterations,
            "settled": done,
            "epsilon": trial.claimed(self.width, moment.iterations),
            **self.errors(moment),
            "seconds": (time.perf_counter() - began) / moment.iterations,
        }

    def searched_step(self, trial: Trial) -> float:
        """Return the best step after `half` iterations on a validation part, a tenth of the training ratings."""
        train, validation = self.train.split(_VALIDATION, seed=trial.seed + 1)
        parts = replace(self, train=train, test=validation)

        def loss(step: float) -> float:
            return float(parts.settled(replace(trial, step=step), most=self.half, tolerance=0.0)["rmse"])

        return two_stage_search(loss, _SLOWEST, _QUICKEST)

    def readings(self, run: Run) -> dict[str, Trial]:
        """Return the trials that figures compare: the published readings, and the one with which all steps converge.

        Where the published step is worse than the free baseline on raw ratings, a searched step is added: that of the
        figure `steps` of the same data, if it exists.
        """
        names = "published, raw", "published, mean", "both clipped, mean"
        trials = {name: Trial(name, seed=run.seed) for name in names}
        usual = trials["published, raw"]

        def probe(step: float) -> dict[str, float]:
            works = self.settled(usual, most=self.half, tolerance=0.0)["rmse"] < self.baseline
            return {"searched_step": usual.step if works else self.searched_step(usual)}

        step = _step_found(run.beside("steps")) or run.each([{"step": usual.step}], probe)[0]["searched_step"]
        return trials if step == usual.step else {**trials, SEARCHED: replace(usual, step=step)}


def _step_found(rows: list[Row]) -> float | None:
    """Return the step for raw ratings from the rows of the figure `steps`; None without them."""
    published = [row for row in rows if row["reading"] == "published, raw"]
    for usual in published:
        if usual["step"] == PUBLISHED["learning_rate"] and usual["rmse"] < usual["baseline_rmse"]:
            return float(usual["step"])
    return next((row["step"] for row in published if row["searched"]), None)


_DIVERGED = {"train_rmse": math.inf, "rmse": math.inf, "clamped_rmse": math.inf}
