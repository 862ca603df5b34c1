"""The less popular half of the items: how much of what privacy costs there does the list of items give back?

    python benchmarks/rare_items.py DATA [--epsilons 1] [--runs 3] [--seed 3] [--holdout 0.1] [--record [NAME]]

Prints one JSON object: for every epsilon the rmse on held-out ratings of the half of the catalogue that has fewest
ratings, of a run with all that the list of items says, of item biases alone that know nothing about items but ids, of
the same with genres and years, and of plain ALS without privacy; means over runs with fresh noise. `closed` is the
share of the gap between biases that know ids and ALS without privacy.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
from dataclasses import replace

import numpy as np
from record import add_option, epsilon_text, record, slug

from dpmf import ALS, Budget, Items, Model, Ratings
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.accuracy import by_popularity


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--epsilons", default="1")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--holdout", type=float, default=0.1)
    add_option(parser)
    arguments = parser.parse_args()
    logging.getLogger("dpmf").setLevel(logging.ERROR)
    train, test = Ratings.read(arguments.data).split(arguments.holdout, seed=arguments.seed)
    untold, tested = (replace(one, catalogue=Items.of(train.catalogue.ids)) for one in (train, test))
    exact = _rare(ALS(budget=Budget(math.inf), seed=arguments.seed).fit(train), train, test)
    rows = {}
    for text in arguments.epsilons.split(","):
        method = ALS(budget=Budget(float(text)), items_public=True)
        alone = replace(method, n_factors=0, traits=False)
        runs = [
            (
                _rare(method.fit(train), train, test),
                _rare(alone.fit(untold), untold, tested),
                _rare(alone.fit(train), train, test),
            )
            for _ in range(arguments.runs)
        ]
        told, biases, told_biases = map(float, np.mean(runs, axis=0))
        rows[epsilon_text(float(text))] = {
            "rmse": told,
            "biases_rmse": biases,
            "told_biases_rmse": told_biases,
            "exact_rmse": exact,
            "closed": (biases - told) / (biases - exact),
        }
        print(text, rows[epsilon_text(float(text))], flush=True)
    print(json.dumps({"data": arguments.data, "runs": arguments.runs, "rows": rows}, indent=1))
    if arguments.record is not None:
        record("rare-items", arguments.record or slug(arguments.data), rows, runs=arguments.runs)


def _rare(model: Model, train: Ratings, test: Ratings) -> float:
    """Return the rmse of the less popular half of the items."""
    *_, (_, _, (found,)) = by_popularity(train, test, prediction_errors(model, test))
    return float(found)


if __name__ == "__main__":
    main()
