"""The schedule under every interleaving that chance finds: no conflict, no deadlock, one order of what depends."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from dpmf.engine.schedule import Schedule

Block = tuple[int, int]


def run_at_random(size: int, workers: int, chance: random.Random, first_tier: int = 0) -> list[Block]:
    """Start and finish blocks in an order that chance decides; return the blocks in the order they started."""
    schedule = Schedule(size, first_tier, workers)
    started: list[Block] = []
    running: list[Block] = []
    while not schedule.finished:
        starts = len(running) < workers and chance.random() < 0.7
        block = schedule.take(worker=chance.randrange(workers)) if starts else None
        if block is not None:
            assert block[0] not in [strip for strip, _ in running]
            assert block[1] not in [tier for _, tier in running]
            started.append(block)
            running.append(block)
        elif running:
            schedule.finish(running.pop(chance.randrange(len(running)))[0])
        else:
            forced = schedule.take()
            assert forced is not None, "nothing runs, nothing may start, and the epoch is not over"
            started.append(forced)
            running.append(forced)
    assert not running
    assert schedule.take() is None
    return started


@given(st.integers(1, 8), st.integers(1, 10), st.randoms(use_true_random=False))
def test_any_interleaving_runs_every_block_once_and_without_conflict(
    size: int, workers: int, chance: random.Random
) -> None:
    started = run_at_random(size, workers, chance)
    assert sorted(started) == [(strip, tier) for strip in range(size) for tier in range(size)]


@given(st.integers(1, 8), st.integers(1, 10), st.randoms(use_true_random=False), st.integers(0, 7))
def test_any_interleaving_keeps_the_order_of_blocks_that_share_a_strip_or_a_tier(
    size: int, workers: int, chance: random.Random, first: int
) -> None:
    started = run_at_random(size, workers, chance, first)
    for one in range(size):
        assert [tier for strip, tier in started if strip == one] == [(one + first + d) % size for d in range(size)]
        assert [strip for strip, tier in started if tier == one] == [(one - first - d) % size for d in range(size)]


def test_as_many_blocks_as_strips_may_run_at_once() -> None:
    schedule = Schedule(5)
    together = [schedule.take() for _ in range(6)]
    assert together == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), None]


def test_a_strip_may_run_ahead_of_a_slow_one() -> None:
    """No barrier: while strip 0 is busy with its first block, strip 1 goes on as far as its neighbours allow."""
    schedule = Schedule(4)
    for _ in range(4):
        schedule.take()
    for strip in (1, 2, 3):
        schedule.finish(strip)
    assert [schedule.take(), schedule.take(), schedule.take()] == [(1, 2), (2, 3), None]


def test_a_worker_prefers_its_own_strips_and_helps_out_when_none_can_go_on() -> None:
    schedule = Schedule(4, n_workers=2)
    assert [schedule.take(worker=1) for _ in range(3)] == [(2, 2), (3, 3), (0, 0)]
    assert schedule.take(worker=0) == (1, 1)
