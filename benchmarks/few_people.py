"""The certified ranking of few people, beside private popularity with the whole budget.

    python benchmarks/few_people.py DATA [--people 200,1000] [--epsilons 0.1,1,20] [--draws 100] [--new 1000] [--seed 0]

Every draw takes other people and fresh noise. Both learn from the same people, popularity with all of the budget
(`EASE(head=0)`), and rank for the same new ones. Prints a Markdown table: figures of both, and the paired mean of the
difference with its interval (95 %).
"""

from __future__ import annotations

import argparse
import logging
import math

import numpy as np

from dpmf import EASE, Budget, Ratings
from dpmf.evaluation.new_users import NewUsers, People, Ranker, measure_ranker, people_of, release_ranker
from dpmf.ratings.subset import select_users

_FIGURES = ("recall@20", "ndcg@100")
_WORSE = 0.003  # what a ranking may lose beside popularity


def main() -> None:
    """Measure, and print a row for every number of people and every epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--people", default="200,500,1000,2000")
    parser.add_argument("--epsilons", default="0.1,0.5,1,2,5,20")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--new", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.getLogger("dpmf").setLevel(logging.ERROR)  # that popularity is all there is, is what is looked for
    ratings = Ratings.read(arguments.data)
    print(f"{ratings.name}: {arguments.draws} draws, {arguments.new} new people at the most")
    print("| people | ε | " + " | ".join(f"{name}, popularity | difference" for name in _FIGURES) + " | pairs in | |")
    print("|---|---|" + "---|" * (2 * len(_FIGURES) + 2))
    for count in (int(text) for text in arguments.people.split(",")):
        for epsilon in (float(text) for text in arguments.epsilons.split(",")):
            print(_row(ratings, count, epsilon, arguments), flush=True)


def _row(ratings: Ratings, count: int, epsilon: float, arguments: argparse.Namespace) -> str:
    drawn = [_draw(ratings, count, epsilon, arguments.new, arguments.seed + draw) for draw in range(arguments.draws)]
    figures, with_pairs = np.array([one for one, _ in drawn]), np.mean([has_pairs for _, has_pairs in drawn])
    cells, verdict = [f"{count:,}", f"{epsilon:g}"], ""
    for place in range(len(_FIGURES)):
        ranking, popularity = figures[:, 0, place], figures[:, 1, place]
        gain = ranking - popularity
        half = 1.96 * float(gain.std(ddof=1)) / math.sqrt(len(gain))
        cells += [f"{popularity.mean():.4f}", f"{gain.mean():+.4f} ± {half:.4f}"]
        if gain.mean() < -_WORSE:
            verdict = "worse"
    return "| " + " | ".join([*cells, f"{with_pairs:.0%}", verdict]) + " |"


def _draw(ratings: Ratings, count: int, epsilon: float, n_new: int, seed: int) -> tuple[list[list[float]], bool]:
    """Return the figures of the ranking and of popularity, and whether the former measured pairs."""
    order = np.random.default_rng(seed).permutation(ratings.n_users)
    if count >= ratings.n_users:
        raise SystemExit(f"there are {ratings.n_users:,} people: {count:,} leave nobody to rank for")
    train, new = (np.sort(part) for part in (order[:count], order[count : count + n_new]))
    people = people_of(select_users(ratings, new), NewUsers(seed=seed), n_held_out=len(new))
    found, learnt = [], select_users(ratings, train)
    for head in (None, 0):
        release = EASE(budget=Budget(epsilon), head=head, items_public=True).fit(learnt).release
        found.append((_figures(release_ranker(release), people), release.configuration["head"] > 0))
    return [one for one, _ in found], found[0][1]


def _figures(ranker: Ranker, people: People) -> list[float]:
    figures = measure_ranker(ranker, people, np.ones(people.n_items))
    return [float(np.mean(figures[name])) for name in _FIGURES]


if __name__ == "__main__":
    main()
