"""How many titles above the line of the page, where lists by pairs stop standing out from noise, are there by noise.

    python benchmarks/line.py DATA [--epsilons 1,5] [--rated 6,100] [--people 400] [--seed 0]

People are those of the data, with as many of their positive ratings. A title above the line counts as noise if without
noise, in `EASE` with an infinite epsilon, it has no more than the middle score of the same items. Prints a row for each
epsilon and number of ratings: titles above the line, the share of them that is noise, and that of all titles.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray

from dpmf import EASE, Budget, Ratings
from dpmf.model import Ranking

WRONG = 0.1  # as in js/line.js


def main() -> None:
    """Measure, and print a row for every epsilon and number of ratings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--epsilons", default="1,5")
    parser.add_argument("--rated", default="6,100")
    parser.add_argument("--people", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    ratings = Ratings.read(arguments.data)
    exact = _ranking(ratings, math.inf, ratings.n_items)
    print("| ε | ratings | lists | titles above the line | noise among them | among all |\n|---|---|---|---|---|---|")
    for epsilon in (float(text) for text in arguments.epsilons.split(",")):
        private = _ranking(ratings, epsilon, None)
        for count in (int(text) for text in arguments.rated.split(",")):
            print(_row(ratings, private, exact, epsilon, count, arguments), flush=True)


def _ranking(ratings: Ratings, epsilon: float, head: int | None) -> Ranking:
    ranking = EASE(budget=Budget(epsilon), head=head, items_public=True).fit(ratings).release.ranking
    assert ranking is not None
    return ranking


def line_of(scores: NDArray[np.floating], plus: float = 0.0, wrong: float = WRONG) -> float:
    """Return the least score that stands out from noise, as js/line.js computes it; infinity if none does."""
    ordered = np.sort(scores.astype(np.float64))
    middle, line = ordered[len(ordered) >> 1], math.inf
    for above in range(1, len(ordered) + 1):
        score = ordered[-above]
        if score <= middle:
            break
        below = int(np.searchsorted(ordered, 2 * middle - score, "right"))
        if below + plus <= wrong * above:
            line = float(score)
    return line


def _row(
    ratings: Ratings, private: Ranking, exact: Ranking, epsilon: float, count: int, arguments: argparse.Namespace
) -> str:
    rng = np.random.default_rng(arguments.seed)
    liked = ratings.values >= private.threshold
    above = noise = lists = 0
    shares = []
    for user in rng.permutation(ratings.n_users):
        rows = slice(ratings.indptr[user], ratings.indptr[user + 1])
        items, values = ratings.items[rows][liked[rows]], ratings.values[rows][liked[rows]]
        if len(items) < count:
            continue
        chosen = rng.choice(len(items), count, replace=False)
        owned, given = items[chosen].astype(np.int64), values[chosen]
        others = np.setdiff1d(private.items, owned)
        weights = private.weigh(given, ratings.scale.hi)
        if not private.places[owned[weights > 0]].max(initial=-1) >= 0:
            continue
        scores, true = (one.scores(owned, weights)[others] for one in (private, exact))
        isSure = scores >= line_of(scores)
        isNoise = true <= np.median(true)
        above, noise, lists = above + int(isSure.sum()), noise + int((isSure & isNoise).sum()), lists + 1
        shares.append(isNoise.mean())
        if lists == arguments.people:
            break
    share = noise / above if above else math.nan
    return f"| {epsilon:g} | {count} | {lists} | {above / max(lists, 1):.1f} | {share:.1%} | {np.mean(shares):.0%} |"


if __name__ == "__main__":
    main()
