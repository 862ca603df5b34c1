"""Items that nobody rated: are they predicted, and put in order, better than by the mean of their genres?

    python benchmarks/cold_items.py DATA [--epsilons 1,5,20] [--runs 3] [--seed 0] [--share 0.1] [--item-features FILE]
        [--record [NAME]]

All ratings of a tenth of the catalogue are held out, another tenth in every run. Prints one JSON object: for every
epsilon the rmse of these ratings and how many pairs of them, of one person with different ratings, are in the right
order (a tie counts half). Beside it the same of exact means, without privacy: of all ratings of the item's genres, and
of one's own mean moved by how far these are from the mean of all; and of a run that knows nothing about items but ids.
"""

from __future__ import annotations

import argparse
import json
import logging
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import add_option, epsilon_text, record, slug

from dpmf import ALS, Budget, Items, Ratings
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.accuracy import own_means
from dpmf.evaluation.metrics import rmse
from dpmf.streams import mix, stream_key

Array = NDArray[np.float64]


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--epsilons", default="1,5,20")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--item-features")
    add_option(parser)
    arguments = parser.parse_args()
    logging.getLogger("dpmf").setLevel(logging.ERROR)
    ratings = Ratings.read(arguments.data, item_features=arguments.item_features)
    rows = {}
    for text in arguments.epsilons.split(","):
        found = [_run(ratings, float(text), arguments.share, arguments.seed + run) for run in range(arguments.runs)]
        rows[epsilon_text(float(text))] = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
        print(text, rows[epsilon_text(float(text))], flush=True)
    print(json.dumps({"data": ratings.name, "runs": arguments.runs, "rows": rows}, indent=1))
    if arguments.record is not None:
        record("cold-items", arguments.record or slug(arguments.data), rows, runs=arguments.runs)


def _run(ratings: Ratings, epsilon: float, share: float, seed: int) -> dict[str, float]:
    """Return the figures of one run, which holds out items of its own."""
    drawn = mix(stream_key(seed, "cold items") ^ ratings.catalogue.ids.keys)
    cold = np.zeros(ratings.n_items, np.bool_)
    cold[np.argsort(drawn, kind="stable")[: round(share * ratings.n_items)]] = True
    train, test = ratings.select(~cold[ratings.items]), ratings.select(cold[ratings.items])
    method = ALS(budget=Budget(epsilon), items_public=True)
    model = method.fit(train)
    untold = replace(train, catalogue=Items.of(train.catalogue.ids))
    genres, own = _genre_means(train)[test.items], own_means(train)[test.users]
    moved = np.clip(own + genres - train.values.mean(), train.scale.lo, train.scale.hi)
    errors = {
        "": prediction_errors(model, test),
        "untold_": prediction_errors(method.fit(untold), replace(test, catalogue=untold.catalogue)),
        "genre_": genres - test.values,
        "own_genre_": moved - test.values,
    }
    found = {f"{name}rmse": rmse(one) for name, one in errors.items()}
    known = model.release.learnt.with_ratings
    marked = 1.0 if known is None else float(np.mean(~known[cold]))
    ordered = {f"{name}ordered": _ordered(test, one + test.values) for name, one in errors.items()}
    return {**found, **ordered, "marked": marked}


def _genre_means(train: Ratings) -> Array:
    """Return, for every item, the mean of the mean ratings of its genres; that of all ratings if it has none."""
    table, overall = train.catalogue.genre_table, float(train.values.mean())
    counts = np.bincount(train.items, minlength=train.n_items)
    sums = np.bincount(train.items, train.values, minlength=train.n_items)
    rows = [table.of_items.items[first:last] for first, last in pairwise(table.of_items.indptr.tolist())]
    of = np.repeat(np.arange(train.n_items), np.diff(table.of_items.indptr))
    n_genres = len(table.numbers)
    rated, total = (np.bincount(table.of_items.items, one[of], minlength=n_genres) for one in (counts, sums))
    means = np.where(rated > 0, total / np.maximum(rated, 1), overall)
    return np.array([means[row].mean() if len(row) else overall for row in rows])


def _ordered(test: Ratings, predicted: Array) -> float:
    """Return the share of pairs of one person's ratings that are in the right order."""
    right, pairs = 0.0, 0
    for first, last in pairwise(test.indptr.tolist()):
        given, said = test.values[first:last], predicted[first:last]
        better = given[:, None] > given[None, :]
        apart: Any = np.sign(said[:, None] - said[None, :])
        right += float((0.5 + 0.5 * apart[better]).sum())
        pairs += int(better.sum())
    return right / max(pairs, 1)


if __name__ == "__main__":
    main()
