"""Choosing the constants of private least squares, on made-up ratings alone.

    python benchmarks/defaults.py explicit|implicit OUT.json [--passes 2]

Starts from plain values, and goes through the constants one after the other, some times over: of every one the value
is kept that does best on all worlds and epsilons of its ground together. Judged is the mean logarithm of the rmse on
held-out ratings, or for implicit feedback of the ndcg@10, with the same draws of noise for all values. Most constants
are judged on the usual ground; those that matter where there is next to nothing to learn, on few people and small
epsilons; at last, how many factors there are at most, on many people. Then, for explicit feedback, it is found from how
many people on factors may be used: the least number beyond which they nowhere lose more to biases alone than is
promised. Writes every trial, the result, and how it compares on worlds that had no part in the choice: with biases or
popularity alone, and with the free baseline.
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

from worlds import World

from dpmf import ALS, Budget, Ratings
from dpmf.engine.threads import available_cpus
from dpmf.evaluation import evaluate, prediction_errors
from dpmf.evaluation.accuracy import own_means
from dpmf.evaluation.metrics import rmse
from dpmf.methods.als import certified as private_als
from dpmf.methods.als import implicit
from dpmf.methods.als import implicit_certified as private_observed
from dpmf.methods.als import implicit_plan as observed_plan
from dpmf.methods.als import plan as private_plan

MODULES = {module.__name__: module for module in (implicit, observed_plan, private_als, private_observed, private_plan)}
Values = dict[tuple[str, str], Any]
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


class Ground(NamedTuple):
    """Where values are judged: on each world with each epsilon, and perhaps with settings other than the defaults.

    Where noise is most of what there is, the mean of several draws of it counts. Where there is a promise never to lose
    to the free baseline, values that do are not chosen if others do not.
    """

    worlds: tuple[World, ...]
    epsilons: tuple[float, ...] = EPSILONS
    settings: tuple[tuple[str, Any], ...] = ()
    draws: int = 1
    never_below_free: bool = False

    def cells(self) -> list[tuple[World, float]]:
        """Return worlds with epsilons, large ones first, so that no process is left with a long one at the end."""
        return [
            (world, epsilon) for world in sorted(self.worlds, key=lambda one: -one.n_users) for epsilon in self.epsilons
        ]


GROUNDS = {
    "explicit": {
        "usual": Ground(WORLDS),
        "next to nothing": Ground(FEW, (0.02, 0.1, 0.5), draws=8, never_below_free=True),
        "moments of items": Ground(WORLDS[:-1], (5.0, 20.0), (("moments", "per-item"), ("n_factors", 4))),
        "many people": Ground(LARGE),
        "biases alone": Ground(WORLDS, settings=(("n_factors", 0),)),
    },
    "implicit": {"usual": Ground((*WORLDS[:3], WORLDS[4])), "many people": Ground(LARGE[:1])},  # to rank takes longer
}
CHECK = {
    feedback: Ground(UNSEEN, (0.1, *EPSILONS), draws=draws) for feedback, draws in (("explicit", 3), ("implicit", 1))
}
PROMISE = Ground((*FEW, *WORLDS[:4]), (1.0, 5.0, 20.0), draws=5)
ALLOWED = 0.003  # what factors may lose to biases alone
NOTHING = 1e-4  # a loss to the free baseline that is none
MASSES = (1_000, 3_000, 10_000, 30_000)  # epsilon times users


class Constant(NamedTuple):
    """A constant of a module, and the values to choose from; the first is the plain one to start with.

    Several with a space between them are chosen together, for none of them matters without the others.
    """

    module: str
    name: str
    values: tuple[Any, ...]
    ground: str = "usual"

    def meaning(self, value: Any) -> Values:
        """Return what a value of it means."""
        names = self.name.split()
        return {(self.module, name): one for name, one in zip(names, value if len(names) > 1 else [value], strict=True)}


def _shares(share: float, users: float = 0.002) -> dict[str, float]:
    return {private_plan.USERS: users, private_plan.POPULARITY: share, private_plan.WEIGHTS: share}


_PLAN, _ROUNDS = "dpmf.methods.als.plan", "dpmf.methods.als.certified"
EXPLICIT = (
    Constant(_PLAN, "_FACTORS", ((8, 8), (2, 8), (2, 16), (3, 16), (4, 16))),
    Constant(_PLAN, "_FACTOR_POINT", (20_000, 5_000, 10_000, 40_000)),
    Constant(_PLAN, "_ROUNDS", (4, 2, 3, 6, 8)),
    Constant(_ROUNDS, "_CLIP", (1.0, 0.12, 0.25, 0.5, 2.0)),
    Constant(_ROUNDS, "_ERROR", (1.0, 0.7, 0.85)),
    Constant(_PLAN, "_USER_RIDGE", (1.0, 0.12, 0.25, 0.5)),
    Constant(_PLAN, "_BIAS_SHARE", (0.1, 0.025, 0.05, 0.2)),
    Constant(_PLAN, "_BIAS_PASSES", (1, 2, 3)),
    Constant(_PLAN, "_HEIGHTS", ((1.0, 1.0), (0.5, 1.0), (0.5, 2.0), (0.7, 3.0), (1.0, 4.0))),
    Constant(_PLAN, "_HEIGHT_POINT", (20_000, 1_500, 5_000)),
    Constant(_PLAN, "_HEIGHT_EXPONENT", (0.5, 0.3, 1.0)),
    Constant(_ROUNDS, "_EARLY_RIDGE", (0.5, 0.1, 0.2)),
    Constant(_ROUNDS, "_RARE_EXPONENT", (0.0, 0.15, 0.3, 0.45)),
    Constant(
        _PLAN, "_SHARES", (_shares(0.03), _shares(0.01), _shares(0.1), _shares(0.03, 0.0005), _shares(0.03, 0.01))
    ),
    Constant(_PLAN, "_MOMENT_SHARE", (0.03, 0.001, 0.003, 0.01)),
    Constant(_ROUNDS, "_MEAN_SQUARE", (0.5, 1.0, 2.0)),
    Constant(_ROUNDS, "_START_SD", (0.3, 0.1, 1.0)),
    Constant(_ROUNDS, "_START_REACH", (3.0, 2.0, 5.0)),
    Constant(_ROUNDS, "_SAMPLING", (0.1, 0.03, 0.3)),
    Constant(_ROUNDS, "_USER_BIAS_RIDGE", (3.0, 1.0, 6.0)),
    Constant(_ROUNDS, "_LEAST_TREND_GAIN", (0.0, 1.5, 3.0, 6.0)),
    Constant(_PLAN, "_NO_FACTORS", (0, 300, 1_000, 3_000), "next to nothing"),
    Constant(
        _ROUNDS,
        "_LEAST_BIAS_GAIN _LEAST_LEVEL_GAIN _LONE_BIAS_RIDGE",
        ((0.0, 0.0, 3.0), *product((0.0, 2.0, 4.0, 6.0), (3.0, 6.0, 12.0), (0.1, 0.2, 0.3, 1.0))),
        "next to nothing",
    ),
    Constant(_PLAN, "_ITEM_MOMENT_SHARE", (0.5, 0.1, 0.3), "moments of items"),
)
_OBSERVED_PLAN, _OBSERVED_ROUNDS = "dpmf.methods.als.implicit_plan", "dpmf.methods.als.implicit_certified"
IMPLICIT = (
    Constant(_OBSERVED_PLAN, "_FACTORS", ((8, 8), (2, 8), (2, 16), (4, 16), (8, 16), (4, 24))),
    Constant(_OBSERVED_PLAN, "_FACTOR_POINT", (20_000, 5_000, 10_000, 40_000)),
    Constant("dpmf.methods.als.implicit", "_ROUNDS", ((4, 4), (2, 2), (3, 3), (2, 4), (3, 4), (4, 6))),
    Constant("dpmf.methods.als.implicit", "_USER_RIDGES", ((1.0, 1.0), (0.3, 0.3), (3.0, 1.0), (1.0, 0.3), (3.0, 0.3))),
    Constant("dpmf.methods.als.implicit", "_ALPHA", (1.0, 0.0, 0.3)),
    Constant(_OBSERVED_PLAN, "_POPULARITY_SHARES", ((0.3, 0.3, 0.3), (0.1, 0.3, 0.8), (0.2, 0.4, 0.8), (0.2,) * 3)),
    Constant(_OBSERVED_PLAN, "_SHARE_EXPONENT", (1.0, 0.5, 1.5)),
    Constant(_OBSERVED_PLAN, "_MOMENT_SHARE", (0.03, 0.01, 0.1)),
    Constant(_OBSERVED_PLAN, "_FORGET", (0.0, 0.3, 0.6)),
    Constant(_OBSERVED_PLAN, "_HEIGHTS", ((1.0, 1.0), (0.5, 0.5), (0.5, 1.0), (0.25, 0.5))),
    Constant(_OBSERVED_ROUNDS, "_MEAN_SQUARE", (1.0, 0.5, 2.0)),
    Constant(_OBSERVED_ROUNDS, "_LIFT", (1.0, 0.5, 2.0)),
    Constant(_OBSERVED_ROUNDS, "_SAMPLING", (1.0, 0.3, 0.6)),
)
EXPLICIT_LAST = (Constant(_PLAN, "_LONE_BIAS_PASSES", (1, 2, 3, 4, 6), "biases alone"),)
IMPLICIT_LAST = (
    Constant(_OBSERVED_PLAN, "_USER_SHARE", (0.002, 0.0005, 0.01)),
    Constant("dpmf.methods.als.implicit", "_HELD_BELOW", (1.0, 0.7, 3.0)),
    Constant(_OBSERVED_ROUNDS, "_SPREAD_OF_COUNTS", (1.2, 1.0, 1.5)),
    Constant(_OBSERVED_ROUNDS, "_LEAST_MEAN_GAIN", (3.0, 0.0, 1.0, 10.0)),
)
CONSTANTS = {"explicit": EXPLICIT, "implicit": IMPLICIT}
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
    """Tries values, and remembers what was tried.

    Attributes:
        feedback: explicit or implicit.
        trials: what was tried, with the mean logarithm of the figures.
    """

    def __init__(self, feedback: str, pool: ProcessPoolExecutor) -> None:
        self.feedback, self.trials = feedback, list[dict[str, Any]]()
        self._pool = pool

    def better(self, values: Values, constant: Constant) -> Values:
        """Return the values with that choice of one of them that does best on its ground."""
        tried = [values, *({**values, **constant.meaning(value)} for value in constant.values)]
        return min(tried, key=lambda one: self._score(constant.ground, one))

    def differences(self) -> list[dict[str, Any]]:
        """Return what was tried, each trial with those values only that differ from the first one's."""
        first = self.trials[0]["values"]
        return [
            {**one, "values": {name: value for name, value in one["values"].items() if value != first.get(name)}}
            for one in self.trials
        ]

    def _score(self, ground: str, values: Values) -> tuple[float, float]:
        """Return what should be small: first the loss to the free baseline, if it must not be, then the figure."""
        trial = {"ground": ground, "values": _named(values)}
        known = next((one for one in self.trials if {**one, **trial} == one), None)
        if known is None:
            of = GROUNDS[self.feedback][ground]
            found = self.figures(of, values, of.settings)
            known = {**trial, "score": statistics.fmean(map(math.log, found))}
            if of.never_below_free:
                free = self._pool.map(_free, [world for world, _ in of.cells()])
                known["loss"] = max(map(float.__sub__, found, free))
            self.trials.append(known)
        loss = max(known.get("loss", 0.0), NOTHING)
        return loss, float(known["score"] if self.feedback == "explicit" else -known["score"])

    def figures(self, ground: Ground, values: Values, settings: tuple[tuple[str, Any], ...] = ()) -> list[float]:
        """Return the mean figure of all draws, for every cell of a ground."""
        draws = range(1, ground.draws + 1)
        trials = [Trial(self.feedback, *cell, values, settings, draw) for cell, draw in product(ground.cells(), draws)]
        found = list(self._pool.map(_figure, trials))
        return [statistics.fmean(found[first : first + len(draws)]) for first in range(0, len(found), len(draws))]

    def promise(self, values: Values) -> list[dict[str, float]]:
        """Return, for every cell of its ground, how much factors lose to biases alone."""
        factors = self.figures(PROMISE, {**values, (_PLAN, "_NO_FACTORS"): 0})
        alone = self.figures(PROMISE, values, ALONE)
        return [
            {"users": world.n_users, "epsilon": epsilon, "loss": loss}
            for (world, epsilon), loss in zip(PROMISE.cells(), map(float.__sub__, factors, alone), strict=True)
        ]


def main() -> None:
    """Choose, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("feedback", choices=tuple(CONSTANTS))
    parser.add_argument("out", type=Path)
    parser.add_argument("--passes", type=int, default=2)
    arguments = parser.parse_args()
    feedback: str = arguments.feedback
    constants: tuple[Constant, ...] = CONSTANTS[feedback]
    values: Values = {}
    for one in constants:
        values |= one.meaning(one.values[0])
    with ProcessPoolExecutor(available_cpus()) as pool:
        search = Search(feedback, pool)
        for number in range(arguments.passes):
            for one in constants:
                values = search.better(values, one)
                print(f"pass {number + 1}: {_chosen(values, one)}", flush=True)
        for one in _last(feedback, values):
            values = search.better({**one.meaning(one.values[0]), **values}, one)
            print(f"{one.ground}: {_chosen(values, one)}", flush=True)
        report: dict[str, Any] = {"feedback": feedback}
        if feedback == "explicit":
            report["promise"] = search.promise(values)
            values[_PLAN, "_NO_FACTORS"] = _enough(report["promise"])
        check = CHECK[feedback]
        figures = {"figure": search.figures(check, values), "alone": search.figures(check, values, ALONE)}
        if feedback == "explicit":
            figures["free"] = list(pool.map(_free, [world for world, _ in check.cells()]))
    report["chosen"] = _named(values)
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
    for (module, name), value in trial.values.items():
        setattr(MODULES[module], name, value)
    train, test = _split(trial.world)
    method = ALS(feedback=trial.feedback, budget=Budget(trial.epsilon), noise_seed=trial.draw, **dict(trial.settings))
    model = method.fit(train, n_threads=1)
    if trial.feedback == "implicit":
        return evaluate(model, test, n_threads=1)["ndcg@10"]
    return rmse(prediction_errors(model, test, n_threads=1))


def _enough(losses: list[dict[str, float]]) -> int:
    """Return the least number of people, times epsilon, beyond which factors nowhere lose more than is allowed."""
    lost = max((one["users"] * one["epsilon"] for one in losses if one["loss"] > ALLOWED), default=0.0)
    return next((mass for mass in MASSES if mass >= lost), MASSES[-1])


def _free(world: World) -> float:
    """Return the rmse of everybody's own mean, which needs nobody else."""
    train, test = _split(world)
    return rmse(own_means(train)[test.users] - test.values)


@cache
def _split(world: World) -> tuple[Ratings, Ratings]:
    return world.ratings().split(0.1)


def _last(feedback: str, values: Values) -> tuple[Constant, ...]:
    """Return what is chosen at last: how many factors there are at most, and what little depends on."""
    of = EXPLICIT[0] if feedback == "explicit" else IMPLICIT[0]
    least, _ = values[of.module, of.name]
    many = of._replace(values=tuple((least, most) for most in MOST_FACTORS if most >= least), ground="many people")
    return many, *(EXPLICIT_LAST if feedback == "explicit" else IMPLICIT_LAST)


def _chosen(values: Values, constant: Constant) -> str:
    return ", ".join(f"{name} = {values[constant.module, name]}" for name in constant.name.split())


def _named(values: Values) -> dict[str, Any]:
    return {f"{module}.{name}": value for (module, name), value in values.items()}


if __name__ == "__main__":
    main()
