"""Do factors pay? The defaults beside item biases alone, and beside the mean of one's own ratings, in paired draws.

    python benchmarks/factors_pay.py [DATA ...] [--worlds NAME,...] [--every 1] [--epsilons 0.1,0.5,1,5,20] [--draws 50]
        [--record]

Without DATA, on synthetic worlds, each draw another one: usual worlds of 100 to 50,000 people, and unkind ones with ten
ratings a person and most items rated by a handful, also tested on items drawn at random. With DATA, each draw holds out
another tenth. In a draw, the defaults and biases alone (`n_factors=0`, `traits=False`) have the whole budget each, with
fresh noise, and the per-user mean needs none. Prints a Markdown table of the rmse, and of the paired mean of what the
defaults add to the error of the others, with its interval (95 %): below 0 they are better.
"""

from __future__ import annotations

import argparse
import logging
import math
import warnings
from functools import cache, partial

import numpy as np
from record import add_option, epsilon_text, record, slug
from worlds import World

from dpmf import ALS, Budget, Ratings
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.accuracy import own_means
from dpmf.evaluation.metrics import rmse
from dpmf.ratings.subset import select_users

SPARSE = partial(World, mean_ratings=10.0, least=3, fall=1.1)
WORLDS = {
    "people-100": World(100, 250, mean_ratings=30.0),
    "people-300": World(300, 250, mean_ratings=30.0),
    "people-1000": World(1_000, 500, taste=0.5),
    "people-4000": World(4_000, 1_500, mean_ratings=60.0, decay=0.6),
    "people-50000": World(50_000, 800, mean_ratings=30.0, decay=1.0, noise=0.7),
    "people-200000": World(200_000, 1_000, mean_ratings=30.0, taste=0.5, decay=0.6),
    "sparse-500": SPARSE(500, 1_500),
    "sparse-3000": SPARSE(3_000, 9_000),
    "sparse-20000": SPARSE(20_000, 40_000),
    "sparse-few-tastes": SPARSE(3_000, 9_000, taste=0.1, noise=1.0),
    "by-taste": World(3_000, 1_000, mean_ratings=20.0, least=5, pull=1.5),
    "sparse-by-taste": SPARSE(3_000, 9_000, pull=2.0),
}
AT_RANDOM = ("by-taste", "sparse-by-taste")
_N_RANDOM = 5  # items drawn for everybody
_WORSE = 0.002


def main() -> None:
    """Measure, and print a row for every set and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", nargs="*")
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--epsilons", default="0.1,0.5,1,5,20")
    parser.add_argument("--draws", type=int, default=50)
    add_option(parser)
    arguments = parser.parse_args()
    logging.getLogger("dpmf").setLevel(logging.ERROR)  # that little is learnt is what is looked for
    warnings.simplefilter("ignore")
    print("| | ε | per-user mean | biases alone | defaults | beside the mean | beside biases | |")
    print("|---|---|---|---|---|---|---|---|")
    names = arguments.data or arguments.worlds.split(",")
    for name in names:
        for test in ("held out", "at random") if not arguments.data and name in AT_RANDOM else ("held out",):
            for epsilon in (float(text) for text in arguments.epsilons.split(",")):
                _measure(name, test, epsilon, arguments)


def _measure(name: str, test: str, epsilon: float, arguments: argparse.Namespace) -> None:
    """Print one row, and record it if asked to."""
    every, is_world = arguments.every, not arguments.data
    found = []
    for draw in range(arguments.draws):
        parts = _world_parts(name, test, draw) if is_world else _data_parts(name, every, draw)
        found.append(_errors(*parts, epsilon))
    errors = np.array(found)
    label = (name if is_world else slug(name, every=every)) + ("-at-random" if test == "at random" else "")
    free, alone, ours = errors.mean(axis=0)
    figures = {"free": free, "biases": alone, "rmse": ours}
    cells, verdict = [label, f"{epsilon:g}", f"{free:.4f}", f"{alone:.4f}", f"{ours:.4f}"], ""
    for what, other in (("to_free", 0), ("to_biases", 1)):
        added = errors[:, 2] - errors[:, other]
        mean = float(added.mean())
        half = 1.96 * float(added.std(ddof=1)) / math.sqrt(len(added)) if len(added) > 1 else math.nan
        cells.append(f"{mean:+.4f} ± {half:.4f}")
        figures |= {what: mean, f"{what}_half": half}
        verdict = "worse" if mean > _WORSE else verdict
    print("| " + " | ".join([*cells, verdict]) + " |", flush=True)
    if arguments.record is not None:
        record("factors-pay", label, {epsilon_text(epsilon): figures}, runs=arguments.draws)


@cache
def _data(path: str, every: int) -> Ratings:
    ratings = Ratings.read(path)
    return select_users(ratings, np.flatnonzero(ratings.user_ids.array % every == 0)) if every > 1 else ratings


def _data_parts(path: str, every: int, draw: int) -> tuple[Ratings, Ratings]:
    return _data(path, every).split(0.1, seed=1000 + draw)


def _world_parts(name: str, test: str, draw: int) -> tuple[Ratings, Ratings]:
    world = WORLDS[name].with_seed(1000 + draw)
    return world.with_random_items(_N_RANDOM) if test == "at random" else world.ratings().split(0.1, seed=draw)


def _errors(train: Ratings, test: Ratings, epsilon: float) -> list[float]:
    """Return the errors of the per-user mean, of biases alone and of the defaults."""
    alone = ALS(budget=Budget(epsilon), items_public=True, n_factors=0, traits=False)
    ours = ALS(budget=Budget(epsilon), items_public=True)
    models = [method.fit(train) for method in (alone, ours)]
    free = rmse(own_means(train)[test.users] - test.values)
    return [free, *(rmse(prediction_errors(model, test)) for model in models)]


if __name__ == "__main__":
    main()
