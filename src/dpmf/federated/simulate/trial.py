"""A trial of a scenario: plan it, hold ratings out, simulate, and measure the errors.

>>> from dpmf.ratings.synthetic import make
>>> plan = plan_trial("s2", "paper", epsilon=5.0, settings={"rounds": 2, "factors": 4})
>>> trial = run_trial(plan, make(60, 40), holdout=0.2, n_threads=1)
>>> trial.accuracy["rmse"] > 0 and trial.rounds
2
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpmf.engine.checkpoints import Checkpoint
from dpmf.errors import InvalidArgument
from dpmf.evaluation import baseline_errors, evaluate, prediction_errors
from dpmf.evaluation.accuracy import popularity_figures
from dpmf.evaluation.metrics import mae, rmse
from dpmf.federated.certified.scenario import CertifiedScenario
from dpmf.federated.certified.simulation import CertifiedOutcome, simulate_certified
from dpmf.federated.published.outcome import Outcome
from dpmf.federated.published.scenario import Scenario
from dpmf.federated.published.simulation import simulate
from dpmf.methods import ALS, METHODS, ObjectivePerturbation, configure
from dpmf.methods.certified.method import CertifiedMethod
from dpmf.methods.objective.profiles import Profiles
from dpmf.model import EpochRecord, Model, Release
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings

Plan = ObjectivePerturbation | Scenario | CertifiedScenario
"""A trusted recommender (scenario s1, which needs no protocol), the published protocol, or the certified one."""

Callback = Callable[[EpochRecord], bool | None]
_ROUNDS = {"s1": 100, "s2": 100, "s3": 10_000}  # of the published protocol
RANKING = ("recall@10", "ndcg@10")
_COMING_AND_GOING = {"come": 0.005, "leave": 0.01}  # of the certified protocol in s3


@dataclass(frozen=True, eq=False, repr=False)
class Trial:
    """A finished trial, with figures for a holder of all ratings: outside a simulation, nobody.

    Attributes:
        plan: what was simulated.
        model: the model that resulted.
        outcome: of the simulation; None where the recommender is trusted.
        accuracy: mean_error and train_rmse on the training ratings; with held-out ratings also rmse, mae and
            baseline_rmse on these. Where there is a ranking, or no ratings to predict, recall@10, ndcg@10, and the same
            with popularity_ before it, of exact popularity.
    """

    plan: Plan
    model: Model
    outcome: Outcome | CertifiedOutcome | None
    accuracy: dict[str, float]

    @property
    def method(self) -> str:
        """The name of the method: in the published scenarios, that of the paper."""
        return self.plan.learner.name if isinstance(self.plan, CertifiedScenario) else ObjectivePerturbation.name

    @property
    def rounds(self) -> int:
        """The number of rounds played."""
        return n_rounds(self.plan) if self.outcome is None else self.outcome.rounds


def plan_trial(
    scenario: str, mode: str, epsilon: float, delta: float = 1e-6, settings: Mapping[str, Any] | None = None
) -> Plan:
    """Return the plan of a scenario.

    Args:
        scenario: "s1", "s2" or "s3".
        mode: "certified" or "paper"; "s1" is always as in the paper.
        epsilon: the budget of a certified run, or what is claimed; infinity for no noise.
        delta: of a certified run.
        settings: `rounds`, `factors`, and fields of `Scenario` or `CertifiedScenario`, whose `method` is named here;
            defaults are the scenario's.
    """
    chosen = dict(settings or {})
    if scenario not in _ROUNDS:
        raise InvalidArgument(f"scenario={scenario!r} is unknown: choose s1, s2 or s3")
    if scenario == "s1":
        return _trusted(epsilon, {"rounds": _ROUNDS[scenario], **chosen})
    if "factors" in chosen:
        chosen["n_factors"] = chosen.pop("factors")
    if mode == "paper":
        return Scenario(scenario, epsilon=epsilon, **{"rounds": _ROUNDS[scenario], **chosen})  # type: ignore[arg-type]
    if "rounds" in chosen:
        chosen["n_epochs"] = chosen.pop("rounds")
    population = _COMING_AND_GOING if scenario == "s3" else {}
    return _certified(epsilon, delta, {**population, **chosen})


def _certified(epsilon: float, delta: float, settings: dict[str, Any]) -> CertifiedScenario:
    """Return the certified protocol, of private least squares unless another method is named."""
    name = settings.pop("method", ALS.name)
    if name == ALS.name:
        return CertifiedScenario(Budget(epsilon, delta), **settings)
    possible = {one.name: one for one in METHODS.values() if issubclass(one, CertifiedMethod | ObjectivePerturbation)}
    if name not in possible:
        raise InvalidArgument(f"method {name!r} has no certified protocol: choose from {', '.join(possible)}")
    fields: dict[str, Any] = {"budget": possible[name].private_fields("certified", epsilon, delta)["budget"]}
    fields |= {one: settings.pop(one) for one in ("n_factors", "n_epochs") if one in settings}
    fields |= {one: settings[one] for one in ("items_public", "seed") if one in settings}
    method = configure(name, fields)
    assert isinstance(method, CertifiedMethod | ObjectivePerturbation)
    return CertifiedScenario(fields["budget"], **settings, method=method)


def _trusted(epsilon: float, settings: Mapping[str, Any]) -> ObjectivePerturbation:
    """Return the published method of a trusted recommender, solved by gradient steps as in the paper."""
    return ObjectivePerturbation(
        n_factors=settings.get("factors"),
        n_epochs=settings["rounds"],
        mode="paper",
        budget=Budget(epsilon, unit="rating", neighbours="replace"),
        items_public=settings.get("items_public", False),
        seed=settings.get("seed", 0),
        solver=None if epsilon == math.inf else "steps",
    )


def n_rounds(plan: Plan) -> int:
    """Return the number of rounds that a plan reports on."""
    if isinstance(plan, CertifiedScenario):
        rounds = plan.learner.n_turns
    else:
        rounds = plan.rounds if isinstance(plan, Scenario) else plan.n_epochs
    if rounds is None:
        raise InvalidArgument("n_epochs is not set: plan a trial with a number of rounds")
    return rounds


def snapshot_interval(plan: Plan) -> int:
    """Return the number of rounds between two snapshots."""
    return 500 if isinstance(plan, Scenario) and plan.scenario == "s3" else 10


def run_trial(
    plan: Plan,
    ratings: Ratings,
    *,
    holdout: float = 0.0,
    seed: int = 0,
    n_threads: int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
    ledger: Ledger | None = None,
    profiles: Profiles | None = None,
    on_round: Callable[[int], None] | None = None,
) -> Trial:
    """Run a plan on ratings, of which a fraction is held out unless `holdout` is 0.

    Ledger and profiles are for the certified protocol, `on_round` for the published one.
    """
    train, test = ratings.split(holdout, seed=seed) if holdout else (ratings, None)
    outcome: Outcome | CertifiedOutcome | None = None
    how: Any = {"n_threads": n_threads, "callbacks": callbacks, "checkpoint": checkpoint}
    if isinstance(plan, ObjectivePerturbation):
        model = plan.fit(train, **how)
    else:
        if isinstance(plan, CertifiedScenario):
            outcome = simulate_certified(train, plan, ledger=ledger, profiles=profiles, **how)
        else:
            outcome = simulate(train, plan, on_round=on_round, **how)
        model = outcome.model
    return Trial(plan, model, outcome, measure_accuracy(model, train, test, n_threads))


def measure_accuracy(model: Model, train: Ratings, test: Ratings | None, n_threads: int | None) -> dict[str, float]:
    """Return errors on the training ratings, whose mean the paper reports, and on held-out ratings, if any.

    Of a release that ranks, or predicts no ratings, they are recall@10 and ndcg@10 on held-out ratings, and of exact
    popularity.
    """
    figures, tested = {}, test is not None and len(test) > 0
    if model.release.predicts_ratings:
        errors = prediction_errors(model, train, n_threads=n_threads)
        figures = {"mean_error": mae(errors), "train_rmse": rmse(errors)}
        if test is not None and tested:
            errors = prediction_errors(model, test, n_threads=n_threads)
            figures |= {"rmse": rmse(errors), "mae": mae(errors), "baseline_rmse": rmse(baseline_errors(train, test))}
    if test is not None and tested and is_ranked(model.release):
        figures |= _ranking_figures(model, train, test, n_threads)
    return figures


def is_ranked(release: Release) -> bool:
    """Return whether lists are what a release is judged by, beside ratings or instead of them."""
    return release.ranks or not release.predicts_ratings


def _ranking_figures(model: Model, train: Ratings, test: Ratings, n_threads: int | None) -> dict[str, float]:
    found, popular = evaluate(model, test, n_threads=n_threads), popularity_figures(model.release, train, test)
    return {name: found[name] for name in RANKING} | {f"popularity_{name}": popular[name] for name in RANKING}
