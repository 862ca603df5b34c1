"""What one release for ratings, for lists or for both has of each: errors and lists, by epsilon.

    python benchmarks/purposes.py DATA [--epsilons 1,5,20] [--seeds 0,1,2] [--purposes ratings,both,ranking]
        [--record [NAME]]

Every run is that of `dpmf train DATA --for PURPOSE`, once with `--holdout 0.1` for the error and once with
`--holdout-users 0.1` for ndcg@100 of new users, at every seed with fresh noise. Prints means over the seeds; `--record`
puts them into docs/results."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from statistics import mean
from typing import Any

from record import add_option, epsilon_text, record, slug


def main() -> None:
    """Run and print a row for every purpose and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--epsilons", default="1,5,20")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--purposes", default="ratings,both,ranking")
    add_option(parser)
    arguments = parser.parse_args()
    seeds = arguments.seeds.split(",")
    for purpose in arguments.purposes.split(","):
        for epsilon in map(float, arguments.epsilons.split(",")):
            shared = ["--for", purpose, "--epsilon", epsilon_text(epsilon), "--items-public"]
            lists = [_train(arguments.data, *shared, "--holdout-users", "0.1", "--seed", seed) for seed in seeds]
            figures = {name: mean(one[name] for one in lists) for name in ("ndcg@100", "popularity_ndcg@100")}
            if purpose != "ranking":
                errors = [_train(arguments.data, *shared, "--holdout", "0.1", "--seed", seed) for seed in seeds]
                figures |= {name: mean(one[name] for one in errors) for name in ("rmse", "baseline_rmse")}
            print(json.dumps({"purpose": purpose, "epsilon": epsilon, **figures}), flush=True)
            if arguments.record is not None:
                name = f"{arguments.record or slug(arguments.data)}-{purpose}"
                record("purposes", name, {epsilon_text(epsilon): figures}, runs=len(seeds))


def _train(data: str, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "dpmf", "train", data, *options, "--json"]
    return dict(json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout))


if __name__ == "__main__":
    main()
