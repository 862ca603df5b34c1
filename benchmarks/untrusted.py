"""The cost of an untrusted recommender: accuracy of the certified protocol, and speed and traffic of both protocols.

    python benchmarks/untrusted.py certified DATA [--epsilons 1,5,20] [--repeats 3] [--seed 3] [--record [NAME]]
    python benchmarks/untrusted.py published DATA [--rounds 10000] [--per-round 100] [--random-items N] [--epsilon 1]

`certified` prints errors on a held-out tenth of the ratings: with one party that holds all ratings, with the protocol,
and with the protocol tolerating 5 % drop-outs and 5 % colluders; and the traffic per person and round;
`--record` puts the errors into docs/results. `published`
times rounds of S3 and prints their traffic, beside the figures of Hua, Xia and Zhong.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from record import add_option, epsilon_text, record, slug

from dpmf import ALS, Budget, Ratings
from dpmf.evaluation import baseline_errors, prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.federated.certified import CertifiedScenario, simulate_certified
from dpmf.federated.published import Scenario, simulate
from dpmf.ratings.subset import random_items

_HOLDOUT = 0.1
_SHOWN = (
    "bytes_down",
    "most_bytes_down",
    "bytes_up",
    "most_bytes_up",
    "most_bytes_from_third_party",
    "client_seconds",
    "third_party_seconds",
)


def certified(ratings: Ratings, epsilons: list[float], repeats: int, seed: int, name: str | None) -> None:
    """Print a line for every epsilon, and record its errors if there is a name for them."""
    train, test = ratings.split(_HOLDOUT, seed=seed)
    print(
        f"{len(train):,} ratings, {train.n_users:,} people, {train.n_items:,} items; "
        f"per-user mean {rmse(baseline_errors(train, test)):.4f}; mean of {repeats} runs"
    )
    for epsilon in epsilons:
        scenario = CertifiedScenario(Budget(epsilon), items_public=True, seed=seed)
        trusting = replace(scenario, dropouts=0.0, colluders=0.0)
        central = [ALS(budget=Budget(epsilon), items_public=True, seed=seed).fit(train) for _ in range(repeats)]
        alone, tolerant = ([simulate_certified(train, one) for _ in range(repeats)] for one in (trusting, scenario))
        errors = [
            np.mean([rmse(prediction_errors(model, test)) for model in models])
            for models in (central, [one.model for one in alone], [one.model for one in tolerant])
        ]
        print(
            f"epsilon {epsilon:g}: rmse {errors[0]:.4f} with one holder of all ratings, {errors[1]:.4f} without, "
            f"{errors[2]:.4f} tolerating 5 % drop-outs and 5 % colluders"
        )
        if name is not None:
            kinds = dict(zip(("central_rmse", "rmse", "tolerant_rmse"), map(float, errors), strict=True))
            record("federated", name, {epsilon_text(epsilon): kinds}, runs=repeats)
        figures = tolerant[0].traffic.to_json()
        sizes = {tolerant[0].agreement.ring(number).n_bytes for number in range(len(tolerant[0].agreement.rounds))}
        print(
            f"  {tolerant[0].rounds} rounds in {tolerant[0].seconds:.1f} s, {sorted(sizes)} bytes per ring element; "
            + ", ".join(f"{name} {figures[name]:.4g}" for name in _SHOWN)
        )


def published(ratings: Ratings, rounds: int, per_round: int, epsilon: float, seed: int) -> None:
    """Print the time and traffic of rounds of S3, beside the published figures."""
    scenario = Scenario("s3", rounds=rounds, epsilon=epsilon, per_round=per_round, items_public=True, seed=seed)
    outcome = simulate(ratings, scenario)
    figures = outcome.traffic.to_json()
    print(
        f"{len(ratings):,} ratings, {ratings.n_users:,} people, {ratings.n_items:,} items; "
        f"{outcome.took_part:,} took part"
    )
    print(
        f"{rounds:,} rounds of up to {per_round:,} people: {outcome.seconds:.1f} s in total, "
        f"{1e3 * outcome.seconds / rounds:.1f} ms a round (published: 5 s)"
    )
    print(
        f"with up to 20 ratings at most {figures['most_bytes_down_20_ratings']:,.0f} bytes down (12 KB) and "
        f"{figures['most_bytes_up_20_ratings']:,.0f} up (5 KB); from the third party at most "
        f"{figures['most_bytes_from_third_party']:,.0f} (3 MB)"
    )
    print(
        f"computation of a person {1e3 * figures['client_seconds']:.3f} ms (0.00057), of the third party "
        f"{1e3 * figures['third_party_seconds']:.1f} ms (400)"
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Accuracy, speed and bytes of the untrusted-recommender protocols.")
    parser.add_argument("what", choices=("certified", "published"))
    parser.add_argument("data")
    parser.add_argument("--epsilons", default="1,5,20")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--per-round", type=int, default=100)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--random-items", type=int)
    parser.add_argument("--seed", type=int, default=3)
    add_option(parser)
    asked = parser.parse_args()
    ratings = Ratings.read(asked.data)
    if asked.random_items is not None:
        ratings = random_items(ratings, asked.random_items, seed=asked.seed)
    if asked.what == "certified":
        name = None if asked.record is None else asked.record or slug(asked.data)
        certified(ratings, [float(one) for one in asked.epsilons.split(",")], asked.repeats, asked.seed, name)
    else:
        published(ratings, asked.rounds, asked.per_round, asked.epsilon, asked.seed)


if __name__ == "__main__":
    main()
