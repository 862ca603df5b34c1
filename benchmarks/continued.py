"""A release that starts from an earlier one, beside training again on all ratings, with the same budget in all.

    python benchmarks/continued.py DATA --epsilon 5 [--draws 5] [--seed 3]

Of the ratings that are not held out, a part came earlier, drawn at random, and the rest later. The budget is shared
between a release of the earlier part and one of the later part that starts from it, by gdp², as composition adds up; or
spent at once, on all of them. Prints rows of a Markdown table: rmse on a tenth of the ratings, of people who are folded
in by all others.
"""

from __future__ import annotations

import argparse
import logging

import numpy as np

from dpmf import ALS, Budget, Ratings, Release, evaluate
from dpmf.privacy.calibration import part_of

_PARTS = ((0.8, 0.8), (0.8, 0.5), (0.5, 0.8), (0.5, 0.5))  # of the ratings that came earlier, and of the budget


def main() -> None:
    """Measure, and print a row for every way to divide ratings and budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--seed", type=int, default=3)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    budget = Budget(arguments.epsilon)
    train, test = Ratings.read(arguments.data).split(0.1, seed=arguments.seed)
    rng = np.random.default_rng(arguments.seed)

    def error_of(release: Release) -> float:
        return evaluate(release, test, known=train)["rmse"]

    print("| earlier | of the budget | all again | earlier alone | continued | later alone |")
    print("|---" * 6 + "|")
    for part, share in _PARTS:
        first = rng.random(len(train)) < part
        earlier, later = train.select(first), train.select(~first)
        before, after = part_of(budget, share), part_of(budget, 1 - share)
        errors = []
        for _ in range(arguments.draws):
            start = ALS(budget=before).fit(earlier).release
            releases = (
                ALS(budget=budget).fit(train).release,
                start,
                ALS(budget=after).fit(later, start=start).release,
                ALS(budget=after).fit(later).release,
            )
            errors.append([error_of(one) for one in releases])
        cells = " | ".join(f"{one:.4f}" for one in np.mean(errors, axis=0))
        print(f"| {part:.0%} | {share:.0%} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
