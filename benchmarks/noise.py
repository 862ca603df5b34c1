"""How fast noise is drawn.

    python benchmarks/noise.py [--draws 8000000]

Prints one JSON object: the machine, the versions, Gaussian integers and key-stream bytes per second on one thread,
nanoseconds per number of short draws, and integers per second with every CPU drawing. Each figure is the best of five.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

from dpmf.engine.threads import available_cpus
from dpmf.privacy.noise import Noise

_ROUNDS = 5
_SHORT = 100  # draws in a row
_N_SHARES = 943
_SHAPES = ((1682, 9), (100, 51))


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draws", type=int, default=8_000_000)
    draws: int = parser.parse_args().draws
    started = time.perf_counter()
    source = Noise()
    source.integers(1, "first", 0)
    table_seconds = time.perf_counter() - started
    n_threads = available_cpus()

    def in_threads(turn: int) -> None:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(lambda thread: source.integers(draws, f"thread {thread}", turn), range(n_threads)))

    def short(shape: tuple[int, int], n_shares: int) -> float:
        name = f"{shape}, {n_shares}"

        def draw(turn: int) -> None:
            for place in range(_SHORT):
                source.shares(shape, n_shares, name, turn * _SHORT + place)

        return _best(draw) * 1e9 / (_SHORT * math.prod(shape))

    report = {
        "machine": {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("dpmf", "numpy", "cryptography")},
        "table_seconds": table_seconds,
        "gaussians_per_second": draws / _best(lambda turn: source.integers(draws, "one thread", turn)),
        "nanoseconds_per_number_of_short_draws": {
            f"{shape}, {n_shares} pieces": short(shape, n_shares) for shape in _SHAPES for n_shares in (1, _N_SHARES)
        },
        "coins_per_second": draws / _best(lambda turn: source.coins(draws, 0.01, "coins", turn)),
        "key_stream_bytes_per_second": 8 * draws / _best(lambda turn: source.words(draws, "words", turn)),
        "threads": n_threads,
        "gaussians_per_second_all_threads": n_threads * draws / _best(in_threads),
    }
    print(json.dumps(report, indent=1))


def _best(work: Callable[[int], object]) -> float:
    """Return the shortest time of several turns, in seconds."""
    times = []
    for turn in range(_ROUNDS):
        started = time.perf_counter()
        work(turn)
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    main()
