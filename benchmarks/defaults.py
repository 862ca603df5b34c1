"""Choosing the constants of private least squares on synthetic ratings alone.

    python benchmarks/defaults.py explicit|implicit OUT.json [--passes 2]

Coordinate descent: starting from plain values, the search goes through the constants one at a time, in several passes,
and keeps the value that does best over all worlds and epsilons of the constant's testbed. The score is the mean
logarithm of the rmse on held-out ratings, or of ndcg@10 for implicit feedback; all values see the same draws of noise.
Most constants are scored on the usual testbed; those that matter when there is next to nothing to learn, on few users
and small epsilons; finally the largest number of factors, on many users. For explicit feedback the search then finds
how many users factors need: the smallest number beyond which they never lose more to biases alone than is allowed.
Writes every trial, the result, and how it compares, on worlds that had no part in the choice, with biases or popularity
alone and with the free baseline. benchmarks/constants.py lists the constants.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import statistics
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from constants import CONSTANTS, CONSTANTS_LAST, NO_FACTORS, Constant, Values, apply
from worlds import World

from dpmf import ALS, Budget, Ratings
from dpmf.engine.threads import available_cpus
from dpmf.evaluation import evaluate, prediction_errors
from dpmf.evaluation.accuracy import own_means
from dpmf.evaluation.metrics import rmse

EPSILONS = (0.5, 1.0, 5.0, 20.0)
WORLDS = (
    World(1000, 500, taste=0.5),
    World(4000, 1500, mean_ratings=100.0, decay=1.0),
    World(4000, 1500, mean_ratings=60.0, taste=0.7, decay=0.6, pull=1.0),
    World(10_000, 1000, mean_ratings=60.0, taste=0.5, decay=0.2),
    World(12_000, 2000, noise=0.6, pull=0.4),
    World(50_000, 800, mean_ratings=30.0, decay=1.0, noise=0.7),
)
FEW = tuple(World(n_users, 250, mean_ratings=30.0, seed=seed) for n_users in (150, 300, 600) for seed in (0, 2, 3))
LARGE = (
    World(100_000, 1000, mean_ratings=40.0),
    World(200_000, 1000, mean_ratings=30.0, taste=0.5, decay=0.6),
    World(100_000, 1000, mean_ratings=120.0),
)
UNSEEN = (
    World(200, 300, mean_ratings=30.0, seed=1),
    World(400, 300, mean_ratings=30.0, taste=0.6, seed=1),
    World(2000, 800, taste=0.6, decay=0.7, seed=1),
    World(8000, 1200, mean_ratings=70.0, decay=0.9, pull=0.5, seed=1),
    World(8000, 1200, mean_ratings=70.0, taste=0.5, decay=0.0, seed=1),
    World(25_000, 1500, mean_ratings=60.0, taste=0.35, decay=1.0, seed=1),
)


class Testbed(NamedTuple):
    """Where values are scored: every world with every epsilon.

    Attributes:
        worlds, epsilons: all pairs of them are used.
        settings: of the method, where they differ from the defaults.
        draws: of the noise, to average over where noise dominates.
        never_below_free: whether a value that loses to the free baseline is passed over if another does not.
    """

    worlds: tuple[World, ...]
    epsilons: tuple[float, ...] = EPSILONS
    settings: tuple[tuple[str, Any], ...] = ()
    draws: int = 1
    never_below_free: bool = False

    def cells(self) -> list[tuple[World, float]]:
        """Return pairs of world and epsilon, large worlds first, so that no process ends with a long one."""
        return [
            (world, epsilon) for world in sorted(self.worlds, key=lambda one: -one.n_users) for epsilon in self.epsilons
        ]


TESTBEDS = {
    "explicit": {
        "usual": Testbed(WORLDS),
        "next to nothing": Testbed(FEW, (0.02, 0.1, 0.5), draws=8, never_below_free=True),
        "moments of items": Testbed(WORLDS[:-1], (5.0, 20.0), (("moments", "per-item"), ("n_factors", 4))),
        "many people": Testbed(LARGE),
        "biases alone": Testbed(WORLDS, settings=(("n_factors", 0),)),
    },
    "implicit": {"usual": Testbed((*WORLDS[:3], WORLDS[4])), "many people": Testbed(LARGE[:1])},  # to rank takes longer
}
CHECK = {
    feedback: Testbed(UNSEEN, (0.1, *EPSILONS), draws=draws) for feedback, draws in (("explicit", 3), ("implicit", 1))
}
FACTORS_OR_BIASES = Testbed((*FEW, *WORLDS[:4]), (1.0, 5.0, 20.0), draws=5)
ALLOWED = 0.003  # what factors may lose to biases alone
NOTHING = 1e-4  # a loss to the free baseline that does not count
MASSES = (1_000, 3_000, 10_000, 30_000)  # epsilon times users
MOST_FACTORS = (4, 8, 16, 24)
ALONE = (("n_factors", 0),)


class Trial(NamedTuple):
    """One training: on a world, with an epsilon, values of the constants, and settings other than the defaults."""

    feedback: Any
    world: World
    epsilon: float
    values: Values
    settings: tuple[tuple[str, Any], ...] = ()
    draw: int = 1


class Search:
    """Scores values, each of them once.

    Attributes:
        feedback: explicit or implicit.
        trials: the values scored so far, with the mean logarithm of rmse or ndcg.
    """

    def __init__(self, feedback: str, pool: ProcessPoolExecutor) -> None:
        self.feedback, self.trials = feedback, list[dict[str, Any]]()
        self._pool = pool

    def better(self, values: Values, constant: Constant) -> Values:
        """Return the values, with the best choice for one constant on its testbed."""
        tried = [values, *({**values, **constant.assign(value)} for value in constant.values)]
        return min(tried, key=lambda one: self._score(constant.testbed, one))

    def differences(self) -> list[dict[str, Any]]:
        """Return the trials, each with only those values that differ from the first trial's."""
        first = self.trials[0]["values"]
        return [
            {**one, "values": {name: value for name, value in one["values"].items() if value != first.get(name)}}
            for one in self.trials
        ]

    def _score(self, testbed: str, values: Values) -> tuple[float, float]:
        """Return what to minimise: the loss to the free baseline where that counts, then the mean logarithm."""
        trial = {"ground": testbed, "values": values}
        known = next((one for one in self.trials if {**one, **trial} == one), None)
        if known is None:
            of = TESTBEDS[self.feedback][testbed]
            found = self.figures(of, values, of.settings)
            known = {**trial, "score": statistics.fmean(map(math.log, found))}
            if of.never_below_free:
                free = self._pool.map(_free, [world for world, _ in of.cells()])
                known["loss"] = max(map(float.__sub__, found, free))
            self.trials.append(known)
        loss = max(known.get("loss", 0.0), NOTHING)
        return loss, float(known["score"] if self.feedback == "explicit" else -known["score"])

    def figures(self, testbed: Testbed, values: Values, settings: tuple[tuple[str, Any], ...] = ()) -> list[float]:
        """Return the rmse or ndcg of every cell of a testbed, averaged over draws."""
        draws = range(1, testbed.draws + 1)
        trials = [Trial(self.feedback, *cell, values, settings, draw) for cell, draw in product(testbed.cells(), draws)]
        found = list(self._pool.map(_figure, trials))
        return [statistics.fmean(found[first : first + len(draws)]) for first in range(0, len(found), len(draws))]

    def losses_to_biases(self, values: Values) -> list[dict[str, float]]:
        """Return how much factors lose to biases alone, for every cell of the testbed."""
        cells = FACTORS_OR_BIASES.cells()
        factors = self.figures(FACTORS_OR_BIASES, {**values, NO_FACTORS: 0})
        alone = self.figures(FACTORS_OR_BIASES, values, ALONE)
        return [
            {"users": world.n_users, "epsilon": epsilon, "loss": loss}
            for (world, epsilon), loss in zip(cells, map(float.__sub__, factors, alone), strict=True)
        ]


def main() -> None:
    """Search, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("feedback", choices=tuple(CONSTANTS))
    parser.add_argument("out", type=Path)
    parser.add_argument("--passes", type=int, default=2)
    arguments = parser.parse_args()
    feedback: str = arguments.feedback
    constants: tuple[Constant, ...] = CONSTANTS[feedback]
    values: Values = {}
    for one in constants:
        values |= one.assign(one.values[0])
    with ProcessPoolExecutor(available_cpus()) as pool:
        search = Search(feedback, pool)
        for number in range(arguments.passes):
            for one in constants:
                values = search.better(values, one)
                print(f"pass {number + 1}: {_chosen(values, one)}", flush=True)
        for one in _last(feedback, values):
            values = search.better({**one.assign(one.values[0]), **values}, one)
            print(f"{one.testbed}: {_chosen(values, one)}", flush=True)
        report: dict[str, Any] = {"feedback": feedback}
        if feedback == "explicit":
            report["promise"] = search.losses_to_biases(values)
            values[NO_FACTORS] = _enough(report["promise"])
        check = CHECK[feedback]
        figures = {"figure": search.figures(check, values), "alone": search.figures(check, values, ALONE)}
        if feedback == "explicit":
            figures["free"] = list(pool.map(_free, [world for world, _ in check.cells()]))
    report["chosen"] = values
    report["unseen"] = [
        {"users": world.n_users, "epsilon": epsilon, **{name: found[place] for name, found in figures.items()}}
        for place, (world, epsilon) in enumerate(check.cells())
    ]
    print(json.dumps(report, indent=1))
    lines = ",\n  ".join(json.dumps(one) for one in search.differences())
    arguments.out.write_text(f'{json.dumps(report, indent=1)[:-2]},\n "trials": [\n  {lines}\n ]\n}}\n')


def _figure(trial: Trial) -> float:
    """Train and test; return the rmse, or for implicit feedback the ndcg."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    apply(trial.values)
    train, test = _split(trial.world)
    method = ALS(feedback=trial.feedback, budget=Budget(trial.epsilon), noise_seed=trial.draw, **dict(trial.settings))
    model = method.fit(train, n_threads=1)
    if trial.feedback == "implicit":
        return evaluate(model, test, n_threads=1)["ndcg@10"]
    return rmse(prediction_errors(model, test, n_threads=1))


def _enough(losses: list[dict[str, float]]) -> int:
    """Return the smallest epsilon times users beyond which factors never lose more than is allowed."""
    lost = max((one["users"] * one["epsilon"] for one in losses if one["loss"] > ALLOWED), default=0.0)
    return next((mass for mass in MASSES if mass >= lost), MASSES[-1])


def _free(world: World) -> float:
    """Return the rmse of the per-user mean, which uses no one else's data."""
    train, test = _split(world)
    return rmse(own_means(train)[test.users] - test.values)


@cache
def _split(world: World) -> tuple[Ratings, Ratings]:
    return world.ratings().split(0.1)


def _last(feedback: str, values: Values) -> tuple[Constant, ...]:
    """Return the constants chosen at the end: the most factors, and those on which little depends."""
    rule = CONSTANTS[feedback][0]
    least, _ = values[rule.names[0]]
    many = tuple((least, most) for most in MOST_FACTORS if most >= least)
    return rule._replace(values=many, testbed="many people"), *CONSTANTS_LAST[feedback]


def _chosen(values: Values, constant: Constant) -> str:
    return ", ".join(f"{name.rpartition('.')[2]} = {values[name]}" for name in constant.names)


if __name__ == "__main__":
    main()
