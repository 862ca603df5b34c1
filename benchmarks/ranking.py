"""Lists for new users of the certified ranking, with its defaults.

    python benchmarks/ranking.py DATA [--every 10] [--epsilons 1,5,20] [--new-users 0.1] [--runs 3] [--seed 0]
        [--least-liked 5] [--set NAME=VALUE …] [--record [NAME]]

Every run holds out other people and has fresh noise. `--every 10` keeps every tenth user. `--set` changes a constant of
`dpmf.methods.ease`, such as `defaults.LEAST_MASS=1000`, which is how they were searched. Prints a Markdown table: means
of recall@20 and ndcg@100 over the runs, and the range of the latter. `--record` puts them into docs/results.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import logging

import numpy as np
from record import add_option, epsilon_text, record, slug

from dpmf import EASE, Budget, Ratings
from dpmf.evaluation.new_users import NewUsers, measure_ranker, release_ranker, split_users
from dpmf.evaluation.peers import popularity_ranker
from dpmf.ratings.subset import select_users


def main() -> None:
    """Measure, and print a row for every epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--epsilons", default="1,5,20")
    parser.add_argument("--new-users", type=float, default=0.1)
    parser.add_argument("--least-liked", type=int, default=NewUsers().least)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    add_option(parser)
    arguments = parser.parse_args()
    logging.getLogger("dpmf").setLevel(logging.ERROR)
    for change in arguments.set:
        _change(*change.split("=", 1))
    ratings = Ratings.read(arguments.data)
    if arguments.every > 1:
        ratings = select_users(ratings, np.arange(0, ratings.n_users, arguments.every))
    print(f"{ratings.name}: {ratings.n_users:,} people, {arguments.runs} runs from seed {arguments.seed} on")
    print("| ε | recall@20 | ndcg@100 | min–max |\n|---|---|---|---|")
    for epsilon in (float(text) for text in arguments.epsilons.split(",")):
        protocols = [
            NewUsers(arguments.new_users, seed=arguments.seed + run, least=arguments.least_liked)
            for run in range(arguments.runs)
        ]
        figures = np.array([_figures(ratings, epsilon, one) for one in protocols])
        recall, ndcg, *popular = map(float, figures.mean(axis=0))
        print(
            f"| {epsilon:g} | {recall:.4f} | {ndcg:.4f} | {figures[:, 1].min():.4f}–{figures[:, 1].max():.4f} |",
            flush=True,
        )
        if arguments.record is not None:
            least, most = figures[:, 1].min(), figures[:, 1].max()
            found = {"recall@20": recall, "ndcg@100": ndcg, "ndcg@100_min": least, "ndcg@100_max": most}
            found |= dict(zip(("popularity_recall@20", "popularity_ndcg@100"), popular, strict=True))
            name = arguments.record or _name(arguments)
            record("ease", name, {epsilon_text(epsilon): found}, runs=arguments.runs)


def _name(arguments: argparse.Namespace) -> str:
    """Return a name for the data and the people who count."""
    suffix = "" if arguments.least_liked == NewUsers().least else f"-least-liked-{arguments.least_liked}"
    return slug(arguments.data, every=arguments.every) + suffix


def _change(name: str, value: str) -> None:
    """Set a constant of the ranking; its name is that of the module and its own."""
    module, constant = name.rsplit(".", 1)
    home = importlib.import_module(f"dpmf.methods.ease.{module}")
    getattr(home, constant)  # refuses a name that there is not
    setattr(home, constant, ast.literal_eval(value))


def _figures(ratings: Ratings, epsilon: float, protocol: NewUsers) -> list[float]:
    """Return recall@20 and ndcg@100 of the release, and then of popularity, exactly counted."""
    train, people = split_users(ratings, protocol)
    release = EASE(budget=Budget(epsilon), items_public=True).fit(train).release
    popularity = np.bincount(train.items, minlength=people.n_items).astype(float)
    rankers = release_ranker(release), popularity_ranker(popularity)
    return [measure_ranker(one, people, popularity)[name] for one in rankers for name in ("recall@20", "ndcg@100")]  # type: ignore[misc]


if __name__ == "__main__":
    main()
