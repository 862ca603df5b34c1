"""Whether public traits of items count, as noisy item biases tell: with those of the items, and with those of others.

    python benchmarks/traits.py DATA [--every 1,4] [--epsilons 0.3,1,5] [--runs 4] [--factors 0]

Traits of other items are the same ones, dealt out at random, and say nothing. Prints a Markdown table: people, ε, whose
traits, in how many runs they counted, and rmse on held-out ratings with them and without, means over the runs, each of
which holds out other ratings and has fresh noise.
"""

from __future__ import annotations

import argparse
import logging
from dataclasses import replace

import numpy as np

from dpmf import ALS, Budget, Items, Ratings, evaluate
from dpmf.ratings.subset import select_users


def main() -> None:
    """Measure, and print a row for every size, epsilon and kind of traits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--every", default="1,4")
    parser.add_argument("--epsilons", default="0.3,1,5")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--factors", type=int, default=0)
    arguments = parser.parse_args()
    logging.getLogger("dpmf").setLevel(logging.ERROR)
    everybody = Ratings.read(arguments.data)
    print("| people | ε | traits of | counted | rmse | without |\n|---|---|---|---|---|---|")
    for every in map(int, arguments.every.split(",")):
        ratings = select_users(everybody, np.arange(0, everybody.n_users, every))
        for epsilon in map(float, arguments.epsilons.split(",")):
            for whose in ("the items", "other items"):
                print(_row(ratings, epsilon, whose, arguments.factors, arguments.runs), flush=True)


def _row(ratings: Ratings, epsilon: float, whose: str, n_factors: int, n_runs: int) -> str:
    counted, errors = 0, []
    for run in range(n_runs):
        train, test = ratings.split(0.1, seed=run)
        if whose != "the items":
            train = replace(train, catalogue=_dealt_out(train.catalogue, run))
        method = ALS(n_factors=n_factors, budget=Budget(epsilon), items_public=True)
        with_traits, without = (replace(method, traits=traits).fit(train) for traits in (True, False))
        counted += with_traits.release.learnt.traits > 0
        errors.append([float(evaluate(one, test)["rmse"]) for one in (with_traits, without)])
    rmse, alone = np.mean(errors, axis=0)
    return f"| {ratings.n_users:,} | {epsilon:g} | {whose} | {counted} of {n_runs} | {rmse:.4f} | {alone:.4f} |"


def _dealt_out(catalogue: Items, seed: int) -> Items:
    """Return a catalogue in which items have the titles and genres of others."""
    order = np.random.default_rng(seed).permutation(len(catalogue))
    titles, genres = ([texts[place] for place in order] for texts in (catalogue.titles, catalogue.genres))
    return Items.of(catalogue.ids.array, titles, genres)


if __name__ == "__main__":
    main()
