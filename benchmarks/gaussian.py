"""Full gradient descent: its speed beside SGD, and its error without noise, with the published noise, and certified.

    python benchmarks/gaussian.py speed DATA [--factors 20] [--turns 5] [--threads 1]
    python benchmarks/gaussian.py accuracy DATA [--factors 20] [--holdout 0.1] [--epochs 500] [--seed 0]
    python benchmarks/gaussian.py steps DATA [--factors 20] [--holdout 0.1] [--epochs 200] [--seed 0]
    python benchmarks/gaussian.py certified DATA [--holdout 0.1] [--epsilons 1,5,20] [--kinds gaussian,als] [--seed 0]

DATA is a catalogue name, a file, a folder, or made:USERS:ITEMS:RATINGS, synthetic ratings of that shape with RATINGS
per user on average. Each command prints one JSON object; `certified --record` puts errors into docs/results. `speed`
compares one iteration with one epoch of SGD, each the fastest of a short run, in alternating turns. `accuracy` has one
run of each kind; `--epochs` is for the published steps. `steps` has one run for each published step size with the
published noise, one without noise or clipping, and one that stops by the training error, and says which of them
diverge. The held-out ratings are chosen at random."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any, Literal

from inputs import load
from record import add_option, epsilon_text, record, slug

from dpmf import ALS, SGD, SGLD, Budget, GaussianGD, Ratings
from dpmf.bench.turns import in_turns, median_ratio
from dpmf.engine.threads import available_cpus
from dpmf.errors import InvalidArgument
from dpmf.methods import Method
from dpmf.methods.gaussian.defaults import PUBLISHED, SWEEPS
from dpmf.runs.training import train_and_test

_PLAIN = Budget(math.inf)
_SHORT = 10  # iterations of a timed run
_MANY = 3000  # more than a run that stops by itself needs
_NO_CLIP = 1e6


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=tuple(_COMMANDS))
    parser.add_argument("data")
    parser.add_argument("--factors", type=int, default=PUBLISHED["n_factors"])
    parser.add_argument("--holdout", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--epsilons", default="1,5,20")
    parser.add_argument("--kinds", default="gaussian,gaussian raw,sgld,als", help="of certified runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=available_cpus())
    parser.add_argument("--turns", type=int, default=5)
    add_option(parser)
    arguments = parser.parse_args()
    ratings = load(arguments.data)
    found = {
        "what": arguments.what,
        "data": arguments.data,
        "ratings": len(ratings),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "versions": {name: version(name) for name in ("numpy", "numba", "dpmf")},
        **_COMMANDS[arguments.what](ratings, arguments),
    }
    print(json.dumps(found, indent=1))


def _speed(ratings: Ratings, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the milliseconds of an iteration, and the median over turns of its ratio to an epoch of SGD."""
    K = arguments.factors
    plain = GaussianGD(n_factors=K, n_epochs=_SHORT, budget=_PLAIN, items_public=True)
    kinds: dict[str, Method] = {
        "sgd": SGD(n_factors=K, n_epochs=_SHORT),
        "plain": plain,
        "published": replace(plain, mode="paper"),
        "paper": replace(plain, mode="paper", budget=Budget(5.0)),
    }
    runs = {name: partial(_quickest, one, ratings, arguments.threads) for name, one in kinds.items()}
    turns = in_turns(runs, arguments.turns)
    row: dict[str, Any] = {"factors": K, "threads": arguments.threads, "turns": len(turns)}
    row |= {f"{name}_milliseconds": 1000 * min(turn[name] for turn in turns) for name in kinds}
    return {**row, **{f"{name}_to_sgd": median_ratio(turns, name, "sgd") for name in kinds if name != "sgd"}}


def _quickest(method: Method, ratings: Ratings, n_threads: int) -> float:
    return min(record.seconds for record in method.fit(ratings, n_threads=n_threads).history)


def _accuracy(ratings: Ratings, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return errors without noise and with the published noise, for both centres."""
    K, eps_i = arguments.factors, PUBLISHED["eps_i"]
    plain = GaussianGD(n_factors=K, budget=_PLAIN, items_public=True)
    published = replace(plain, mode="paper", n_epochs=arguments.epochs)
    noisy = replace(published, budget=Budget(1.0), eps_i=eps_i)  # eps_i sets the noise
    kinds: dict[str, Method] = {
        "SGD": SGD(n_factors=K),
        "plain": plain,
        "published steps without noise, raw": published,
        "published steps without noise, mean": replace(published, centering="mean"),
        f"paper, eps_i={eps_i:g}, raw": noisy,
        f"paper, eps_i={eps_i:g}, mean": replace(noisy, centering="mean"),
    }
    return {"rows": [_row(name, one, ratings, arguments) for name, one in kinds.items()]}


def _steps(ratings: Ratings, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return errors for the published step sizes, or that they diverge, for both centres."""
    rows = []
    centres: tuple[Literal["raw", "mean"], ...] = ("raw", "mean")
    for centering in centres:
        noisy = GaussianGD(
            n_factors=arguments.factors,
            n_epochs=arguments.epochs,
            budget=Budget(1.0),
            eps_i=PUBLISHED["eps_i"],
            mode="paper",
            centering=centering,
            items_public=True,
        )
        plain = replace(noisy, budget=_PLAIN, eps_i=None, clip=_NO_CLIP)
        kinds = {f"step {step:g}": replace(noisy, learning_rate=step) for step in SWEEPS["learning_rate"]}
        kinds |= {"no noise, no clip": plain, "until 1e-4": replace(noisy, n_epochs=_MANY, tolerance=1e-4)}
        for name, one in kinds.items():
            try:
                rows.append(_row(f"{name}, {centering}", one, ratings, arguments))
            except InvalidArgument as error:
                rows.append({"kind": f"{name}, {centering}", "error": str(error)})
    return {"rows": rows}


def _certified(ratings: Ratings, arguments: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for epsilon in map(float, arguments.epsilons.split(",")):
        budget = Budget(epsilon)
        gaussian = GaussianGD(budget=budget, items_public=True)
        kinds: dict[str, Method] = {
            "gaussian": gaussian,
            "gaussian raw": replace(gaussian, centering="raw"),
            "sgld": SGLD(budget=budget, items_public=True),
            "als": ALS(budget=budget, items_public=True),
        }
        found = [_row(name, kinds[name], ratings, arguments) for name in arguments.kinds.split(",")]
        rows += found
        if arguments.record is not None:
            data = arguments.record or slug(arguments.data)
            for row in found:
                figures = {name: row[name] for name in ("rmse", "baseline_rmse")}
                record("certified", f"{data}-{row['kind'].replace(' ', '-')}", {epsilon_text(epsilon): figures})
    return {"rows": rows}


def _row(name: str, method: Method, ratings: Ratings, arguments: argparse.Namespace) -> dict[str, Any]:
    options = {"holdout": arguments.holdout, "seed": arguments.seed, "n_threads": arguments.threads}
    run = train_and_test(method, ratings, **options)
    return {
        "kind": name,
        **run.accuracy,
        "epsilon": run.model.guarantee.epsilon,
        "mode": run.model.guarantee.mode,
        "iterations": len(run.model.history),
        "epoch_seconds": run.epoch_seconds,
    }


_COMMANDS = {"speed": _speed, "accuracy": _accuracy, "steps": _steps, "certified": _certified}

if __name__ == "__main__":
    main()
