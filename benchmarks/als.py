"""Alternating least squares on implicit feedback against `implicit`: seconds to the same objective, in one run.

    python benchmarks/als.py DATA [--factors 64] [--epochs 15] [--alpha 1] [--regularization 0.01] [--threads 2]

DATA is anything `Ratings.read` reads, or an .npz file with arrays u, i and v. Needs implicit (pip install implicit).
The two alternate, as `dpmf.bench.race` describes; `dpmf bench` does the same, on part of the data if they are large.
Prints one JSON object.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # implicit asks for it: it has threads of its own

import argparse
import json
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np

from dpmf import Ratings, __version__
from dpmf.bench.race import Race, iteration_seconds, race, seconds_to


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--alpha", type=float, default=1.0)
    parser.add_argument("--regularization", type=float, default=0.01)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    ratings = _load(arguments.data)
    both = race(
        ratings,
        n_factors=arguments.factors,
        n_iterations=arguments.epochs,
        alpha=arguments.alpha,
        regularization=arguments.regularization,
        seed=arguments.seed,
        n_threads=arguments.threads,
    )
    report = {
        "data": ratings.name or Path(arguments.data).stem,
        "ratings": len(ratings),
        **{name: value for name, value in vars(arguments).items() if name != "data"},
        "machine": {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()},
        "versions": {"dpmf": __version__, **{name: version(name) for name in ("implicit", "numba", "numpy")}},
        "epoch_seconds": {"dpmf": iteration_seconds(both.dpmf), "implicit": iteration_seconds(both.implicit)},
        "to_the_same_objective": _comparison(both),
        "dpmf": [point._asdict() for point in both.dpmf],
        "implicit": [point._asdict() for point in both.implicit],
    }
    print(json.dumps(report, indent=1))


def _load(data: str) -> Ratings:
    if data.endswith(".npz"):
        columns = np.load(data)
        return Ratings.of(columns["u"], columns["i"], columns["v"], scale=(1, 5))
    return Ratings.read(data)


def _comparison(both: Race) -> list[dict[str, float]]:
    """Return, for each objective the peer reached, the time of both in whole epochs, and the ratio."""
    rows = []
    for epoch, point in enumerate(both.implicit, 1):
        ours = seconds_to(point.objective, both.dpmf)
        if ours is not None:
            rows.append(
                {
                    "objective": point.objective,
                    "epochs_of_implicit": epoch,
                    "dpmf_seconds": ours,
                    "implicit_seconds": point.seconds,
                    "times_as_fast": point.seconds / ours,
                }
            )
    return rows


if __name__ == "__main__":
    main()
