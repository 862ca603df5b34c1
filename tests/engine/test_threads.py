"""Threads: all the work once, errors and Ctrl-C passed on, and no thread left behind."""

from __future__ import annotations

import _thread
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dpmf.engine import threads
from dpmf.engine.threads import _container_limit, available_cpus, run_blocks, run_tasks, thread_count
from dpmf.errors import InvalidArgument

SEVERAL = pytest.mark.parametrize("n_threads", [1, 2, 4])


def our_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("dpmf-")]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    deadline = time.monotonic() + 1
    while our_threads() and time.monotonic() < deadline:  # after Ctrl-C a thread may still be in its last task
        time.sleep(0.01)
    assert not our_threads()


@pytest.fixture
def _ctrl_c_raises() -> Iterator[None]:
    """Make Ctrl-C raise KeyboardInterrupt even where the tests were started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n_threads", [0, -3])
def test_a_thread_count_below_one_is_refused(n_threads: int) -> None:
    with pytest.raises(InvalidArgument, match=f"n_threads={n_threads}"):
        thread_count(n_threads)


def test_a_thread_count_is_obeyed_and_defaults_to_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    assert thread_count(1000) == 1000
    monkeypatch.setattr(threads, "available_cpus", lambda: 3)
    assert thread_count(None) == 3


@pytest.mark.parametrize(
    ("text", "limit"),
    [("150000 100000\n", 2), ("100000 100000\n", 1), ("50000 100000\n", 1), ("max 100000\n", None), ("nonsense", None)],
)
def test_the_quota_of_a_container_is_read(tmp_path: Path, text: str, limit: int | None) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert _container_limit(tmp_path) == limit


def test_no_control_group_is_no_limit(tmp_path: Path) -> None:
    assert _container_limit(tmp_path) is None


@pytest.mark.parametrize(("limit", "cpus"), [(None, 4), (2, 2), (16, 4)])
def test_the_smaller_of_affinity_and_quota_counts(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, cpus: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(threads, "_container_limit", lambda: limit)
    assert available_cpus() == cpus


@SEVERAL
@pytest.mark.parametrize("n_tasks", [0, 1, 3, 100])
def test_every_task_runs_once(n_tasks: int, n_threads: int) -> None:
    times = [0] * n_tasks

    def work(task: int) -> None:
        times[task] += 1

    run_tasks(work, n_tasks, n_threads)
    assert times == [1] * n_tasks


def test_tasks_run_at_the_same_time() -> None:
    together = threading.Barrier(3)

    def work(task: int) -> None:
        together.wait(timeout=10)

    run_tasks(work, 3, n_threads=3)


@SEVERAL
def test_an_error_in_a_task_is_raised_and_stops_the_rest(n_threads: int) -> None:
    done = []

    def work(task: int) -> None:
        if task == 2:
            raise ZeroDivisionError("task 2")
        time.sleep(0.001)
        done.append(task)

    with pytest.raises(ZeroDivisionError, match="task 2"):
        run_tasks(work, 1000, n_threads)
    assert len(done) < 500


@SEVERAL
@pytest.mark.usefixtures("_ctrl_c_raises")
def test_ctrl_c_stops_tasks(n_threads: int) -> None:
    done = []

    def work(task: int) -> None:
        if task == 20:
            _thread.interrupt_main()
        time.sleep(0.005)
        done.append(task)

    with pytest.raises(KeyboardInterrupt):
        run_tasks(work, 1000, n_threads)
    assert len(done) < 500


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

    def done_with(self, block: tuple[int, int]) -> None:
        pass


@pytest.mark.parametrize("capacity", [None, 1, 5, 100])
@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_blocks_return_the_same_for_any_number_of_threads(n_threads: int, capacity: int | None) -> None:
    """Each block adds to what its strip and its tier had before, so a wrong order would show in the sums."""
    strips, tiers = np.arange(6.0), np.arange(6.0)

    def visit(strip: int, tier: int, block: tuple[int, int]) -> float:
        assert block == (strip, tier)
        time.sleep(0.0005 * ((strip * 7 + tier * 3) % 4))
        strips[strip] = tiers[tier] = 0.7 * strips[strip] + 0.6 * tiers[tier] + 1
        return float(strips[strip])

    results = run_blocks(visit, Numbered(6), n_threads, capacity)
    expected = np.zeros((6, 6))
    a, b = np.arange(6.0), np.arange(6.0)
    for step in range(6):
        for strip in range(6):
            tier = (strip + step) % 6
            a[strip] = b[tier] = 0.7 * a[strip] + 0.6 * b[tier] + 1
            expected[strip, tier] = a[strip]
    np.testing.assert_array_equal(results, expected)


@SEVERAL
def test_an_error_in_a_block_is_raised(n_threads: int) -> None:
    def visit(strip: int, tier: int, block: object) -> float:
        if (strip, tier) == (2, 3):
            raise ZeroDivisionError("block 2, 3")
        return 0.0

    with pytest.raises(ZeroDivisionError, match="block 2, 3"):
        run_blocks(visit, Numbered(5), n_threads)


@SEVERAL
@pytest.mark.usefixtures("_ctrl_c_raises")
def test_ctrl_c_stops_blocks(n_threads: int) -> None:
    def visit(strip: int, tier: int, block: object) -> float:
        if (strip, tier) == (1, 5):
            _thread.interrupt_main()
        time.sleep(0.005)
        return 0.0

    with pytest.raises(KeyboardInterrupt):
        run_blocks(visit, Numbered(20), n_threads)


@SEVERAL
def test_an_error_while_reading_ahead_is_raised(n_threads: int) -> None:
    class Damaged(Numbered):
        def block(self, strip: int, tier: int) -> tuple[int, int]:
            if (strip, tier) == (1, 3):
                raise OSError("the disk is gone")
            return super().block(strip, tier)

    with pytest.raises(OSError, match="the disk is gone"):
        run_blocks(lambda strip, tier, block: 0.0, Damaged(4), n_threads, capacity=2)


def test_no_more_is_read_ahead_than_may_be_held() -> None:
    blocks = Numbered(4)
    most = 0

    def visit(strip: int, tier: int, block: object) -> float:
        nonlocal most
        time.sleep(0.002)
        most = max(most, blocks.read - done.count(True))
        done.append(True)
        return 0.0

    done: list[bool] = []
    run_blocks(visit, blocks, 1, capacity=3)
    assert blocks.read == 16
    assert 1 <= most <= 4  # three held, and the one just finished


INTERRUPTS = """
import random, signal, sys
from dpmf.engine.threads import run_blocks

class Blocks:
    size = 8
    def count(self, strip, tier): return 1
    def block(self, strip, tier): return strip, tier
    def done_with(self, block): pass

def interrupt(number, frame):
    while frame is not None and frame.f_code.co_name != "_run":
        frame = frame.f_back
    if frame is not None:
        raise KeyboardInterrupt
    signal.setitimer(signal.ITIMER_REAL, 1e-4)  # not inside yet, or no longer

signal.signal(signal.SIGALRM, interrupt)
for trial in range(200):
    signal.setitimer(signal.ITIMER_REAL, random.Random(trial).uniform(1e-4, 3e-3))
    try:
        for _ in range(5):  # an interrupt in a finalizer is lost
            run_blocks(lambda *_: 0.0, Blocks(), int(sys.argv[1]), int(sys.argv[2]) or None)
    except (KeyboardInterrupt, RuntimeError):  # Thread.start may make the latter of the former
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
"""


@pytest.mark.parametrize(("n_threads", "capacity"), [(1, 5), (2, 5), (2, 0)])
def test_ctrl_c_at_any_moment_does_not_hang(n_threads: int, capacity: int) -> None:
    subprocess.run(
        [sys.executable, "-c", INTERRUPTS, str(n_threads), str(capacity)], check=True, timeout=120, capture_output=True
    )
