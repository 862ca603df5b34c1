"""Item features that say nothing, and some that may say something: what do they change?

    python benchmarks/features.py DATA [--every 1] [--epsilons 0.3,1,5,20] [--runs 4] [--record [NAME]]

Prints a Markdown table: ε, the features, in how many runs they gave traits, rmse on held-out ratings without and with
them, and the largest loss of a run. Each run holds out other ratings; with and without features the noise is the same.
Features are a matrix of 384 random numbers an item, random words, the titles of other items, and those of the items.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from record import add_option, epsilon_text, record, slug

from dpmf import ALS, Budget, Items, Ratings
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.metrics import rmse
from dpmf.ratings.described import description
from dpmf.ratings.subset import select_users

Describe = Callable[[Items, np.random.Generator], Items]


def main() -> None:
    """Measure, and print a row for every epsilon and kind of features."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--epsilons", default="0.3,1,5,20")
    parser.add_argument("--runs", type=int, default=4)
    add_option(parser)
    arguments = parser.parse_args()
    logging.getLogger("dpmf").setLevel(logging.ERROR)
    everybody = Ratings.read(arguments.data)
    ratings = select_users(everybody, np.arange(0, everybody.n_users, arguments.every))
    rows: dict[str, dict[str, float]] = {}
    print("| ε | features | traits | rmse without | with | largest loss |\n|---|---|---|---|---|---|")
    for epsilon in map(float, arguments.epsilons.split(",")):
        found: dict[str, list[tuple[float, float, bool]]] = {name: [] for name in KINDS}
        for run in range(arguments.runs):
            for name, errors in _run(ratings, epsilon, run).items():
                found[name].append(errors)
        rows[epsilon_text(epsilon)] = {}
        for name, kind in found.items():
            with_them, without = np.array([one[:2] for one in kind]).T
            used, lost = sum(one[2] for one in kind), float((with_them - without).max())
            means = float(without.mean()), float(with_them.mean())
            print(
                f"| {epsilon:g} | {name} | {used} of {len(kind)} | {means[0]:.4f} | {means[1]:.4f} | {lost:+.4f} |",
                flush=True,
            )
            key = name.replace(" ", "_")
            figures = {"used": used, "without": means[0], "rmse": means[1], "lost": lost}
            rows[epsilon_text(epsilon)] |= {f"{key}_{figure}": value for figure, value in figures.items()}
    if arguments.record is not None:
        name = arguments.record or slug(arguments.data, every=arguments.every)
        record("features", name, rows, runs=arguments.runs)


def _run(ratings: Ratings, epsilon: float, run: int) -> dict[str, tuple[float, float, bool]]:
    """Return the errors with each kind of features and without, and whether there are traits of it."""
    train, test = ratings.split(0.1, seed=run)
    method = ALS(budget=Budget(epsilon), items_public=True, noise_seed=run)
    without = method.fit(train)
    found = {}
    for name, describe in KINDS.items():
        told = describe(train.catalogue, np.random.default_rng(run))
        model = method.fit(replace(train, catalogue=told))
        errors, alone = (rmse(prediction_errors(one, test)) for one in (model, without))
        found[name] = errors, alone, model.release.learnt.traits > without.release.learnt.traits
    return found


def _random_matrix(items: Items, rng: np.random.Generator) -> Items:
    return items.with_features(rng.normal(size=(len(items), 384)))


def _random_words(items: Items, rng: np.random.Generator) -> Items:
    return _told(items, [" ".join(f"w{word}" for word in rng.zipf(1.5, size=6) % 300) for _ in items.ids])


def _other_titles(items: Items, rng: np.random.Generator) -> Items:
    return _told(items, [items.titles[place] for place in rng.permutation(len(items))])


def _titles(items: Items, rng: np.random.Generator) -> Items:
    return _told(items, list(items.titles))


def _told(items: Items, texts: list[str]) -> Items:
    found = description("a list", "", {"text": texts})
    return items if found is None else items.described(found)


KINDS: dict[str, Describe] = {
    "random matrix": _random_matrix,
    "random words": _random_words,
    "other titles": _other_titles,
    "titles": _titles,
}

if __name__ == "__main__":
    main()
