"""Factors in a count sketch: speed beside descent, and error, leak and memory by depth, space gain and epsilon.

    python benchmarks/sketch.py speed DATA [--factors 16] [--depths 1,4] [--turns 5] [--seconds 3] [--gain 1]
    python benchmarks/sketch.py accuracy DATA [--factors 16] [--depths 1,4] [--gains 1,2,4] [--holdout 0.1]
    python benchmarks/sketch.py claims DATA [--epsilons 2,4,8] [--depths 1,4]
    python benchmarks/sketch.py certified DATA [--epsilons 1,5,20] [--gains 1,4]

DATA is a catalogue name, a file, a folder, or made:USERS:ITEMS:RATINGS, synthetic ratings of that shape with RATINGS
per user on average. Each command prints one JSON object; `certified --record` puts errors into docs/results. Updates in
a sketch run on one thread, so `speed` measures descent on one thread too: the best epoch of several seconds of each, in
processor time."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from itertools import pairwise
from typing import Any

from inputs import load
from record import add_option, epsilon_text, record, slug

from dpmf import SGD, SGLD, Budget, Ratings, Sketch
from dpmf.bench.turns import in_turns, median_ratio
from dpmf.methods import Method
from dpmf.runs.training import train_and_test

_PLAIN = Budget(math.inf)


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=tuple(_COMMANDS))
    parser.add_argument("data")
    parser.add_argument("--factors", type=int, default=16)
    parser.add_argument("--depths", default="1,4")
    parser.add_argument("--gains", default="1,2,4")
    parser.add_argument("--gain", type=float, default=1.0)
    parser.add_argument("--epsilons")
    parser.add_argument("--holdout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each kind in a turn")
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
        "rows": list(_COMMANDS[arguments.what](ratings, arguments)),
    }
    print(json.dumps(found, indent=1))


def _numbers(text: str | None, usual: str) -> list[float]:
    return [float(part) for part in (text or usual).split(",")]


def _speed(ratings: Ratings, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield updates per second, and the speed of a sketch relative to descent, the median over turns."""
    K = arguments.factors
    for depth in map(int, arguments.depths.split(",")):
        sketch = Sketch(n_factors=K, n_epochs=2, budget=_PLAIN, depth=depth, gain=arguments.gain)
        runs = {
            "descent": _speed_of(SGD(n_factors=K, n_epochs=2), ratings, arguments.seconds),
            "sketch": _speed_of(sketch, ratings, arguments.seconds),
        }
        turns = in_turns(runs, arguments.turns)
        row: dict[str, Any] = {"factors": K, "depth": depth, "gain": arguments.gain, "turns": len(turns)}
        row |= {f"{name}_updates_per_second": max(turn[name] for turn in turns) for name in runs}
        yield {**row, "sketch_to_descent": median_ratio(turns, "sketch", "descent")}


def _speed_of(method: SGD | Sketch, ratings: Ratings, seconds: float) -> Callable[[], float]:
    """Return a function that measures updates per second: the best epoch of `seconds` of training, three at least.

    It uses processor time, because on a busy machine long epochs are interrupted and short ones are not.
    """
    usual = min(record.seconds for record in method.fit(ratings, n_threads=1).history)
    longer = replace(method, n_epochs=max(round(seconds / usual), 3))

    def best_epoch() -> float:
        marks: list[float] = []
        longer.fit(ratings, n_threads=1, callbacks=[lambda record: marks.append(time.process_time())])
        return len(ratings) / min(after - before for before, after in pairwise(marks))

    return best_epoch


def _figures(method: Method, ratings: Ratings, arguments: argparse.Namespace) -> dict[str, float]:
    accuracy = train_and_test(method, ratings, holdout=arguments.holdout, seed=arguments.seed).accuracy
    return {name: accuracy[name] for name in ("rmse", "baseline_rmse", "kld", "kld_top_users", "rmse_top_users")}


def _accuracy(ratings: Ratings, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the figures of descent, and of sketches by depth and gain."""
    K = arguments.factors
    dense = 4 * K * (ratings.n_users + ratings.n_items)
    yield {"kind": "descent", "bytes": dense, **_figures(SGD(n_factors=K), ratings, arguments)}
    for depth in map(int, arguments.depths.split(",")):
        for gain in _numbers(arguments.gains, "1"):
            sketch = Sketch(n_factors=K, budget=_PLAIN, depth=depth, gain=gain)
            size = 4 * depth * sketch.width_for(ratings.n_users + ratings.n_items)
            figures = _figures(sketch, ratings, arguments)
            yield {"kind": "sketch", "depth": depth, "gain": gain, "bytes": size, **figures}


def _claims(ratings: Ratings, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the figures of the published method, by its threshold."""
    for depth in map(int, arguments.depths.split(",")):
        method = Sketch(
            n_factors=arguments.factors,
            budget=_PLAIN,
            depth=depth,
            gain=arguments.gain,
            mode="paper",
            items_public=True,
            n_epochs=100,
            biases="means",
        )
        for epsilon in [*_numbers(arguments.epsilons, "2,4,8"), math.inf]:
            figures = _figures(replace(method, budget=Budget(epsilon)), ratings, arguments)
            yield {"depth": depth, "gain": arguments.gain, "claimed": str(epsilon), **figures}


def _certified(ratings: Ratings, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the figures of certified sketches by gain, and of SGLD, which takes the same steps without a sketch."""
    for epsilon in _numbers(arguments.epsilons, "1,5,20"):
        budget = Budget(epsilon)
        plain = _figures(SGLD(budget=budget, items_public=True), ratings, arguments)
        _record("sketch-none", epsilon, plain, arguments)
        yield {"epsilon": epsilon, "kind": "sgld", **plain}
        for gain in _numbers(arguments.gains, "1"):
            sketch = Sketch(budget=budget, gain=gain, items_public=True)
            found = _figures(sketch, ratings, arguments)
            _record(f"sketch-{gain:g}", epsilon, found, arguments)
            yield {"epsilon": epsilon, "kind": "sketch", "gain": gain, **found}


def _record(kind: str, epsilon: float, found: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Record an error if that was asked for."""
    if arguments.record is not None:
        name = f"{arguments.record or slug(arguments.data)}-{kind}"
        record("certified", name, {epsilon_text(epsilon): {"rmse": found["rmse"]}})


_COMMANDS = {"speed": _speed, "accuracy": _accuracy, "claims": _claims, "certified": _certified}

if __name__ == "__main__":
    main()
