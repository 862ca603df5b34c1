"""Running kernels on threads. Kernels release the GIL, so plain threads use all cores.

>>> squares = [0] * 4
>>> def work(task): squares[task] = task * task
>>> run_tasks(work, 4, n_threads=2)
>>> squares
[0, 1, 4, 9]
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.feeding import Blocks, DiskFeed, MemoryFeed
from dpmf.engine.schedule import Schedule
from dpmf.errors import InvalidArgument

_MOST_THREADS = 1024
_WAKE_SECONDS = 0.1  # how soon the waiting thread notices Ctrl-C


def thread_count(n_threads: int | None) -> int:
    """Return the number of threads to use: as given, or the CPUs this process may use."""
    if n_threads is None:
        return available_cpus()
    if not isinstance(n_threads, int | np.integer) or not 1 <= n_threads <= _MOST_THREADS:
        raise InvalidArgument(
            f"n_threads={n_threads!r}: give a whole number from 1 to {_MOST_THREADS}, or None for all CPUs"
        )
    return int(n_threads)


def available_cpus() -> int:
    """Return how many CPUs the operating system and the container let this process use."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(affinity, _container_limit() or affinity))


def _container_limit(group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the CPU quota of control group version 2, rounded up, or None if there is none."""
    try:
        quota, period = (group / "cpu.max").read_text().split()
        return -(-int(quota) // int(period))
    except (OSError, ValueError):
        return None


def run_tasks(work: Callable[[int], None], n_tasks: int, n_threads: int) -> None:
    """Call work(0), …, work(n_tasks - 1), several at a time; the first error stops the rest and is raised."""
    tasks = iter(range(n_tasks))
    lock = threading.Lock()

    def loop(stopped: threading.Event, worker: int) -> None:
        while not stopped.is_set():
            with lock:
                task = next(tasks, None)
            if task is None:
                return
            work(task)

    _run(loop, min(n_threads, n_tasks))


def run_blocks(
    visit: Callable[[int, int, Any], float],
    blocks: Blocks,
    n_threads: int,
    capacity: int | None = None,
    first_tier: int = 0,
) -> NDArray[np.float64]:
    """Call visit(strip, tier, block) for every block of an epoch, in an order `Schedule` allows.

    Args:
        visit: what to do with a block.
        blocks: where they come from.
        n_threads: how many blocks are visited at a time.
        capacity: how many ratings may be held at once; a reader then fetches blocks ahead of the workers. None if all
            blocks are in memory.
        first_tier: of the epoch, see `dpmf.engine.schedule`.

    Returns:
        What the calls returned, shape (size, size): the same for any number of threads, from memory or from disk.
    """
    size = blocks.size
    n_workers = min(n_threads, size)
    results = np.zeros((size, size))
    schedule = Schedule(size, first_tier, n_workers)
    # Entered by itself: to enter the condition is a call, and Ctrl-C in the middle of it would leave it locked.
    lock = threading.Lock()
    changed = threading.Condition(lock)

    def notify() -> None:
        with lock:
            changed.notify_all()

    def loop(stopped: threading.Event, worker: int) -> None:
        while True:
            with lock:
                while True:
                    place = schedule.take(feed.is_ready, worker)
                    if place is not None or schedule.finished or stopped.is_set():
                        break
                    changed.wait(_WAKE_SECONDS)
                if place is None or stopped.is_set():
                    return
            results[place] = visit(*place, feed.get(*place))
            feed.release(*place)
            with lock:
                schedule.finish(place[0])
                changed.notify_all()

    feed: MemoryFeed | DiskFeed = (
        MemoryFeed(blocks)
        if capacity is None
        else DiskFeed(blocks, capacity=capacity, notify=notify, first_tier=first_tier)
    )
    with feed:
        _run(loop, n_workers)
    return results


def _run(loop: Callable[[threading.Event, int], None], n_threads: int) -> None:
    """Run loop(stopped, number) on so many threads, this one among them; pass on the first error, or Ctrl-C."""
    stopped = threading.Event()
    errors: list[BaseException] = []
    started: list[threading.Event] = []

    def guarded(number: int, end: threading.Event | None = None) -> None:
        try:
            loop(stopped, number)
        except BaseException as error:
            errors.append(error)
            stopped.set()
        finally:
            if end is not None:
                end.set()

    try:
        for number in range(1, n_threads):
            end = threading.Event()
            threading.Thread(target=guarded, args=(number, end), name=f"dpmf-{number}", daemon=True).start()
            started.append(end)
        guarded(0)
        # Events, because an interrupted Thread.join may take a running thread for an ended one.
        while not all(end.wait(_WAKE_SECONDS) for end in started):
            pass
    except BaseException:
        stopped.set()
        for end in started:
            end.wait()
        raise
    if errors:
        raise errors[0]
