"""Running kernels on threads. Kernels release the GIL, so plain threads use all cores.

>>> squares = [0] * 4
>>> def work(task): squares[task] = task * task
>>> run_tasks(work, 4, n_threads=2)
>>> squares
[0, 1, 4, 9]
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.feed import Blocks, DiskFeed, MemoryFeed
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
    # Plain locks, because the calling thread works too: Ctrl-C inside a condition or an event would leave it locked.
    lock = threading.Lock()
    bells = [threading.Lock() for _ in range(n_workers)]  # locked: nothing has changed since the worker looked

    def ring() -> None:
        for bell in bells:
            if bell.locked():
                bell.release()

    def notify() -> None:
        with lock:
            ring()

    def loop(stopped: threading.Event, worker: int) -> None:
        while True:
            with lock:
                bells[worker].acquire(blocking=False)
                place = schedule.take(feed.is_ready, worker)
                over = schedule.finished or stopped.is_set()
            if over:
                return
            if place is None:
                bells[worker].acquire(timeout=_WAKE_SECONDS)
                continue
            results[place] = visit(*place, feed.get(*place))
            feed.release(*place)
            with lock:
                schedule.finish(place[0])
                ring()

    feed: MemoryFeed | DiskFeed = (
        MemoryFeed(blocks)
        if capacity is None
        else DiskFeed(blocks, capacity=capacity, notify=notify, first_tier=first_tier, n_workers=n_workers)
    )
    with feed:
        _run(loop, n_workers)
    return results


def _run(loop: Callable[[threading.Event, int], None], n_threads: int) -> None:
    """Run loop(stopped, number) on so many threads, this one among them; pass on the first error, or Ctrl-C."""
    stopped = threading.Event()
    errors: list[BaseException] = []
    started: list[int] = []
    ended: list[int] = []
    bell = threading.Lock()  # rung when a thread ends; see `run_blocks` for why it is a plain lock

    def work(number: int) -> None:
        try:
            loop(stopped, number)
        except BaseException as error:
            errors.append(error)
            stopped.set()

    def work_and_ring(number: int) -> None:
        work(number)
        ended.append(number)
        with contextlib.suppress(RuntimeError):  # it rings already
            bell.release()

    def wait_for_others() -> None:
        while len(ended) < len(started):
            bell.acquire(timeout=_WAKE_SECONDS)

    try:
        for number in range(1, n_threads):
            threading.Thread(target=work_and_ring, args=(number,), name=f"dpmf-{number}", daemon=True).start()
            started.append(number)
        work(0)
        wait_for_others()
    except BaseException:
        stopped.set()
        wait_for_others()
        raise
    if errors:
        raise errors[0]
