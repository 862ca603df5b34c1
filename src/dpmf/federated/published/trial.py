"""One simulation: split, run, test, and what it took.

>>> from dpmf.federated.published.scenario import Scenario
>>> from dpmf.ratings.synthetic import make
>>> trial = try_out(Scenario("s2", rounds=2, epsilon=5.0, n_factors=4), make(60, 40), holdout=0.2, n_threads=1)
>>> trial.accuracy["rmse"] > 0 and trial.outcome.rounds
2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dpmf.engine.checkpoints import Checkpoint
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import mae, rmse
from dpmf.federated.certified.simulation import CertifiedOutcome, CertifiedScenario, simulate_certified
from dpmf.federated.published.scenario import Scenario
from dpmf.federated.published.outcome import Outcome
from dpmf.federated.published.simulation import simulate
from dpmf.model import EpochRecord, Model
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings

Callback = Callable[[EpochRecord], bool | None]


@dataclass(frozen=True, eq=False, repr=False)
class Trial:
    """What came out, and figures about it for whoever holds all the ratings: in earnest, nobody.

    Attributes:
        outcome: of the simulation.
        accuracy: mean_error and train_rmse on the training ratings; with held-out ratings also rmse, mae and
            baseline_rmse on these.
    """

    outcome: Outcome | CertifiedOutcome
    accuracy: dict[str, float]


def try_out(
    scenario: Scenario | CertifiedScenario,
    ratings: Ratings,
    *,
    holdout: float = 0.0,
    seed: int = 0,
    n_threads: int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
    ledger: Ledger | None = None,
    on_round: Callable[[int], None] | None = None,
) -> Trial:
    """Simulate a scenario on ratings, with a part of them held out unless `holdout` is 0.

    A ledger is for certified scenarios, `on_round` for the others.
    """
    train, test = ratings.split(holdout, seed=seed) if holdout else (ratings, None)
    outcome: Outcome | CertifiedOutcome
    if isinstance(scenario, CertifiedScenario):
        outcome = simulate_certified(
            train, scenario, n_threads=n_threads, callbacks=callbacks, checkpoint=checkpoint, ledger=ledger
        )
    else:
        outcome = simulate(
            train, scenario, n_threads=n_threads, callbacks=callbacks, checkpoint=checkpoint, on_round=on_round
        )
    return Trial(outcome, accuracy_of(outcome.model, train, test, n_threads))


def accuracy_of(model: Model, train: Ratings, test: Ratings | None, n_threads: int | None) -> dict[str, float]:
    """Return errors on training ratings, of which the paper shows the mean, and on held-out ones, if there are any."""
    errors = prediction_errors(model, train, n_threads=n_threads)
    figures = {"mean_error": mae(errors), "train_rmse": rmse(errors)}
    if test is not None and len(test):
        errors = prediction_errors(model, test, n_threads=n_threads)
        figures |= {"rmse": rmse(errors), "mae": mae(errors), "baseline_rmse": rmse(baseline_errors(train, test))}
    return figures
