"""How fast the engine is, against the machine's own limit and against peers on the same data in the same run.

The limit ("roofline") is an upper bound that no run exceeds, see `dpmf.bench.limit`; it is measured beside the epochs
that it is the limit of.

>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> engine_speed(ratings, BlockGrid.build(ratings), n_factors=4, n_threads=1, epochs=1) > 0
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from dpmf.bench.caches import caches
from dpmf.bench.limit import demand_of, expected_seconds, least_seconds, limited_by
from dpmf.bench.peers import implicit_figures, libmf_speed
from dpmf.bench.probes import Machine, Peaks
from dpmf.bench.turns import in_turns, median_ratio
from dpmf.bench.visits import Visits
from dpmf.engine.grid import BlockGrid
from dpmf.engine.local import ThreadExecutor
from dpmf.engine.threads import allowed_cpus
from dpmf.errors import InvalidArgument
from dpmf.methods.sgd import MOST_FACTORS
from dpmf.methods.sgd.descent import Descent
from dpmf.methods.units import unit_of
from dpmf.ratings import Ratings
from dpmf.ratings.ids import Ids

_LEAST_SECONDS = 4.0  # for each kind of epoch: short ones differ the most
_PROBE_SECONDS = 10.0  # for the peaks of the machine, half of them before the first epoch


class _Kind(NamedTuple):
    """A kind of epoch."""

    n_threads: int
    packed: bool


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
    for n_factors in factors:
        if not 1 <= n_factors <= MOST_FACTORS:
            raise InvalidArgument(f"factors={n_factors}: give from 1 to {MOST_FACTORS}")
    grid = BlockGrid.build(ratings, n_threads=n_threads)
    visits, machine = Visits(grid, n_threads), Machine(caches(), [1, _at_once(n_threads)])
    machine.measure(_PROBE_SECONDS / 2)
    for n_factors in factors:
        row: dict[str, Any] = {"factors": n_factors, "threads": n_threads}
        row |= _engine_figures(ratings, grid, n_factors, n_threads, epochs)
        if machine.seconds < _PROBE_SECONDS:
            machine.measure(_PROBE_SECONDS / 2 / len(factors))
        row |= _limits(row, visits, machine)
        if peers:
            row["libmf_updates_per_second"] = libmf_speed(ratings, n_factors, n_threads, libmf)
            row |= implicit_figures(ratings, n_factors, n_threads)
        yield row


def _engine_figures(ratings: Ratings, grid: BlockGrid, n_factors: int, n_threads: int, epochs: int) -> dict[str, float]:
    """Return the best of several epochs of every kind, which take turns, see `dpmf.bench.turns`."""
    full, packed = (_epochs(ratings, grid, n_factors, packed=packed) for packed in (False, True))
    turns = in_turns(
        {
            "updates_per_second": lambda: full(n_threads),
            "bfloat16_updates_per_second": lambda: packed(n_threads),
            "one_thread_updates_per_second": lambda: full(1),
        },
        epochs,
        _LEAST_SECONDS,
    )
    best = {name: max(turn[name] for turn in turns) for name in turns[0]}
    return {**best, "over_one_thread": median_ratio(turns, "updates_per_second", "one_thread_updates_per_second")}


def _limits(row: dict[str, Any], visits: Visits, machine: Machine) -> dict[str, Any]:
    """Return the limits of every kind of epoch, and what the machine can do."""
    n_factors, n_threads, count = row["factors"], row["threads"], len(visits.grid)
    found: dict[str, Any] = {}
    for name, kind in _kinds(n_threads).items():
        demand = demand_of(visits, n_factors, packed=kind.packed, caches=machine.caches, n_threads=kind.n_threads)
        peaks = machine.peaks(_at_once(kind.n_threads))
        seconds = least_seconds(demand, peaks)
        limit = count / max(seconds.values())
        found[f"{name}roofline_updates_per_second"] = limit
        found[f"{name}roofline_ratio"] = row[f"{name}updates_per_second"] / limit
        found[f"{name}limited_by"] = limited_by(seconds)
        found[f"{name}seconds_per_update"] = {
            place: one / count for place, one in expected_seconds(demand, peaks).items()
        }
    one, several = machine.peaks(1), machine.peaks(_at_once(n_threads))
    return {
        **found,
        "roofline_over_one_thread": found["roofline_updates_per_second"]
        / found["one_thread_roofline_updates_per_second"],
        "copy_over_one_thread": {
            place: peak.rewritten / one.places[place].rewritten for place, peak in several.places.items()
        },
        "machine": {
            "caches": {cache.name: {"bytes": cache.size, "instances": cache.instances} for cache in machine.caches},
            "one_thread": _described(one),
            "threads": _described(several),
            "threads_at_once": _at_once(n_threads),
        },
    }


def _at_once(n_threads: int) -> int:
    """Return how many threads run at the same time: peaks of any that wait in turn would not add up."""
    return min(n_threads, allowed_cpus())


def _kinds(n_threads: int) -> dict[str, _Kind]:
    """Return the kinds of epochs by what the names of their figures begin with."""
    return {
        "": _Kind(n_threads, packed=False),
        "bfloat16_": _Kind(n_threads, packed=True),
        "one_thread_": _Kind(1, packed=False),
    }


def _described(peaks: Peaks) -> dict[str, Any]:
    """Return peaks for a report."""
    places = {place: dict(peak._asdict()) for place, peak in peaks.places.items()}
    return {"multiply_adds_per_second": peaks.multiply_adds, "bytes_per_second": places}


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
