"""How fast the engine is, against the machine's own limit and against peers on the same data in the same run.

The limit ("roofline") is the training kernel itself, in float32, on rows that never leave the first-level cache: one
user and four items per thread. With few factors it is no limit: every update of the one user waits for the last one,
while real blocks have other users in the meantime. What several threads make of it that share nothing at all shows how
much more than one processor the machine gives: a virtual machine does not always give two whole ones.

>>> roofline(16, n_threads=1, seconds=0.01) > 0
True
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from dpmf.bench.peers import implicit_figures, libmf_speed
from dpmf.bench.turns import in_turns, median_ratio
from dpmf.engine.factors import factor_rows
from dpmf.engine.grid import BlockGrid
from dpmf.engine.local import ThreadExecutor
from dpmf.engine.threads import run_tasks
from dpmf.errors import InvalidArgument
from dpmf.kernels.sgd import Step, sgd_block
from dpmf.methods.sgd import MOST_FACTORS
from dpmf.methods.sgd.descent import Descent
from dpmf.methods.units import unit_of
from dpmf.ratings import Ratings
from dpmf.ratings.ids import Ids

_LEAST_ROOFLINE = 0.02  # seconds
_LEAST_SECONDS = 4.0  # for each kind of epoch: short ones differ the most


def bench(
    ratings: Ratings,
    factors: list[int],
    *,
    n_threads: int,
    epochs: int = 3,
    libmf: Path | None = None,
    peers: bool = True,
) -> Iterator[dict[str, Any]]:
    """Yield one row of figures per number of factors: updates per second, and `implicit_figures` if there are peers."""
    grid = BlockGrid.build(ratings, n_threads=n_threads)
    for n_factors in factors:
        if not 1 <= n_factors <= MOST_FACTORS:
            raise InvalidArgument(f"factors={n_factors}: give from 1 to {MOST_FACTORS}")
        row: dict[str, Any] = {"factors": n_factors, "threads": n_threads}
        row |= _engine_figures(ratings, grid, n_factors, n_threads, epochs)
        if peers:
            row["libmf_updates_per_second"] = libmf_speed(ratings, n_factors, n_threads, libmf)
            row |= implicit_figures(ratings, n_factors, n_threads)
        yield row


def _engine_figures(ratings: Ratings, grid: BlockGrid, n_factors: int, n_threads: int, epochs: int) -> dict[str, float]:
    """Return the best of several epochs of every kind, and how they compare.

    They take turns, see `dpmf.bench.turns`, and the limit is measured for as long as the epoch beside it took.
    """
    full, packed = (_epochs(ratings, grid, n_factors, packed=packed) for packed in (False, True))
    seconds = _LEAST_ROOFLINE

    def epoch(n_threads: int) -> float:
        nonlocal seconds
        speed = full(n_threads)
        seconds = max(len(grid) / speed, _LEAST_ROOFLINE)
        return speed

    turns = in_turns(
        {
            "updates_per_second": lambda: epoch(n_threads),
            "roofline_updates_per_second": lambda: roofline(n_factors, n_threads=n_threads, seconds=seconds),
            "bfloat16_updates_per_second": lambda: packed(n_threads),
            "one_thread_updates_per_second": lambda: epoch(1),
            "one_thread_roofline_updates_per_second": lambda: roofline(n_factors, n_threads=1, seconds=seconds),
        },
        epochs,
        _LEAST_SECONDS,
    )
    best = {name: max(turn[name] for turn in turns) for name in turns[0]}

    def ratio(one: str, other: str) -> float:
        return median_ratio(turns, f"{one}updates_per_second", f"{other}updates_per_second")

    return {
        **best,
        "roofline_ratio": ratio("", "roofline_"),
        "bfloat16_roofline_ratio": ratio("bfloat16_", "roofline_"),
        "over_one_thread": ratio("", "one_thread_"),
        "roofline_over_one_thread": ratio("roofline_", "one_thread_roofline_"),
    }


def engine_speed(ratings: Ratings, grid: BlockGrid, n_factors: int, n_threads: int, epochs: int) -> float:
    """Return the updates per second of the best epoch, over the number asked for, and for a second at least."""
    epoch = _epochs(ratings, grid, n_factors, packed=False)
    return max(turn[""] for turn in in_turns({"": lambda: epoch(n_threads)}, epochs))


def _epochs(ratings: Ratings, grid: BlockGrid, n_factors: int, *, packed: bool) -> Callable[[int], float]:
    """Return a function that runs an epoch on a number of threads and returns its updates per second."""
    unit = unit_of(ratings.scale)
    state = Descent.start(
        grid,
        ratings.user_ids.keys,
        ratings.catalogue.ids.keys,
        n_factors=n_factors,
        sd=(0.05 * unit) ** 0.5 / n_factors**0.25,
        unit=unit,
        seed=0,
        packed=packed,
    )
    numbers = count()
    return lambda n_threads: len(grid) / state.run_epoch(next(numbers), 0.005, 0.02, ThreadExecutor(n_threads)).seconds


def roofline(n_factors: int, *, n_threads: int, seconds: float = 0.3) -> float:
    """Return the updates per second of all threads together on rows in the first-level cache."""
    n = 1 << 14
    speeds = np.zeros(n_threads)
    users, items, codes = np.zeros(n, np.uint16), np.arange(n, dtype=np.uint16) % 4, np.zeros(n, np.uint8)
    # No penalty: it would shrink the factors to denormal numbers, which the processor handles slowly.
    table, step = np.array([3.6], np.float32), Step.of(3.5, 0.005, 0.0, 1.0)

    def work(thread: int) -> None:
        U, V = factor_rows(1, n_factors), factor_rows(4, n_factors)
        U[:], V[:] = 0.1, 0.1
        b, c = np.zeros(1, np.float32), np.zeros(4, np.float32)
        rounds, began = -1, 0.0
        while rounds < 1 or time.perf_counter() - began < seconds:
            sgd_block(users, items, codes, table, U, V, b, c, step, np.uint64(1))
            rounds += 1
            began = began or time.perf_counter()  # the first round warms up and does not count
        speeds[thread] = rounds * n / (time.perf_counter() - began)

    run_tasks(work, n_threads, n_threads)
    return float(speeds.sum())


def first_users(ratings: Ratings, most: int | None) -> Ratings:
    """Return the ratings of the first users only, `most` of them; all ratings for None."""
    if most is None or most >= ratings.n_users:
        return ratings
    end = ratings.indptr[most]
    return replace(
        ratings,
        indptr=ratings.indptr[: most + 1],
        items=ratings.items[:end],
        values=ratings.values[:end],
        timestamps=None if ratings.timestamps is None else ratings.timestamps[:end],
        user_ids=Ids(ratings.user_ids.array[:most]),
    )
