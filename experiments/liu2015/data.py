"""The data of the figures, and errors on held-out ratings.

1 % of the ratings are held out at random; the paper uses Netflix's probe set, which is harder. Without `--full`, sets
of more than 20 M ratings are reduced to every tenth user.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmf import Budget, Ratings
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import Method
from dpmf.ratings.subset import select_users
from experiments.figure import Run

DATA = ("netflix", "ml-1m")
K = 16
"""Number of factors of figures that do not vary it."""

PLAIN = Budget(math.inf)
HOLDOUT = 0.01
_LARGE, _EVERY = 20_000_000, 10


@dataclass(frozen=True, eq=False)
class Parts:
    """Training and test ratings, the seed of the split, and the number of threads."""

    ratings: Ratings
    train: Ratings
    test: Ratings
    seed: int
    n_threads: int

    @classmethod
    def of(cls, run: Run) -> Parts:
        """Read, reduce if necessary, and split."""
        ratings = run.ratings()
        if len(ratings) > _LARGE and not run.full:
            ratings = select_users(ratings, np.arange(0, ratings.n_users, _EVERY))
        train, test = ratings.split(HOLDOUT, seed=run.seed)
        return cls(ratings, train, test, run.seed, run.n_threads)

    def error(self, method: Method) -> float:
        """Train, and return the error on the held-out ratings."""
        return rmse(prediction_errors(method.fit(self.train, n_threads=self.n_threads), self.test))

    def baseline(self) -> float:
        """Return the error of the per-user mean."""
        return rmse(baseline_errors(self.train, self.test))
