"""Slowdown of training from disk against training in memory, in alternating epochs of one run.

    python benchmarks/streaming.py STORE [--memory 1GB] [--factors 64] [--epochs 9]

Two trainings take turns, one epoch each: one has all ratings in memory, the other streams them from disk. They must end
with the same factors. The first epoch from disk also verifies the checksums of all blocks, and is reported separately.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from dpmf import SGD, Ratings
from dpmf.cli.options import parse_size
from dpmf.engine.store import StoredRatings
from dpmf.engine.threads import available_cpus
from dpmf.model import Model


class Turns:
    """Two trainings that alternate, an epoch each."""

    def __init__(self, method: SGD) -> None:
        self._method = method
        self._turn = [threading.Semaphore(1), threading.Semaphore(0)]
        self._ended = [False, False]

    def train(self, number: int, ratings: Ratings | StoredRatings) -> Model:
        """Train as number 0 or 1, one epoch per turn."""
        self._turn[number].acquire()
        try:
            return self._method.fit(ratings, callbacks=[lambda record: self._pass_on(number)])
        finally:
            self._ended[number] = True
            self._turn[1 - number].release()

    def _pass_on(self, number: int) -> None:
        self._turn[1 - number].release()
        if not self._ended[1 - number]:
            self._turn[number].acquire()


def main() -> None:
    """Train both ways, and print the seconds of every epoch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("store", type=Path)
    parser.add_argument("--memory", type=parse_size, default="1GB")
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=9)
    arguments = parser.parse_args()
    ratings = Ratings.read(str(arguments.store))
    stored = StoredRatings.open(arguments.store, memory=arguments.memory)
    method = SGD(n_factors=arguments.factors, n_epochs=arguments.epochs)
    turns = Turns(method)
    with ThreadPoolExecutor(2) as pool:
        both = pool.submit(turns.train, 0, ratings), pool.submit(turns.train, 1, stored)
        in_memory, on_disk = (one.result() for one in both)
    seconds = [[record.seconds for record in model.history] for model in (in_memory, on_disk)]
    ratios = [one / other for one, other in zip(*seconds, strict=True)]
    same = all(
        np.array_equal(getattr(in_memory.release, name), getattr(on_disk.release, name))
        for name in ("item_factors", "item_biases")
    )
    report = {
        "ratings": len(ratings),
        "factors": arguments.factors,
        "memory": arguments.memory,
        "threads": available_cpus(),
        "seconds_in_memory": seconds[0],
        "seconds_on_disk": seconds[1],
        "speed_ratio": statistics.median(ratios[1:]),
        "first_epoch_ratio": ratios[0],
        "same_factors": same,
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
