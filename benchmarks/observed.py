"""Ranking quality of private factorization of implicit feedback, beside popularity with the same budget.

    python benchmarks/observed.py DATA [--holdout 0.1] [--epsilons inf,20,5,1] [--runs 3] [--factors K]
        [--seed 0] [--record [NAME]]

Prints one JSON object: for every epsilon the mean of recall@10 and ndcg@10 on held-out items over several runs with
fresh noise, and the same for popularity alone with the whole budget. `--record` puts them into docs/results.
"""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import numpy as np
from record import add_option, epsilon_text, record, slug

from dpmf import ALS, Budget, Ratings
from dpmf.runs.peak_memory import peak_memory
from dpmf.runs.training import train_and_test


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--holdout", type=float, default=0.1)
    parser.add_argument("--epsilons", default="inf,20,5,1")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--factors", type=int)
    parser.add_argument("--seed", type=int, default=0)
    add_option(parser)
    arguments = parser.parse_args()
    ratings = Ratings.read(arguments.data)
    rows = [_row(ratings, float(text), arguments) for text in arguments.epsilons.split(",")]
    report = {"data": ratings.name, "users": ratings.n_users, "rows": rows, "peak_memory": peak_memory()}
    print(json.dumps(report, indent=1))
    if arguments.record is not None:
        name = arguments.record or slug(arguments.data)
        for row in rows:
            epsilon = float(row["epsilon"])
            runs = arguments.runs if math.isfinite(epsilon) else 1
            for results, prefix in (("als-implicit", ""), ("popularity", "popularity_")):
                figures = {one: row[f"{prefix}{one}"] for one in ("recall@10", "ndcg@10")}
                record(results, name, {epsilon_text(epsilon): figures}, runs=runs)


def _row(ratings: Ratings, epsilon: float, arguments: argparse.Namespace) -> dict[str, Any]:
    method = ALS(feedback="implicit", budget=Budget(epsilon), n_factors=arguments.factors, items_public=True)
    n_runs = arguments.runs if math.isfinite(epsilon) else 1
    runs = [train_and_test(method, ratings, holdout=arguments.holdout, seed=arguments.seed) for _ in range(n_runs)]
    row: dict[str, Any] = {"epsilon": str(epsilon)}
    for name in runs[0].accuracy:
        figures = [run.accuracy[name] for run in runs]
        row[name] = float(np.mean(figures))
        row[f"{name} from, to"] = [min(figures), max(figures)]
    row["seconds"] = float(np.mean([run.seconds for run in runs]))
    print(row, flush=True)
    return row


if __name__ == "__main__":
    main()
