"""What this machine can do at most: multiply-adds, and bytes to and from every level of its caches and memory.

Each figure is the best of many short runs, because anything else that runs on the machine makes them slower and
nothing makes them faster. A bound that rests on them holds for what runs at the same time: processors change their
clock, so `Machine.measure` is called again after every measurement that the bound is for.

>>> machine = Machine((), [1])
>>> machine.measure(0.0)
>>> peaks = machine.peaks(1)
>>> peaks.multiply_adds > 0, peaks.places["L1"].read > 0
(True, True)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.bench.caches import Cache
from dpmf.engine.factors import factor_rows
from dpmf.engine.threads import run_workers
from dpmf.kernels.probes import (
    AHEAD,
    CHAINS,
    MULTIPLY_ADDS_PER_ROUND,
    multiply_adds,
    read_lines,
    rewrite_lines,
    write_lines,
)
from dpmf.kernels.rows import FLOATS_PER_LINE

MEMORY = "memory"
_LINE_BYTES = 4 * FLOATS_PER_LINE
_WINDOW = 0.002  # seconds: short, so that some are undisturbed
_BYTES_PER_CALL, _ROUNDS_PER_CALL = 1 << 25, 1 << 14  # enough that calling from Python takes no time
_SMALL = 1 << 14  # bytes: in the first-level cache of any processor
_MOST_BYTES = 1 << 29  # of all threads together
_FAR = 4  # times the caches below: hardly anything is found there

Lines = NDArray[np.float32]


class Bandwidth(NamedTuple):
    """Bytes per second to and from one place.

    Attributes:
        read: only reading.
        written: only writing whole lines.
        rewritten: reading every line and writing it back changed; the bytes of one direction, the other has as many.
    """

    read: float
    written: float
    rewritten: float


class Peaks(NamedTuple):
    """What a number of threads can do together.

    Attributes:
        multiply_adds: per second, in float32.
        places: bandwidth of L1, L2, … and memory.
    """

    multiply_adds: float
    places: dict[str, Bandwidth]


class Machine:
    """Peaks of this machine, each the best of everything measured so far.

    Args:
        caches: see `dpmf.bench.caches`. If there are none, only arithmetic and L1 are measured.
        thread_counts: the numbers of threads to measure.
    """

    def __init__(self, caches: Sequence[Cache], thread_counts: Iterable[int]) -> None:
        self.caches = tuple(caches)
        self.seconds = 0.0  # spent on measuring
        self._turns = 0
        self._best: dict[tuple[int, str, str], float] = {}
        self._sizes = {count: probe_sizes(self.caches, count) for count in sorted(set(thread_counts))}
        largest = [0] * max(self._sizes)
        for count, sizes in self._sizes.items():
            largest[:count] = [max(one, *chain(*sizes.values())) for one in largest[:count]]
        self._lines = [factor_rows(size // _LINE_BYTES, FLOATS_PER_LINE).reshape(-1) for size in largest]
        for lines in self._lines:
            lines[:] = 1.0  # pages that nobody has written to are all the same page

    def measure(self, seconds: float) -> None:
        """Measure everything once, and again until some seconds have passed."""
        began = time.perf_counter()
        while True:
            for count, sizes in self._sizes.items():
                for chains in CHAINS:
                    self._keep((count, "", "multiply_adds"), *_multiplying(chains))
                for place, choice in sizes.items():
                    for size, ahead in product(choice, AHEAD):
                        for name, work in _moving(size, ahead, self._turns).items():
                            self._keep((count, place, name), *work)
            self._turns += 1
            if time.perf_counter() - began >= seconds:
                break
        self.seconds += time.perf_counter() - began

    def peaks(self, n_threads: int) -> Peaks:
        """Return what a number of threads can do together, one of the numbers given."""
        places = {}
        for place in self._sizes[n_threads]:
            rates = {name: self._best[n_threads, place, name] for name in Bandwidth._fields}
            # Rewriting reads and writes as well: where that alone is slower, it was disturbed.
            places[place] = Bandwidth(**{name: max(rate, rates["rewritten"]) for name, rate in rates.items()})
        return Peaks(self._best[n_threads, "", "multiply_adds"], places)

    def _keep(self, key: tuple[int, str, str], work: Callable[[Lines], object], amount: int) -> None:
        rate = amount * _calls_per_second(work, self._lines[: key[0]])
        self._best[key] = max(rate, self._best.get(key, 0.0))


def probe_sizes(caches: Sequence[Cache], n_threads: int) -> dict[str, tuple[int, ...]]:
    """Return how many bytes each thread visits to measure a place: more than fit the caches below it, and not more.

    There are two numbers for a cache, because neither is always the faster one.

    >>> probe_sizes([Cache("L1", 1 << 15, 2), Cache("L2", 1 << 20, 2)], 2)
    {'L1': (16384,), 'L2': (131072, 557056), 'memory': (4194304,)}
    """
    if not caches:
        return {"L1": (_SMALL,)}
    sizes: dict[str, tuple[int, ...]] = {caches[0].name: (min(caches[0].size // 2, _SMALL),)}
    below = 0
    for nearer, cache in pairwise(caches):
        below += nearer.size
        share = cache.size * min(cache.instances, n_threads) // n_threads
        half = (below + share // 2) // _LINE_BYTES * _LINE_BYTES
        sizes[cache.name] = (min(_FAR * below, half), half)
    last = caches[-1]
    together = min(_FAR * last.size * min(last.instances, n_threads), _MOST_BYTES)
    return {**sizes, MEMORY: (together // n_threads // _LINE_BYTES * _LINE_BYTES,)}


def _multiplying(chains: int) -> tuple[Callable[[Lines], object], int]:
    """Return a call of the kernel, and how many multiply-adds it does."""
    amount = chains * FLOATS_PER_LINE * MULTIPLY_ADDS_PER_ROUND * _ROUNDS_PER_CALL
    return lambda lines: multiply_adds(chains, _ROUNDS_PER_CALL, lines[:FLOATS_PER_LINE]), amount


def _moving(size: int, ahead: int, turn: int) -> dict[str, tuple[Callable[[Lines], object], int]]:
    """Return calls of the kernels for `size` bytes, by the names in `Bandwidth`, and how many bytes each moves.

    Every turn has a part of its own: a cache may have no place for some pages beside each other.
    """
    floats, n_rounds = size // 4, max(_BYTES_PER_CALL // size, 1)
    found = np.zeros(FLOATS_PER_LINE, np.float32)

    def part(lines: Lines) -> Lines:
        start = turn * floats % (len(lines) - floats + FLOATS_PER_LINE)
        return lines[start : start + floats]

    calls: dict[str, Callable[[Lines], object]] = {
        "read": lambda lines: read_lines(part(lines), ahead, n_rounds, found),
        "written": lambda lines: write_lines(part(lines), ahead, n_rounds),
        "rewritten": lambda lines: rewrite_lines(part(lines), ahead, n_rounds),
    }
    return {name: (call, size * n_rounds) for name, call in calls.items()}


def _calls_per_second(work: Callable[[Lines], object], parts: Sequence[Lines]) -> float:
    """Return how often all threads together call `work`, each on its own lines, while all of them do."""
    rates, ready = [0.0] * len(parts), [False] * len(parts)

    def loop(stopped: threading.Event, number: int) -> None:
        work(parts[number])  # to compile and to fill the caches
        ready[number] = True
        while not (all(ready) or stopped.is_set()):
            time.sleep(0)
        calls, began, now = 0, time.perf_counter(), 0.0
        while now < began + _WINDOW:
            work(parts[number])
            calls, now = calls + 1, time.perf_counter()
        rates[number] = calls / (now - began)

    run_workers(loop, len(parts))
    return sum(rates)
