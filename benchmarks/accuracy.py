"""Accuracy and speed of the non-private baseline with its defaults, on real ratings.

    python benchmarks/accuracy.py DATA [DATA …] [--holdout 0.1] [--seed 0] [--record]

Prints a Markdown table, with the machine and the versions; `--record` puts ratings and errors into docs/results.
"""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import version

from record import add_option, record, slug

from dpmf import SGD, Ratings
from dpmf.runs.training import train_and_test


def main() -> None:
    """Train on every data set and print one row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--holdout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    add_option(parser)
    arguments = parser.parse_args()
    print(f"dpmf {version('dpmf')}, numba {version('numba')}, {platform.machine()}, {os.cpu_count()} CPUs\n")
    print("| data | ratings | rmse | mae | per-user mean | training, s | M updates/s |\n|---|---|---|---|---|---|---|")
    for data in arguments.data:
        ratings = Ratings.read(data)
        run = train_and_test(SGD(seed=arguments.seed), ratings, holdout=arguments.holdout, seed=arguments.seed)
        accuracy = run.accuracy
        print(
            f"| {ratings.name} | {len(ratings):,} | {accuracy['rmse']:.4f} | {accuracy['mae']:.4f} "
            f"| {accuracy['baseline_rmse']:.4f} | {run.seconds:.1f} | {run.updates_per_second / 1e6:.0f} |",
            flush=True,
        )
        if arguments.record is not None:
            figures = {name: accuracy[name] for name in ("rmse", "mae", "baseline_rmse")}
            record("sgd", arguments.record or slug(data), {"": {"ratings": len(ratings), **figures}})


if __name__ == "__main__":
    main()
