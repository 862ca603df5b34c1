"""Other programs on the same ratings in the same run: LIBMF and implicit, where they are installed.

Each runs in a process of its own: they print, warn, and want settings from the start of the process.

>>> from dpmf.ratings.synthetic import make
>>> users_to_race(make(50, 40), n_factors=8)
50
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from dpmf.bench.race import Point, Race, iteration_seconds
from dpmf.evaluation.peer_process import ask
from dpmf.files import scratch_folder
from dpmf.ratings import Ratings

_LIBMF_ITERATIONS = (1, 4)  # the difference of two runs is the time of iterations alone, without set-up
_LIBMF_PROGRAM = """
import json, sys, time
import numpy as np
from libmf import mf
path, factors, threads, *iterations = sys.argv[1:]
ratings = np.load(path)
seconds = []
for count in map(int, iterations):
    # Its Python package has a penalty on absolute values by default, which takes time and dpmf has none of.
    engine = mf.MF(k=int(factors), nr_threads=int(threads), nr_iters=count, quiet=True, eta=0.05, lambda_p1=0,
                   lambda_q1=0, lambda_p2=0.02, lambda_q2=0.02, copy_data=False)
    began = time.perf_counter()
    engine.fit(ratings.copy())
    seconds.append(time.perf_counter() - began)
print("RESULT", json.dumps(seconds))
"""
_RACE_PROGRAM = "import implicit.cpu.als, dpmf.bench.race as one; one.main()"  # the peer first: it may be missing

# The first three keep a race on one core to about a minute, whatever the data. The products are those of exact
# solutions, which dpmf once made: it makes fewer now, but races over the same ratings can be compared. The last is for
# slow machines only: who is ahead depends on how many iterations there are.
MOST_RACING_FACTORS = 256
_MOST_RATINGS = 1_200_000
_MOST_PRODUCTS = 5e10  # in an iteration of exact solutions
_MOST_SECONDS = 120.0
_RACE_FIGURES = (
    "implicit_ratings",
    "implicit_iterations",
    "als_iteration_seconds",
    "implicit_iteration_seconds",
    "als_seconds_to_objective",
    "implicit_seconds_to_objective",
    "als_over_implicit",
)


def libmf_speed(ratings: Ratings, n_factors: int, n_threads: int, library: Path | None) -> float | None:
    """Return LIBMF's updates per second on the same ratings, or None if it is not installed.

    Args:
        ratings: what to train on.
        n_factors, n_threads: as for dpmf.
        library: a build of LIBMF to use instead of the one that comes with the PyPI package.
    """
    environment = {"LIBMF_OBJ": str(library)} if library is not None else {}
    with scratch_folder("bench") as folder:
        path = folder / "ratings.npy"
        np.save(path, np.c_[ratings.users, ratings.items, ratings.values].astype(np.float32))
        arguments = [str(path), *map(str, (n_factors, n_threads, *_LIBMF_ITERATIONS))]
        seconds = ask("libmf", ["-c", _LIBMF_PROGRAM, *arguments], environment)
    if seconds is None:
        return None
    short, long = seconds
    return float(len(ratings) * (_LIBMF_ITERATIONS[1] - _LIBMF_ITERATIONS[0]) / max(long - short, 1e-9))


def implicit_figures(ratings: Ratings, n_factors: int, n_threads: int) -> dict[str, float | None]:
    """Return how long dpmf and implicit take for the same least squares; None for all if it is not installed.

    Seconds are those of an iteration, and those to the lowest objective that both reached. `implicit_ratings` says how
    many ratings, of the first users, both were given. None, too, for more than `MOST_RACING_FACTORS`.
    """
    found = None if n_factors > MOST_RACING_FACTORS else _race(ratings, n_factors, n_threads)
    if found is None:
        return dict.fromkeys(_RACE_FIGURES)
    n_ratings, both = found
    meeting = both.meeting()
    figures = (
        n_ratings,
        len(both.implicit),
        iteration_seconds(both.dpmf),
        iteration_seconds(both.implicit),
        meeting.dpmf_seconds,
        meeting.implicit_seconds,
        meeting.implicit_seconds / max(meeting.dpmf_seconds, 1e-9),
    )
    return dict(zip(_RACE_FIGURES, figures, strict=True))


def _race(ratings: Ratings, n_factors: int, n_threads: int) -> tuple[int, Race] | None:
    n_users = users_to_race(ratings, n_factors)
    end = int(ratings.indptr[n_users])
    users = np.repeat(np.arange(n_users), np.diff(ratings.indptr[: n_users + 1]))
    # A weight is a rating, or how far it is above the lowest where that is below zero.
    weights = ratings.values[:end] - np.float32(min(ratings.scale.lo, 0.0))
    settings = json.dumps({"n_factors": n_factors, "n_threads": n_threads, "seconds": _MOST_SECONDS})
    with scratch_folder("bench") as folder:
        path = folder / "ratings.npz"
        np.savez(path, users=users, items=ratings.items[:end], values=weights)
        # implicit asks for one thread of BLAS, since it has threads of its own.
        points = ask("implicit", ["-c", _RACE_PROGRAM, str(path), settings], {"OPENBLAS_NUM_THREADS": "1"})
    if points is None:
        return None
    ours, theirs = ([Point(*point) for point in one] for one in points)
    return end, Race(ours, theirs)


def users_to_race(ratings: Ratings, n_factors: int) -> int:
    """Return how many of the first users keep an iteration within bounds; one at least."""
    most = int(np.searchsorted(ratings.indptr, _MOST_RATINGS, side="right")) - 1
    n_ratings = ratings.indptr[: most + 1]
    _, first_met = np.unique(ratings.items[: n_ratings[-1]], return_index=True)
    n_rows = np.arange(most + 1) + np.searchsorted(np.sort(first_met), n_ratings)
    products = float(n_factors) ** 2 * n_ratings + float(n_factors) ** 3 / 6 * n_rows
    return max(1, int(np.searchsorted(products, _MOST_PRODUCTS, side="right")) - 1)
