"""One run of a method: split, train, test, and what it took.

>>> from dpmf.methods import SGD
>>> from dpmf.ratings.synthetic import make
>>> run = train_and_test(SGD(n_factors=4, n_epochs=2), make(60, 40), holdout=0.2, n_threads=1)
>>> run.accuracy["rmse"] > 0 and len(run.model.history)
2
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass

from dpmf.engine.checkpoints import Checkpoint
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import mae, rmse
from dpmf.methods import SGD
from dpmf.methods.sgd import Callback
from dpmf.model import Model
from dpmf.ratings import Ratings


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model and figures about it, for the holder of the data.

    Attributes:
        model: the result.
        n_ratings: how many ratings it was trained on.
        seconds: wall time of the training, set-up included.
        accuracy: rmse, mae and baseline_rmse on the held-out ratings; empty if nothing was held out.
        streamed: whether the ratings stayed on the disk.
    """

    model: Model
    n_ratings: int
    seconds: float
    accuracy: dict[str, float]
    streamed: bool = False

    @property
    def epoch_seconds(self) -> float:
        """Mean wall time of an epoch."""
        return sum(record.seconds for record in self.model.history) / len(self.model.history)

    @property
    def updates_per_second(self) -> float:
        """Ratings visited per second while training."""
        return self.n_ratings / self.epoch_seconds


def train_and_test(
    method: SGD,
    ratings: Ratings,
    *,
    holdout: float = 0.0,
    how: str = "random",
    seed: int = 0,
    n_threads: int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
) -> Run:
    """Train on ratings, with a part of them held out for the accuracy figures unless `holdout` is 0."""
    train, test = ratings.split(holdout, seed=seed, how=how) if holdout else (ratings, None)
    began = time.perf_counter()
    model = method.fit(train, n_threads=n_threads, callbacks=callbacks, checkpoint=checkpoint)
    seconds = time.perf_counter() - began
    accuracy = {}
    if test is not None and len(test):
        errors = prediction_errors(model, test, n_threads=n_threads)
        accuracy = {"rmse": rmse(errors), "mae": mae(errors), "baseline_rmse": rmse(baseline_errors(train, test))}
    used = 1 - method.validation
    return Run(model, round(len(train) * used), seconds, accuracy)


def peak_memory() -> int | None:
    """Return the most memory this process has had resident, in bytes, or None where that is not known."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
