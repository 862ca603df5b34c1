"""Objective perturbation: its error as published, by both solvers, and certified with profiles from private releases.

    python benchmarks/objective.py paper DATA [--epsilons 1,10,100] [--regularization 0.001]
    python benchmarks/objective.py certified DATA [--epsilons 1,5,20] [--pairs 1:1,1:5,5:5]
    python benchmarks/objective.py parties DATA [--epsilons 5] [--pairs 1:1,1:5,5:5]

DATA is a catalogue name, a file, a folder, or made:USERS:ITEMS:RATINGS. Both take `--holdout 0.1`, `--runs 3` (errors
are means over that number of runs, each with fresh noise) and `--seed 0`, and print one JSON object. `paper` also has
the plain fit with the same penalty. `certified` trains ALS under replacement at each epsilon, and from each of those
releases fits items for each pair: the epsilon of profiles and the epsilon of items. `parties` does so with noise of
both kinds, and lets everybody answer for themselves.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
from dataclasses import replace
from importlib.metadata import version
from statistics import mean
from typing import Any

from inputs import load

from dpmf import ALS, Budget, ObjectivePerturbation, Profiles, Ratings
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.federated.certified import CertifiedScenario, simulate_certified
from dpmf.methods import Method
from dpmf.runs.training import Run, train_and_test


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=tuple(_COMMANDS))
    parser.add_argument("data")
    parser.add_argument("--epsilons")
    parser.add_argument("--pairs", default="1:1,1:5,5:5")
    parser.add_argument("--regularization", type=float)
    parser.add_argument("--holdout", type=float, default=0.1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    ratings = load(arguments.data)
    found = {
        "what": arguments.what,
        "data": arguments.data,
        "seed": arguments.seed,
        "runs": arguments.runs,
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "versions": {name: version(name) for name in ("numpy", "numba", "dpmf")},
        "rows": _COMMANDS[arguments.what](ratings, arguments),
    }
    print(json.dumps(found, indent=1))


def _paper(ratings: Ratings, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return errors without noise, and with it by both solvers."""
    shared: dict[str, Any] = {"mode": "paper", "regularization": arguments.regularization, "items_public": True}
    kinds: dict[str, Method] = {
        "not private": ObjectivePerturbation(budget=Budget(math.inf), items_public=True),
        "plain fit": ObjectivePerturbation(budget=Budget(math.inf), **shared),
    }
    for epsilon in map(float, (arguments.epsilons or "1,10,100").split(",")):
        for solver in ("exact", "steps"):
            method = ObjectivePerturbation(budget=Budget(epsilon), solver=solver, **shared)
            kinds[f"{solver}, claimed epsilon {epsilon:g}"] = method
    return [_row(name, [_run(one, ratings, arguments) for _ in range(arguments.runs)]) for name, one in kinds.items()]


def _certified(ratings: Ratings, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return errors of releases, and of items made with profiles from them."""
    rows = []
    for epsilon in map(float, (arguments.epsilons or "1,5,20").split(",")):
        base = ALS(budget=Budget(epsilon, neighbours="replace"), items_public=True)
        runs = [_run(base, ratings, arguments) for _ in range(arguments.runs)]
        rows.append(_row(f"als, epsilon {epsilon:g} per user", runs))
        for pair in arguments.pairs.split(","):
            of_profiles, of_items = (Budget(float(one), 1e-6, "rating", "replace") for one in pair.split(":"))
            method = ObjectivePerturbation(budget=of_items, items_public=True)
            made = [
                _run(method, ratings, arguments, profiles=Profiles.from_release(one.model.release, of_profiles))
                for one in runs
            ]
            rows.append(_row(f"with it, profiles {of_profiles.epsilon:g}, items {of_items.epsilon:g}", made))
    return rows


def _parties(ratings: Ratings, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return errors with noise of both kinds, and over parties that tolerate 5 % drop-outs and colluders, or none."""
    rows, (train, test) = [], ratings.split(arguments.holdout, seed=arguments.seed)
    for epsilon in map(float, (arguments.epsilons or "5").split(",")):
        base = ALS(budget=Budget(epsilon, neighbours="replace"), items_public=True)
        releases = [base.fit(train).release for _ in range(arguments.runs)]
        for pair in arguments.pairs.split(","):
            of_profiles, of_items = (Budget(float(one), 1e-6, "rating", "replace") for one in pair.split(":"))
            profiles = [Profiles.from_release(one, of_profiles) for one in releases]
            norm = ObjectivePerturbation(budget=of_items, items_public=True)
            gaussian = replace(norm, noise="gaussian")
            scenario = CertifiedScenario(of_items, method=gaussian, items_public=True)
            alone = replace(scenario, dropouts=0.0, colluders=0.0)
            kinds = {
                "norm": [norm.fit(train, profiles=one) for one in profiles],
                "gaussian": [gaussian.fit(train, profiles=one) for one in profiles],
                "parties": [simulate_certified(train, alone, profiles=one).model for one in profiles],
                "tolerant parties": [simulate_certified(train, scenario, profiles=one).model for one in profiles],
            }
            for name, models in kinds.items():
                found = round(mean(rmse(prediction_errors(one, test)) for one in models), 4)
                about = {"release": epsilon, "pair": pair, "epsilon": models[0].guarantee.epsilon}
                rows.append({"kind": name, **about, "rmse": found})
    return rows


def _run(method: Method, ratings: Ratings, arguments: argparse.Namespace, **more: Any) -> Run:
    return train_and_test(method, ratings, holdout=arguments.holdout, seed=arguments.seed, **more)


def _row(name: str, runs: list[Run]) -> dict[str, Any]:
    guarantee = runs[0].model.guarantee
    return {
        "kind": name,
        "rmse": round(mean(run.accuracy["rmse"] for run in runs), 4),
        "baseline_rmse": round(runs[0].accuracy["baseline_rmse"], 4),
        "epsilon": guarantee.epsilon,
        "unit": guarantee.unit,
        "certified": guarantee.certified,
    }


_COMMANDS = {"paper": _paper, "certified": _certified, "parties": _parties}

if __name__ == "__main__":
    main()
