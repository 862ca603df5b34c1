"""Posterior sampling: its speed and its error beside those of descent.

    python benchmarks/sgld.py speed DATA [--factors 16,128] [--turns 5] [--threads 1]
    python benchmarks/sgld.py accuracy DATA [--holdout 0.01]

DATA is a catalogue name, a file, a folder, or made:USERS:ITEMS:RATINGS, synthetic ratings of that shape with RATINGS
per user on average. Each command prints one JSON object. The held-out ratings are chosen at random, 1 % by default;
the paper's probe set of Netflix is harder. `python -m experiments liu2015` has the error against epsilon, table size
and epochs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

from inputs import load

from dpmf import SGD, SGLD, Budget, Ratings
from dpmf.bench.turns import in_turns, median_ratio
from dpmf.engine.threads import available_cpus
from dpmf.methods import Method
from dpmf.runs.training import train_and_test

_PLAIN = Budget(math.inf)
_LEAST_SECONDS = 3.0


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=tuple(_COMMANDS))
    parser.add_argument("data")
    parser.add_argument("--factors", default="16")
    parser.add_argument("--holdout", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=available_cpus())
    parser.add_argument("--turns", type=int, default=5)
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
    """Return updates per second, and the speed of sampling relative to descent, the median over turns."""
    rows = []
    for K in map(int, arguments.factors.split(",")):
        kinds: dict[str, SGD | SGLD] = {
            "descent": SGD(n_factors=K),
            "table": SGLD(n_factors=K, budget=_PLAIN),
            "fresh": SGLD(n_factors=K, budget=_PLAIN, table=0),
        }
        runs = {name: partial(_speed_of, one, ratings, arguments) for name, one in kinds.items()}
        turns = in_turns(runs, arguments.turns)
        row: dict[str, Any] = {"factors": K, "threads": arguments.threads, "turns": len(turns)}
        row |= {f"{name}_updates_per_second": max(turn[name] for turn in turns) for name in kinds}
        row |= {f"{name}_to_descent": median_ratio(turns, name, "descent") for name in ("table", "fresh")}
        rows.append(row)
    return {"rows": rows}


def _speed_of(method: SGD | SGLD, ratings: Ratings, arguments: argparse.Namespace) -> float:
    """Return updates per second of the best of several seconds of epochs, since a single one may be disturbed."""
    fit = partial(_seconds_of_epochs, ratings=ratings, n_threads=arguments.threads)
    first = min(fit(replace(method, n_epochs=2)))
    return len(ratings) / min(fit(replace(method, n_epochs=max(2, math.ceil(_LEAST_SECONDS / first)))))


def _seconds_of_epochs(method: SGD | SGLD, ratings: Ratings, n_threads: int) -> list[float]:
    return [record.seconds for record in method.fit(ratings, n_threads=n_threads).history]


def _error(method: Method, ratings: Ratings, arguments: argparse.Namespace, **more: Any) -> dict[str, float]:
    options = {"holdout": arguments.holdout, "seed": arguments.seed, "n_threads": arguments.threads}
    return train_and_test(method, ratings, **options, **more).accuracy


def _accuracy(ratings: Ratings, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return errors of descent, of averaged draws, and of one draw from the untrimmed posterior at s = 1."""
    K = int(arguments.factors)
    most = int((ratings.indptr[1:] - ratings.indptr[:-1]).max())
    draw = SGLD(n_factors=K, budget=Budget(4 * most * _per_rating(ratings)), mode="paper", cap=most, items_public=True)
    kinds: dict[str, Method] = {
        "descent": SGD(n_factors=K),
        "average of draws": SGLD(n_factors=K, budget=_PLAIN),
        "one draw at s = 1": draw,
    }
    return {"rows": [{"kind": name, **_error(one, ratings, arguments)} for name, one in kinds.items()]}


def _per_rating(ratings: Ratings) -> float:
    return (ratings.scale.hi - ratings.scale.lo + 1.0) ** 2


_COMMANDS = {"speed": _speed, "accuracy": _accuracy}

if __name__ == "__main__":
    main()
