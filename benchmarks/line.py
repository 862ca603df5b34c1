"""How many titles above the line of the page, where lists by pairs stop standing out from noise, are there by noise.

    python benchmarks/line.py DATA RELEASE… [--rated 6,30] [--people 400] [--seed 0]

People are those of the data, with as many of their positive ratings. A title above the line counts as noise if without
noise, in `EASE` with an infinite epsilon, it has no more than the middle score of the same items. Prints a row for each
release and number of ratings: titles above the line, and the share of them that is noise (of all titles it is half).
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf import EASE, Budget, Ratings, Release
from dpmf.model import Ranking

WRONG = 0.1  # as in js/line.js


def main() -> None:
    """Measure, and print a row for every epsilon and number of ratings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--rated", default="6,30")
    parser.add_argument("--people", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    ratings = Ratings.read(arguments.data)
    exact = EASE(budget=Budget(math.inf)).fit(ratings).release.ranking
    assert exact is not None
    print("| ε | ratings | lists | titles above the line | noise among them |\n|---|---|---|---|---|")
    for release in map(Release.load, arguments.releases):
        assert release.ranking is not None
        for count in (int(text) for text in arguments.rated.split(",")):
            print(_row(ratings, release, exact, count, arguments.people, arguments.seed), flush=True)


def line_of(scores: NDArray[np.floating[Any]]) -> float:
    """Return the least score that stands out from noise, as js/line.js computes it; infinity if none does."""
    ordered = np.sort(scores.astype(np.float64))
    middle, line = ordered[len(ordered) >> 1], math.inf
    for above in range(1, len(ordered) + 1):
        score = ordered[-above]
        if score <= middle:
            break
        if np.searchsorted(ordered, 2 * middle - score, "right") <= WRONG * above:
            line = float(score)
    return line


def _row(ratings: Ratings, release: Release, exact: Ranking, count: int, most: int, seed: int) -> str:
    rng, private = np.random.default_rng(seed), release.ranking
    assert private is not None
    liked = ratings.values >= private.threshold
    above = noise = lists = 0
    for user in rng.permutation(ratings.n_users):
        rows = slice(ratings.indptr[user], ratings.indptr[user + 1])
        items, values = ratings.items[rows][liked[rows]], ratings.values[rows][liked[rows]]
        if len(items) < count:
            continue
        chosen = rng.choice(len(items), count, replace=False)
        owned = items[chosen].astype(np.int64)
        weights = private.weigh(values[chosen], ratings.scale.hi)
        if private.places[owned[weights > 0]].max(initial=-1) < 0:
            continue  # nothing that counts: the list is by popularity, and has no line
        others = np.setdiff1d(private.items, owned)
        scores, true = (one.scores(owned, weights)[others] for one in (private, exact))
        is_sure = scores >= line_of(scores)
        above, noise = above + int(is_sure.sum()), noise + int((is_sure & (true <= np.median(true))).sum())
        lists += 1
        if lists == most:
            break
    share = noise / above if above else math.nan
    return f"| {release.guarantee.epsilon:g} | {count} | {lists} | {above / max(lists, 1):.1f} | {share:.1%} |"


if __name__ == "__main__":
    main()
