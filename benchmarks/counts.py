"""How much counts add to a ranking of implicit feedback, on synthetic data whose counts carry preference, or do not.

    python benchmarks/counts.py [--method ease|als] [--people 3000] [--epsilons 2,10,inf] [--draws 8] [--seed 0]

Everybody is fonder of some tastes than of others, and has items of these more often; how often depends on how fond they
are (`preference`) and on chance (`spread`). Prints a Markdown table of ndcg@10 for new people: with a weight of 1 for
all that people have, and with weights by count, for several ramps (`dpmf.kernels.item_pairs.Ramp`), of which -4:4 is
the default; or, for ALS, with several settings of `counts` and `most_count`, at ε of 5, 20 and ∞ and four draws unless
others are given.
"""

from __future__ import annotations

import argparse
import logging
import math
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from dpmf import ALS, EASE, Budget, Ratings
from dpmf.evaluation.new_users import NewUsers, measure_ranker, release_ranker, split_users
from dpmf.kernels.item_pairs import Ramp
from dpmf.methods.ease import defaults
from dpmf.ratings import Items

_N_ITEMS, _N_TASTES = 300, 8
_WORLDS = ((1.0, 1.0), (0.5, 1.0), (0.0, 1.0), (0.0, 1.8))  # preference and spread
_WAYS = (("ignored", None), ("log", 16), ("log", 256), ("linear", 4), ("linear", 16))  # of ALS
_PLAIN_FACTORS = 16
_RAMPS = ((-1.0, 7.0), (-2.0, 6.0), (-4.0, 4.0), (-8.0, 8.0))


def main() -> None:
    """Measure, and print a row for every world and every way to weigh."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--people", type=int, default=3000)
    parser.add_argument("--method", choices=["ease", "als"], default="ease")
    parser.add_argument("--epsilons")
    parser.add_argument("--draws", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # of seeded noise
    of_ease = arguments.method == "ease"
    epsilons = arguments.epsilons or ("2,10,inf" if of_ease else "5,20,inf")
    budgets = [Budget(float(text)) for text in epsilons.split(",")]
    draws = arguments.draws or (8 if of_ease else 4)
    print("| preference | spread | weights | " + " | ".join(f"ε = {one.epsilon:g}" for one in budgets) + " |")
    print("|---" * (3 + len(budgets)) + "|")
    for place, (preference, spread) in enumerate(_WORLDS):
        users, items, counts = _had(arguments.people, preference, spread, arguments.seed + place)
        for way in () if of_ease else _WAYS:
            ratings = Ratings.of(users, items, counts, items=Items.of(np.arange(_N_ITEMS)), counts=True)
            cells = [f"{_quality_of_als(ratings, budget, draws, way):.4f}" for budget in budgets]
            shown = way[0] if way[1] is None else f"{way[0]}, {way[1]}"
            print(f"| {preference:g} | {spread:g} | {shown} | {' | '.join(cells)} |", flush=True)
        for ramp in (None, *_RAMPS) if of_ease else ():
            values = np.ones(len(counts)) if ramp is None else counts
            ratings = Ratings.of(users, items, values, items=Items.of(np.arange(_N_ITEMS)), counts=True)
            with mock.patch.object(defaults, "_COUNTS", Ramp(*(ramp or _RAMPS[0]), True)):
                cells = [f"{_quality(ratings, budget, draws):.4f}" for budget in budgets]
            shown = "1" if ramp is None else f"{ramp[0]:g}:{ramp[1]:g}"
            print(f"| {preference:g} | {spread:g} | {shown} | {' | '.join(cells)} |", flush=True)


def _had(
    n_people: int, preference: float, spread: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return who had what, and how often."""
    rng = np.random.default_rng(seed)
    popularity = -0.8 * np.log(np.arange(_N_ITEMS) + 10.0)
    rng.shuffle(popularity)
    users, items, counts = [], [], []
    for user in range(n_people):
        fond = rng.normal(size=_N_TASTES)[np.arange(_N_ITEMS) % _N_TASTES]
        size = int(np.clip(rng.lognormal(3.1, 0.7), 5, _N_ITEMS // 2))
        chosen = np.argpartition(popularity + 0.7 * fond + rng.gumbel(size=_N_ITEMS), -size)[-size:]
        often = np.exp(1 + preference * fond[chosen] + rng.normal(0, spread, size))
        users.append(np.full(size, user))
        items.append(chosen)
        counts.append(np.maximum(np.floor(often), 1.0))
    return np.concatenate(users), np.concatenate(items), np.concatenate(counts)


def _quality(ratings: Ratings, budget: Budget, draws: int) -> float:
    """Return the mean of ndcg@10 over draws of noise."""
    train, people = split_users(ratings, NewUsers(0.2, positive=-math.inf, seed=1))
    found = []
    for seed in range(draws) if budget.is_finite else (None,):
        about = train.n_users if budget.is_finite else None
        release = EASE(feedback="implicit", budget=budget, n_users=about, noise_seed=seed).fit(train).release
        popularity = np.bincount(train.items, minlength=ratings.n_items)
        found.append(measure_ranker(release_ranker(release), people, popularity)["ndcg@10"])
    return float(np.mean(found))


def _quality_of_als(ratings: Ratings, budget: Budget, draws: int, way: tuple[str, int | None]) -> float:
    """Return the same for factors of observations."""
    train, people = split_users(ratings, NewUsers(0.2, positive=-math.inf, seed=1))
    popularity, found = np.bincount(train.items, minlength=ratings.n_items), []
    for seed in range(draws) if budget.is_finite else (None,):
        n_factors = None if budget.is_finite else _PLAIN_FACTORS
        counts: dict[str, Any] = dict(zip(("counts", "most_count"), way, strict=True))
        method = ALS(n_factors=n_factors, feedback="implicit", budget=budget, noise_seed=seed, **counts)
        ranker = release_ranker(method.fit(train).release)
        found.append(measure_ranker(ranker, people, popularity)["ndcg@10"])
    return float(np.mean(found))


if __name__ == "__main__":
    main()
