"""Choosing the constants of private least squares, on made-up ratings alone.

    python benchmarks/defaults.py explicit|implicit OUT.json [--passes 2]

Starts from plain values, and goes through the constants one after the other, some times over: of every one the value
is kept that does best on all worlds and epsilons together. Judged is the mean logarithm of the rmse on held-out
ratings, or for implicit feedback of the ndcg@10, with the same draws of noise for all values. How many factors there
are at most is then judged on worlds of more people. Writes every trial, the result, and how it compares with biases or
popularity alone on worlds that had no part in the choice.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import statistics
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from worlds import World

from dpmf import ALS, Budget, Ratings
from dpmf.engine.threads import available_cpus
from dpmf.evaluation import evaluate, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.methods import implicit, observed_plan, private_als, private_observed, private_plan

MODULES = {module.__name__: module for module in (implicit, observed_plan, private_als, private_observed, private_plan)}
EPSILONS = (0.5, 1.0, 5.0, 20.0)
WORLDS = (
    World(1000, 500, taste=0.5),
    World(4000, 1500, mean_ratings=100.0, decay=1.0),
    World(4000, 1500, mean_ratings=60.0, taste=0.7, decay=0.6, pull=1.0),
    World(12_000, 2000, noise=0.6, pull=0.4),
    World(50_000, 800, mean_ratings=30.0, decay=1.0, noise=0.7),
)
LARGE = (
    World(100_000, 1000, mean_ratings=40.0),
    World(200_000, 1000, mean_ratings=30.0, taste=0.5, decay=0.6),
)
SETS = {"explicit": (WORLDS, LARGE), "implicit": (WORLDS[:-1], LARGE[:1])}  # to rank takes longer than to predict
UNSEEN = (
    World(2000, 800, taste=0.6, decay=0.7, seed=1),
    World(8000, 1200, mean_ratings=70.0, decay=0.9, pull=0.5, seed=1),
    World(25_000, 1500, mean_ratings=60.0, taste=0.35, decay=1.0, seed=1),
)


class Constant(NamedTuple):
    """A constant of a module, and the values to choose from; the first is the plain one to start with."""

    module: str
    name: str
    values: tuple[Any, ...]


def _shares(share: float) -> dict[str, float]:
    return {private_plan.USERS: 0.002, private_plan.POPULARITY: share, private_plan.WEIGHTS: share}


_PLAN, _ROUNDS = "dpmf.methods.private_plan", "dpmf.methods.private_als"
EXPLICIT = (
    Constant(_PLAN, "_FACTORS", ((8, 8), (2, 8), (2, 16), (3, 16), (4, 16))),
    Constant(_PLAN, "_FACTOR_POINT", (20_000, 5_000, 10_000, 40_000)),
    Constant(_PLAN, "_ROUNDS", (4, 2, 3, 6)),
    Constant(_ROUNDS, "_CLIP", (1.0, 0.25, 0.5, 2.0)),
    Constant(_PLAN, "_USER_RIDGE", (1.0, 0.12, 0.25, 0.5)),
    Constant(_PLAN, "_BIAS_SHARE", (0.1, 0.025, 0.05, 0.2)),
    Constant(_PLAN, "_HEIGHTS", ((1.0, 1.0), (0.5, 1.0), (0.5, 2.0), (0.7, 3.0), (1.0, 4.0))),
    Constant(_PLAN, "_HEIGHT_POINT", (20_000, 1_500, 5_000)),
    Constant(_PLAN, "_EARLY_RIDGES", ((0.5, 0.5), (0.1, 0.1), (0.2, 0.2), (0.1, 0.3), (0.2, 0.5))),
    Constant(_PLAN, "_RIDGE_POINT", (10_000, 3_000, 30_000)),
    Constant(_ROUNDS, "_LEAST_GAIN", (0.0, 1.0, 3.0, 6.0)),
    Constant(_PLAN, "_FORGET", ((0.0, 0.0), (0.3, 0.3), (0.0, 0.3), (0.3, 0.6))),
    Constant(_ROUNDS, "_RARE_EXPONENT", (0.0, 0.15, 0.3, 0.45)),
    Constant(_PLAN, "_SHARES", (_shares(0.03), _shares(0.01), _shares(0.1))),
    Constant(_PLAN, "_MOMENT_SHARE", (0.03, 0.001, 0.003, 0.01)),
    Constant(_ROUNDS, "_MEAN_SQUARE", (0.5, 1.0, 2.0)),
    Constant(_ROUNDS, "_START_SD", (0.3, 0.1, 1.0)),
    Constant(_ROUNDS, "_SAMPLING", (1.0, 0.3, 0.6)),
    Constant(_ROUNDS, "_USER_BIAS_RIDGE", (3.0, 1.0, 6.0)),
)
_OBSERVED_PLAN, _OBSERVED_ROUNDS = "dpmf.methods.observed_plan", "dpmf.methods.private_observed"
IMPLICIT = (
    Constant(_OBSERVED_PLAN, "_FACTORS", ((8, 8), (2, 8), (2, 16), (4, 16), (8, 16), (4, 24))),
    Constant(_OBSERVED_PLAN, "_FACTOR_POINT", (20_000, 5_000, 10_000, 40_000)),
    Constant("dpmf.methods.implicit", "_ROUNDS", ((4, 4), (2, 2), (3, 3), (2, 4), (3, 4), (4, 6))),
    Constant("dpmf.methods.implicit", "_USER_RIDGES", ((1.0, 1.0), (0.3, 0.3), (3.0, 1.0), (1.0, 0.3), (3.0, 0.3))),
    Constant("dpmf.methods.implicit", "_ALPHA", (1.0, 0.0, 0.3)),
    Constant(_OBSERVED_PLAN, "_POPULARITY_SHARES", ((0.3, 0.3, 0.3), (0.1, 0.3, 0.8), (0.2, 0.4, 0.8), (0.2,) * 3)),
    Constant(_OBSERVED_PLAN, "_SHARE_EXPONENT", (1.0, 0.5, 1.5)),
    Constant(_OBSERVED_PLAN, "_MOMENT_SHARE", (0.03, 0.01, 0.1)),
    Constant(_OBSERVED_PLAN, "_FORGET", (0.0, 0.3, 0.6)),
    Constant(_OBSERVED_PLAN, "_HEIGHTS", ((1.0, 1.0), (0.5, 0.5), (0.5, 1.0), (0.25, 0.5))),
    Constant(_OBSERVED_ROUNDS, "_MEAN_SQUARE", (1.0, 0.5, 2.0)),
    Constant(_OBSERVED_ROUNDS, "_LIFT", (1.0, 0.5, 2.0)),
    Constant(_OBSERVED_ROUNDS, "_SAMPLING", (1.0, 0.3, 0.6)),
)
CONSTANTS = {"explicit": EXPLICIT, "implicit": IMPLICIT}
MANY = {"explicit": (_PLAN, "_FACTORS"), "implicit": (_OBSERVED_PLAN, "_FACTORS")}
MOST_FACTORS = (4, 8, 16, 24)
Values = dict[tuple[str, str], Any]


class Trial(NamedTuple):
    """One training: on a world, with an epsilon and values of the constants; without factors if `alone`."""

    feedback: Any
    world: World
    epsilon: float
    values: Values
    alone: bool = False


class Search:
    """Tries values, and remembers what was tried.

    Attributes:
        feedback: explicit or implicit.
        trials: what was tried, with the mean logarithm of the figures.
    """

    def __init__(self, feedback: str) -> None:
        self.feedback, self.trials = feedback, list[dict[str, Any]]()

    def better(
        self, pool: ProcessPoolExecutor, worlds: Sequence[World], values: Values, place: tuple[str, str],
        choices: Iterable[Any],
    ) -> Values:  # fmt: skip
        """Return the values with that choice of one of them that does best on these worlds."""
        tried = [values, *({**values, place: choice} for choice in choices if choice != values[place])]
        return min(tried, key=lambda one: self._score(pool, worlds, one))

    def differences(self) -> list[dict[str, Any]]:
        """Return what was tried, each trial with those values only that differ from the first one's."""
        first = self.trials[0]["values"]
        return [
            {**one, "values": {name: value for name, value in one["values"].items() if value != first[name]}}
            for one in self.trials
        ]

    def _score(self, pool: ProcessPoolExecutor, worlds: Sequence[World], values: Values) -> float:
        """Return what should be small."""
        trial = {"worlds": len(worlds), "values": _named(values)}
        known = next((one for one in self.trials if {**one, **trial} == one), None)
        if known is None:
            found = pool.map(_figure, [Trial(self.feedback, *cell, values) for cell in _cells(worlds)])
            known = {**trial, "score": statistics.fmean(math.log(figure) for figure in found)}
            self.trials.append(known)
        return float(known["score"] if self.feedback == "explicit" else -known["score"])


def main() -> None:
    """Choose, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("feedback", choices=tuple(CONSTANTS))
    parser.add_argument("out", type=Path)
    parser.add_argument("--passes", type=int, default=2)
    arguments = parser.parse_args()
    search = Search(arguments.feedback)
    constants: tuple[Constant, ...] = CONSTANTS[arguments.feedback]
    worlds, large = SETS[arguments.feedback]
    values: Values = {(one.module, one.name): one.values[0] for one in constants}
    with ProcessPoolExecutor(available_cpus()) as pool:
        for number in range(arguments.passes):
            for one in constants:
                values = search.better(pool, worlds, values, (one.module, one.name), one.values)
                print(f"pass {number + 1}: {one.name} = {values[one.module, one.name]}", flush=True)
        many = MANY[arguments.feedback]
        least = values[many][0]
        values = search.better(pool, large, values, many, [(least, most) for most in MOST_FACTORS])
        print(f"many people: {many[1]} = {values[many]}", flush=True)
        unseen = [Trial(arguments.feedback, *cell, values) for cell in _cells(UNSEEN)]
        found = list(pool.map(_figure, unseen))
        alone = list(pool.map(_figure, [one._replace(alone=True) for one in unseen]))
    check = [
        {"users": one.world.n_users, "epsilon": one.epsilon, "figure": figure, "alone": other}
        for one, figure, other in zip(unseen, found, alone, strict=True)
    ]
    report = {"feedback": arguments.feedback, "chosen": _named(values), "unseen": check}
    print(json.dumps(report, indent=1))
    lines = ",\n  ".join(json.dumps(one) for one in search.differences())
    arguments.out.write_text(f'{json.dumps(report, indent=1)[:-2]},\n "trials": [\n  {lines}\n ]\n}}\n')


def _cells(worlds: Iterable[World]) -> list[tuple[World, float]]:
    """Return worlds with epsilons, large ones first, so that no process is left with a long one at the end."""
    return [(world, epsilon) for world in sorted(worlds, key=lambda one: -one.n_users) for epsilon in EPSILONS]


def _figure(trial: Trial) -> float:
    """Train and test; return the rmse, or for implicit feedback the ndcg."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    for (module, name), value in trial.values.items():
        setattr(MODULES[module], name, value)
    train, test = _split(trial.world)
    n_factors = 0 if trial.alone else None
    method = ALS(feedback=trial.feedback, budget=Budget(trial.epsilon), n_factors=n_factors, noise_seed=1)
    model = method.fit(train, n_threads=1)
    if trial.feedback == "implicit":
        return evaluate(model, test, n_threads=1)["ndcg@10"]
    return rmse(prediction_errors(model, test, n_threads=1))


@cache
def _split(world: World) -> tuple[Ratings, Ratings]:
    return world.ratings().split(0.1)


def _named(values: Values) -> dict[str, Any]:
    return {f"{module}.{name}": value for (module, name), value in values.items()}


if __name__ == "__main__":
    main()
