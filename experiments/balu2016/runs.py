"""What all figures share: the three parts of the ratings, a run and its measures, and settings found by search."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpmf import Budget, DpmfError, Ratings, Sketch
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.leak import frequent, leak_figures
from dpmf.evaluation.metrics import rmse
from dpmf.model import Model
from experiments.balu2016.dense import fit_dense
from experiments.figure import Run
from experiments.search import two_stage_search

KINDS = {"regular": 0, "k = 1": 1, "k = 4": 4}  # rows of the table; 0 for regular factorization
FACTORS, GAINS, THRESHOLDS = (8, 16, 32), (1, 2, 4), (2.0, 4.0, 8.0, math.inf)
_DECAY = 9.0  # b in η / (1 + b t/T), not given by the paper: down to a tenth
_LEAST = 10  # ratings that a user and an item need to count in validation and test
_RATES, PENALTIES = (0.003, 0.3), (1e-4, 1.0)  # ranges of the search
_USUAL_PENALTY = 0.03  # during the search for the learning rate


@dataclass(frozen=True)
class Trial:
    """One run.

    Attributes:
        depth: k, or 0 for regular factorization.
        factors: d.
        gain: γ.
        rate: η.
        penalty: λ.
        threshold: ε, the greatest e²/2 with which a rating counts.
    """

    depth: int
    factors: int
    gain: float = 1.0
    rate: float = 0.03
    penalty: float = _USUAL_PENALTY
    threshold: float = math.inf


@dataclass(frozen=True, eq=False)
class Parts:
    """The ratings in three parts: four fifths for training, a tenth for validation, a tenth for testing.

    Attributes:
        train, validation, test: the three.
        n_epochs: of a run.
        points: of a stage of a search, for rates and for penalties.
        seed, n_threads: those of the run.
    """

    train: Ratings
    validation: Ratings
    test: Ratings
    n_epochs: int
    points: tuple[int, int]
    seed: int
    n_threads: int

    @classmethod
    def of(cls, run: Run) -> Parts:
        """Read and split the data of a run."""
        rest, test = run.ratings().split(0.1, seed=run.seed)
        train, validation = rest.split(1 / 9, seed=run.seed + 1)
        return cls(
            train,
            frequent(train, validation, _LEAST),
            frequent(train, test, _LEAST),
            n_epochs=100 if run.full else 12,
            points=(5, 5) if run.full else (3, 4),
            seed=run.seed,
            n_threads=run.n_threads,
        )

    def fit(self, trial: Trial) -> Model:
        """Fit to the training part, means subtracted."""
        method = Sketch(
            n_factors=trial.factors,
            n_epochs=self.n_epochs,
            budget=Budget(trial.threshold),
            mode="paper",
            depth=trial.depth or 1,
            gain=trial.gain,
            biases="means",
            learning_rate=trial.rate,
            decay=_DECAY,
            regularization=trial.penalty,
            items_public=True,
            seed=self.seed,
        )
        return method.fit(self.train, n_threads=self.n_threads) if trial.depth else fit_dense(method, self.train)

    def loss(self, trial: Trial) -> float:
        """Return the error on the validation part, infinite where training diverges."""
        try:
            return rmse(prediction_errors(self.fit(trial), self.validation, n_threads=self.n_threads))
        except DpmfError:
            return math.inf

    def figures(self, trial: Trial) -> dict[str, float]:
        """Return rmse on the test part and kld, for all and for top users; errors of a diverged run are infinite."""
        try:
            model = self.fit(trial)
        except DpmfError:
            return {"rmse": math.inf, "kld": math.nan, "rmse_top_users": math.inf, "kld_top_users": math.nan}
        error = rmse(prediction_errors(model, self.test, n_threads=self.n_threads))
        return {"rmse": error, **leak_figures(model, self.train, self.test, n_threads=self.n_threads)}

    def with_rate(self, trial: Trial) -> Trial:
        """Return a trial with the learning rate that is best on the validation part."""
        rate = two_stage_search(lambda rate: self.loss(replace(trial, rate=rate)), *_RATES, points=self.points[0])
        return replace(trial, rate=rate)

    def with_penalty(self, trial: Trial) -> Trial:
        """Return a trial with the penalty that is best on the validation part."""
        best = two_stage_search(lambda one: self.loss(replace(trial, penalty=one)), *PENALTIES, points=self.points[1])
        return replace(trial, penalty=best)


def searched(run: Run, parts: Parts, trial: Trial, *, penalty: bool) -> Trial:
    """Return a trial with searched learning rate, and penalty if asked; the search survives an interruption."""

    def search(searched: str, depth: int, factors: int, gain: float) -> dict[str, float]:
        found = parts.with_rate(trial)
        found = parts.with_penalty(found) if penalty else found
        return {"rate": found.rate, "penalty": found.penalty}

    what = "rate and penalty" if penalty else "rate"
    point = {"searched": what, "depth": trial.depth, "factors": trial.factors, "gain": trial.gain}
    found = run.each([point], search)[0]
    return replace(trial, rate=found["rate"], penalty=found["penalty"])
