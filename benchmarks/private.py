"""Accuracy of private factorization, beside the free baseline and factorization that is not private.

    python benchmarks/private.py DATA [--every 10] [--holdout 0.1] [--epsilons inf,20,5,1] [--runs 3] [--factors K]
        [--seed 0] [--moments shared] [--without-traits] [--record [NAME]]

Prints one JSON object: for every epsilon the mean and the range of the rmse on held-out ratings over several runs with
fresh noise, that of private item biases alone, seconds and memory; `--record` puts them into docs/results. `--every 10`
keeps users whose id ends in 0. `--seed` chooses which ratings are held out: those of seed 0 were used while the method
was developed."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import numpy as np
from record import add_option, epsilon_text, record, slug

from dpmf import ALS, Budget, Ratings
from dpmf.ratings.subset import select_users
from dpmf.runs.peak_memory import peak_memory
from dpmf.runs.training import train_and_test


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--holdout", type=float, default=0.1)
    parser.add_argument("--epsilons", default="20,5,1")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--factors", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without-traits", action="store_true")
    parser.add_argument("--moments", choices=("shared", "per-item"), default="shared")
    add_option(parser)
    arguments = parser.parse_args()
    ratings = Ratings.read(arguments.data)
    if arguments.every > 1:
        ratings = select_users(ratings, np.flatnonzero(ratings.user_ids.array % arguments.every == 0))
    rows = [_row(ratings, float(text), arguments) for text in arguments.epsilons.split(",")]
    report = {"data": ratings.name, "users": ratings.n_users, "rows": rows, "peak_memory": peak_memory()}
    print(json.dumps(report, indent=1))
    if arguments.record is not None:
        _record(rows, arguments)


def _record(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> None:
    """Put errors, and those of biases alone, into two sets."""
    name = arguments.record or slug(arguments.data, every=arguments.every)
    for row in rows:
        epsilon = float(row["epsilon"])
        runs = arguments.runs if math.isfinite(epsilon) else 1
        errors = {
            "rmse": row["rmse"],
            "rmse_min": row["from"],
            "rmse_max": row["to"],
            "baseline_rmse": row["baseline_rmse"],
        }
        # Of the first run: errors by the popularity of items, up to each share of them, and those of the per-user mean.
        errors |= {f"rmse_to_{high:g}": ours for high, _, ours, _ in row["by_popularity"]}
        errors |= {f"baseline_rmse_to_{high:g}": free for high, _, _, free in row["by_popularity"]}
        record(
            "als-without-traits" if arguments.without_traits else "als",
            name,
            {epsilon_text(epsilon): errors},
            runs=runs,
        )
        if row["biases_rmse"] is not None:
            record("biases", name, {epsilon_text(epsilon): {"rmse": row["biases_rmse"]}}, runs=runs)


def _row(ratings: Ratings, epsilon: float, arguments: argparse.Namespace) -> dict[str, Any]:
    chosen = {"n_factors": arguments.factors, "moments": arguments.moments, "traits": not arguments.without_traits}
    method = ALS(budget=Budget(epsilon), items_public=True, **chosen)
    n_runs = arguments.runs if math.isfinite(epsilon) else 1
    runs = [train_and_test(method, ratings, holdout=arguments.holdout, seed=arguments.seed) for _ in range(n_runs)]
    errors = [run.accuracy["rmse"] for run in runs]
    biases = [run.accuracy["biases_rmse"] for run in runs if "biases_rmse" in run.accuracy]
    row = {
        "epsilon": str(epsilon),
        "rmse": float(np.mean(errors)),
        "from": min(errors),
        "to": max(errors),
        "biases_rmse": float(np.mean(biases)) if biases else None,
        "baseline_rmse": runs[0].accuracy["baseline_rmse"],
        "seconds": float(np.mean([run.seconds for run in runs])),
        "by_popularity": [(high, count, *found) for high, count, found in runs[0].by_popularity],
    }
    print(row, flush=True)
    return row


if __name__ == "__main__":
    main()
