"""Alternating least squares for observations beside `implicit`: seconds to the same objective, in one run.

    python benchmarks/als.py DATA [--factors 64] [--epochs 15] [--alpha 1] [--regularization 0.01] [--threads 2]

DATA is what `Ratings.read` reads, a block store, or an .npz file with arrays u, i and v. Needs implicit
(pip install implicit). The two take turns, an epoch each, so that a busy machine is busy for both; preparation
(transposing, compiling, reading) is not counted for either. Prints one JSON object.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # implicit asks for it, and has threads of its own

import argparse
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from implicit.cpu.als import AlternatingLeastSquares
from scipy.sparse import csr_matrix

from dpmf import Ratings
from dpmf.methods.alternating import factorize_observations, observations_objective
from dpmf.model import EpochRecord
from dpmf.ratings.ondisk import RatingsOnDisk, is_store


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--alpha", type=float, default=1.0)
    parser.add_argument("--regularization", type=float, default=0.01)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    ratings = _load(arguments.data)
    ours, theirs = _race(ratings, arguments)
    report = {
        "data": ratings.name or Path(arguments.data).stem,
        "ratings": len(ratings),
        **{name: value for name, value in vars(arguments).items() if name != "data"},
        "machine": {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("dpmf", "implicit", "numba", "numpy")},
        "epoch_seconds": {"dpmf": _median(ours), "implicit": _median(theirs)},
        "to_the_same_objective": _comparison(ours, theirs),
        "dpmf": ours,
        "implicit": theirs,
    }
    print(json.dumps(report, indent=1))


def _load(data: str) -> Ratings:
    if data.endswith(".npz"):
        columns = np.load(data)
        return Ratings.of(columns["u"], columns["i"], columns["v"], scale=(1, 5))
    return RatingsOnDisk.open(Path(data)).load() if is_store(data) else Ratings.read(data)


def _race(ratings: Ratings, arguments: argparse.Namespace) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """Return seconds so far and the objective after every epoch of each."""
    same: dict[str, Any] = {"alpha": arguments.alpha, "regularization": arguments.regularization}
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    peer = AlternatingLeastSquares(
        factors=arguments.factors, regularization=arguments.regularization, alpha=1.0, iterations=1,
        num_threads=arguments.threads, random_state=arguments.seed,
    )  # fmt: skip
    # What it calls a confidence is the whole weight of an observed pair: 1 + alpha r.
    confidences = csr_matrix(
        (1 + np.float32(arguments.alpha) * ratings.values, ratings.items, ratings.indptr),
        shape=(ratings.n_users, ratings.n_items),
    )

    def add_theirs(_epoch: int, seconds: float, _loss: float) -> None:
        objective = observations_objective(
            ratings, peer.user_factors, peer.item_factors, n_threads=arguments.threads, **same
        )
        theirs.append({"seconds": _last(theirs) + seconds, "objective": objective})

    def take_turns(record: EpochRecord) -> None:
        ours.append({"seconds": _last(ours) + record.seconds, "objective": record.train_rmse**2 * len(ratings)})
        peer.fit(confidences, show_progress=False, callback=add_theirs)  # goes on from the factors it has

    settings: dict[str, Any] = {"n_factors": arguments.factors, "n_threads": arguments.threads, **same}
    factorize_observations(
        Ratings.of([1, 1, 2], [1, 2, 2], [1, 1, 1], scale=(0, 1)), n_epochs=1, **settings
    )  # compiles
    factorize_observations(ratings, n_epochs=arguments.epochs, seed=arguments.seed, callbacks=[take_turns], **settings)
    return ours, theirs


def _comparison(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> list[dict[str, float]]:
    """For each objective the peer reached, return how long both took to get there (whole epochs), and the ratio."""
    rows = []
    for epoch, point in enumerate(theirs, 1):
        reached = [one["seconds"] for one in ours if one["objective"] <= point["objective"]]
        if reached:
            ratio = point["seconds"] / reached[0]
            rows.append({"objective": point["objective"], "epochs_of_implicit": epoch, "dpmf_seconds": reached[0],
                         "implicit_seconds": point["seconds"], "times_as_fast": ratio})  # fmt: skip
    return rows


def _median(points: list[dict[str, float]]) -> float:
    return float(np.median(np.diff([0.0, *(one["seconds"] for one in points)])))


def _last(points: list[dict[str, float]]) -> float:
    return points[-1]["seconds"] if points else 0.0


if __name__ == "__main__":
    main()
