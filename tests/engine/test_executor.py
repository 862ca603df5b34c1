"""Executors: every block once, in an order the schedule allows, from data alone; errors and Ctrl-C passed on."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.engine.executor import Blocks, Constants, Epoch, Executor, Strip, Tier
from dpmf.engine.grid import BlockGrid
from dpmf.engine.local import StreamingExecutor, ThreadExecutor
from dpmf.engine.schedule import Place, tier_at
from dpmf.methods.sgd.descent import Descent
from dpmf.methods.sgld.chain import Chain
from dpmf.methods.sgld.sampler import Density
from dpmf.ratings import Ratings
from dpmf.ratings.synthetic import make

pytestmark = pytest.mark.usefixtures("no_thread_is_left")
SEVERAL = pytest.mark.parametrize("n_threads", [1, 2, 4])


class Numbered:
    """Blocks of one rating each that know their own place, and how many were asked for."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.read = 0

    def count(self, strip: int, tier: int) -> int:
        return 1

    def block(self, strip: int, tier: int) -> tuple[int, int]:
        self.read += 1
        return strip, tier

    def release(self, block: tuple[int, int]) -> None:
        pass


def stateless(visit: Callable[[Place], float], size: int) -> Epoch[int, int, None]:
    """Return an epoch whose visits look at their place only."""
    return Epoch(lambda block, strip, tier, constants, place: visit(place), range(size), range(size), None)


def mix_states(
    block: tuple[int, int], strip: NDArray[np.float64], tier: NDArray[np.float64], weights: NDArray[Any], place: Place
) -> float:
    """Add to what strip and tier had before, so that a wrong order shows."""
    assert block == place
    time.sleep(0.0005 * ((place.strip * 7 + place.tier * 3) % 4))
    strip[:] = tier[:] = weights[0] * strip + weights[1] * tier + 1
    return float(strip[0])


class Elsewhere:
    """Visits blocks on copies of everything, which travel as bytes, as a worker of another process would."""

    def run(self, epoch: Epoch[Strip, Tier, Constants], blocks: Blocks) -> NDArray[np.float64]:
        """Visit every block once."""
        size = blocks.size
        results = np.zeros((size, size))
        for step, strip in product(range(size), repeat=2):
            place = Place(strip, tier_at(strip, step, epoch.first_tier, size))
            state = epoch.strips[strip], epoch.tiers[place.tier]
            sent = pickle.dumps((epoch.visit, blocks.block(*place), *state, epoch.constants, place))
            visit, *arguments = pickle.loads(sent)
            results[place] = visit(*arguments)
            for mine, theirs in zip(state, arguments[1:3], strict=True):
                for array, changed in zip(mine, theirs, strict=True):  # type: ignore[call-overload]
                    if isinstance(array, np.ndarray):
                        array[...] = changed
        return results


EXECUTORS: list[Executor] = [
    *(ThreadExecutor(n_threads) for n_threads in (1, 2, 3, 8)),
    *(StreamingExecutor(n_threads, capacity) for n_threads in (1, 2, 3, 8) for capacity in (1, 5, 100)),
]


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
@pytest.mark.parametrize("first_tier", [0, 4])
def test_results_and_states_are_the_same_for_any_executor(executor: Executor, first_tier: int) -> None:
    strips, tiers = ([np.array([place], float) for place in range(6)] for _ in range(2))
    done: list[int] = []
    epoch = Epoch(mix_states, strips, tiers, np.array([0.7, 0.6]), first_tier, done.append)
    results = executor.run(epoch, Numbered(6))
    expected = np.zeros((6, 6))
    a, b = np.arange(6.0), np.arange(6.0)
    for step, strip in product(range(6), repeat=2):
        tier = (strip + first_tier + step) % 6
        a[strip] = b[tier] = 0.7 * a[strip] + 0.6 * b[tier] + 1
        expected[strip, tier] = a[strip]
    np.testing.assert_array_equal(results, expected)
    np.testing.assert_array_equal(np.concatenate(strips), a)
    np.testing.assert_array_equal(np.concatenate(tiers), b)
    assert sorted(done) == sorted([*range(6)] * 6)


def started(ratings: Ratings, *, packed: bool) -> Descent:
    keys = ratings.user_ids.keys, ratings.catalogue.ids.keys
    grid = BlockGrid.build(ratings, size=3)
    return Descent.start(grid, *keys, n_factors=4, sd=0.1, unit=1.0, seed=0, packed=packed)


@pytest.mark.parametrize("packed", [False, True])
def test_epochs_of_sgd_are_data_that_can_be_sent_elsewhere(packed: bool) -> None:
    ratings = make(60, 40)
    here, there = started(ratings, packed=packed), started(ratings, packed=packed)
    for epoch in (1, 2):
        expected = here.run_epoch(epoch, 0.02, 0.05, ThreadExecutor(2))
        assert there.run_epoch(epoch, 0.02, 0.05, Elsewhere()).train_rmse == expected.train_rmse
    for name, array in here.parameters().items():
        np.testing.assert_array_equal(there.parameters()[name], array)


@pytest.mark.parametrize("table_size", [0, 4096])
def test_epochs_of_sgld_are_data_that_can_be_sent_elsewhere(table_size: int) -> None:
    ratings = make(60, 40)
    counts = np.diff(ratings.indptr), np.bincount(ratings.items, minlength=40)
    density = Density(centre=3.0, scale=1.0, bias_prior=1.0, low=-9.0, high=9.0, temperature=1.0)
    here, there = (
        Chain.start(
            started(ratings, packed=False), *counts, np.ones(60), density,
            prior=2.0, table_size=table_size, noise_seed=1,
        )
        for _ in range(2)
    )  # fmt: skip
    for epoch in (1, 2):
        expected = here.run_epoch(epoch, 0.02, ThreadExecutor(2))
        assert there.run_epoch(epoch, 0.02, Elsewhere()).train_rmse == expected.train_rmse
    for name, array in here.state.parameters().items():
        np.testing.assert_array_equal(there.state.parameters()[name], array)


@SEVERAL
def test_an_error_in_a_block_is_raised(n_threads: int) -> None:
    def visit(place: Place) -> float:
        if place == (2, 3):
            raise ZeroDivisionError("block 2, 3")
        return 0.0

    with pytest.raises(ZeroDivisionError, match="block 2, 3"):
        ThreadExecutor(n_threads).run(stateless(visit, 5), Numbered(5))


@SEVERAL
def test_ctrl_c_stops_blocks(n_threads: int, press_ctrl_c: Callable[[], None]) -> None:
    def visit(place: Place) -> float:
        if place == (1, 5):
            press_ctrl_c()
        return 0.0

    with pytest.raises(KeyboardInterrupt):
        ThreadExecutor(n_threads).run(stateless(visit, 20), Numbered(20))


@SEVERAL
def test_an_error_while_reading_ahead_is_raised(n_threads: int) -> None:
    class Damaged(Numbered):
        def block(self, strip: int, tier: int) -> tuple[int, int]:
            if (strip, tier) == (1, 3):
                raise OSError("the disk is gone")
            return super().block(strip, tier)

    with pytest.raises(OSError, match="the disk is gone"):
        StreamingExecutor(n_threads, capacity=2).run(stateless(lambda place: 0.0, 4), Damaged(4))


def test_as_much_is_read_ahead_as_may_be_held_and_no_more() -> None:
    class Counted(Numbered):
        changed = threading.Condition()
        released = most = 0

        def block(self, strip: int, tier: int) -> tuple[int, int]:
            with self.changed:
                found = super().block(strip, tier)
                self.most = max(self.most, self.read - self.released)
                self.changed.notify_all()
                return found

        def release(self, block: tuple[int, int]) -> None:
            self.released += 1

    def visit(place: Place) -> float:
        with blocks.changed:
            assert blocks.changed.wait_for(lambda: blocks.read == min(blocks.released + 3, 16), timeout=600)
        return 0.0

    blocks = Counted(4)
    StreamingExecutor(1, capacity=3).run(stateless(visit, 4), blocks)
    assert (blocks.read, blocks.most) == (16, 3)


INTERRUPTS = """
import random, signal, sys
from dpmf.engine.executor import Epoch
from dpmf.engine.local import StreamingExecutor, ThreadExecutor

class Blocks:
    size = 8
    def count(self, strip, tier): return 1
    def block(self, strip, tier): return strip, tier
    def release(self, block): pass

def interrupt(number, frame):
    while frame is not None and frame.f_code.co_name != "run_workers":
        frame = frame.f_back
    if frame is not None:
        raise KeyboardInterrupt
    signal.setitimer(signal.ITIMER_REAL, 1e-4)  # not inside yet, or no longer

signal.signal(signal.SIGALRM, interrupt)
n_threads, capacity = map(int, sys.argv[1:])
executor = StreamingExecutor(n_threads, capacity) if capacity else ThreadExecutor(n_threads)
epoch = Epoch(lambda *_: 0.0, range(8), range(8), None)
for trial in range(200):
    signal.setitimer(signal.ITIMER_REAL, random.Random(trial).uniform(1e-4, 3e-3))
    try:
        for _ in range(5):  # an interrupt in a finalizer is lost
            executor.run(epoch, Blocks())
    except (KeyboardInterrupt, RuntimeError):  # Thread.start may make the latter of the former
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
"""


@pytest.mark.parametrize(("n_threads", "capacity"), [(1, 5), (2, 5), (2, 0)])
def test_ctrl_c_at_any_moment_does_not_hang(n_threads: int, capacity: int) -> None:
    subprocess.run(
        [sys.executable, "-c", INTERRUPTS, str(n_threads), str(capacity)], check=True, timeout=600, capture_output=True
    )
