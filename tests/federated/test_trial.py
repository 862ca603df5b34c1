"""Trials: every scenario has its plan, and a report covers what was run."""

from __future__ import annotations

import math

import pytest

from dpmf.errors import InvalidArgument
from dpmf.federated import plan_trial, report_of, run_trial
from dpmf.federated.certified.scenario import CertifiedScenario
from dpmf.federated.published import Scenario
from dpmf.federated.simulate.trial import n_rounds, snapshot_interval
from dpmf.methods import ObjectivePerturbation
from dpmf.privacy import Budget
from dpmf.ratings.synthetic import make


def test_every_scenario_has_the_defaults_of_its_protocol() -> None:
    s1, s2, s3 = (plan_trial(name, "paper", 2.0) for name in ("s1", "s2", "s3"))
    assert isinstance(s1, ObjectivePerturbation)
    assert (s1.mode, s1.solver, s1.budget) == ("paper", "steps", Budget(2.0, unit="rating", neighbours="replace"))
    assert s2 == Scenario("s2", rounds=100, epsilon=2.0)
    assert s3 == Scenario("s3", rounds=10_000, epsilon=2.0)
    assert [n_rounds(plan) for plan in (s1, s2, s3)] == [100, 100, 10_000]
    assert [snapshot_interval(plan) for plan in (s1, s2, s3)] == [10, 10, 500]
    assert plan_trial("s2", "certified", 2.0, 1e-5) == CertifiedScenario(Budget(2.0, 1e-5))
    coming_and_going = plan_trial("s3", "certified", 2.0)
    assert coming_and_going == CertifiedScenario(Budget(2.0), come=0.005, leave=0.01)
    assert (n_rounds(coming_and_going), snapshot_interval(coming_and_going)) == (6, 10)


def test_settings_reach_the_plan() -> None:
    settings = {"rounds": 7, "factors": 3, "seed": 5, "items_public": True}
    s1 = plan_trial("s1", "paper", math.inf, settings=settings)
    assert isinstance(s1, ObjectivePerturbation)
    assert (s1.n_epochs, s1.n_factors, s1.seed, s1.items_public, s1.solver) == (7, 3, 5, True, None)
    s2 = plan_trial("s2", "paper", 2.0, settings={**settings, "third_party": False})
    assert s2 == Scenario("s2", 7, 2.0, n_factors=3, third_party=False, items_public=True, seed=5)
    certified = plan_trial("s3", "certified", 2.0, settings={**settings, "come": 0.5, "dropouts": 0.2})
    expected = CertifiedScenario(Budget(2.0), n_factors=3, n_epochs=7, items_public=True, seed=5, come=0.5, leave=0.01)
    assert certified == CertifiedScenario(**{**vars(expected), "dropouts": 0.2})


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="'s4' is unknown"):
        plan_trial("s4", "paper", 2.0)


@pytest.mark.parametrize("scenario", ["s1", "s2"])
def test_a_report_covers_errors_traffic_and_guarantee(scenario: str) -> None:
    plan = plan_trial(scenario, "paper", 5.0, settings={"rounds": 2, "factors": 3})
    trial = run_trial(plan, make(60, 40), holdout=0.2, n_threads=1)
    report = report_of(trial, scenario, seconds=1.5)
    assert (report["scenario"], report["rounds"], report["seconds"], report["factors"]) == (scenario, 2, 1.5, 3)
    assert {name: report[name] for name in trial.accuracy} == trial.accuracy
    assert report["guarantee"] == trial.model.guarantee.to_json()
    if scenario == "s1":
        assert (trial.outcome, report["bytes_down"], report["bytes_up"]) == (None, 0, 0)
        assert "composed_epsilon" not in report
    else:
        assert report["took_part"] == 60
        assert (report["composed_epsilon"], report["proven_epsilon"]) == (15.0, None)


def test_a_method_that_only_ranks_is_measured_by_its_rankings() -> None:
    plan = plan_trial("s2", "certified", 20.0, settings={"method": "ease"})
    trial = run_trial(plan, make(120, 30), holdout=0.2, n_threads=1)
    report = report_of(trial, "s2", seconds=1.0)
    assert (report["method"], report["rmse"], report["mean_error"], report["certified"]) == ("ease", None, None, True)
    for name in ("recall@10", "ndcg@10", "popularity_recall@10", "popularity_ndcg@10"):
        assert 0 < report[name] < 1
    assert (n_rounds(plan), trial.rounds) == (0, 2)
    assert run_trial(plan, make(120, 30), n_threads=1).accuracy == {}
