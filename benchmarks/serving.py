"""The best items of everybody in DATA that they have not rated, against `implicit`: people per second, in one run.

    python benchmarks/serving.py DATA [--factors 64] [--k 10] [--threads 2] [--turns 3] [--peer-users 100000]
        [--record [NAME]]

Both get the same random factors, and leave out what people rated in DATA. The two take turns, and the best turn of each
counts; implicit serves the first --peer-users people only. Needs implicit (pip install implicit). Prints one JSON
object; `agreement` is the share of items that both put at the same place of the same list. `--record` puts the figures
into docs/results."""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # implicit asks for it: it has threads of its own

import argparse
import json
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from record import add_option, record, slug

from dpmf import Ratings, __version__
from dpmf.model import Release, Ridge
from dpmf.model.batch import recommend_many
from dpmf.privacy import Guarantee


def main() -> None:
    """Measure, and print one JSON object."""
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--peer-users", type=int, default=100_000)
    add_option(parser)
    arguments = parser.parse_args()
    ratings, rng = Ratings.read(arguments.data), np.random.default_rng(0)
    shapes = (ratings.n_users, arguments.factors), (ratings.n_items, arguments.factors)
    users, items = (rng.normal(0, 0.3, shape).astype(np.float32) for shape in shapes)
    release = Release(
        items=ratings.catalogue,
        scale=ratings.scale,
        mean=ratings.scale.middle,
        item_factors=items,
        item_biases=np.zeros(len(items), np.float32),
        ridge=Ridge(1.0, 1.0),
        configuration={},
        guarantee=Guarantee.none(),
    )
    n_peer = min(arguments.peer_users, ratings.n_users)
    end = ratings.indptr[n_peer]
    rated = csr_matrix(
        (np.ones(end, np.float32), ratings.items[:end], ratings.indptr[: n_peer + 1]), shape=(n_peer, len(items))
    )
    peer = AlternatingLeastSquares(factors=arguments.factors, num_threads=arguments.threads, use_gpu=False)
    peer.item_factors, peer.user_factors = items, users[:n_peer]

    def ours(n_users: int = ratings.n_users) -> Any:
        indptr = ratings.indptr[: n_users + 1]
        of_people = users[:n_users], np.zeros(n_users, np.float32), indptr, ratings.items[: indptr[-1]]
        return recommend_many(release, *of_people, arguments.k, n_threads=arguments.threads).positions

    def theirs(n_users: int = n_peer) -> Any:
        return peer.recommend(np.arange(n_users), rated[:n_users], N=arguments.k)[0]

    agreement = float(np.mean(ours(1000) == theirs(1000)))  # and compiles
    seconds: dict[str, list[float]] = {"dpmf": [], "implicit": []}
    for _ in range(arguments.turns):
        seconds["dpmf"].append(_timed(ours))
        seconds["implicit"].append(_timed(theirs))
    speeds = {"dpmf": ratings.n_users / min(seconds["dpmf"]), "implicit": n_peer / min(seconds["implicit"])}
    report = {
        "data": ratings.name,
        "people": {"dpmf": ratings.n_users, "implicit": n_peer},
        "items": ratings.n_items,
        **{name: value for name, value in vars(arguments).items() if name not in ("data", "peer_users", "record")},
        "machine": {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()},
        "versions": {"dpmf": __version__, **{name: version(name) for name in ("implicit", "numba", "numpy")}},
        "seconds": seconds,
        "people_per_second": speeds,
        "times_as_fast": speeds["dpmf"] / speeds["implicit"],
        "agreement": agreement,
    }
    print(json.dumps(report, indent=1))
    if arguments.record is not None:
        figures = {"seconds": min(seconds["dpmf"]), "times_as_fast": report["times_as_fast"]}
        figures |= {f"{who}_people_per_second": speed for who, speed in speeds.items()}
        name = arguments.record or slug(arguments.data)
        record("serving", f"{name}-{arguments.factors}", {"": figures}, runs=arguments.turns)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
