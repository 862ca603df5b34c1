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

import numpy as np

from dpmf.errors import InvalidArgument

_MOST_THREADS = 1024
WAKE_SECONDS = 0.1  # how soon the waiting thread notices Ctrl-C


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
    """Return the number of CPUs that the operating system and the container allow this process."""
    allowed = allowed_cpus()
    return max(1, min(allowed, _container_limit() or allowed))


def allowed_cpus() -> int:
    """Return the number of CPUs that this process may be on, whatever part of their time a container gives it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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

    run_workers(loop, min(n_threads, n_tasks))


def run_workers(loop: Callable[[threading.Event, int], None], n_threads: int) -> None:
    """Run loop(stopped, number) on several threads, the calling one included.

    The first error sets `stopped` and is raised once all threads have ended; so is Ctrl-C.

    Args:
        loop: the work of a thread; returns early if `stopped` is set.
        n_threads: numbered from 0, which is the calling thread.
    """
    stopped = threading.Event()
    errors: list[BaseException] = []
    started: list[int] = []
    ended: list[int] = []
    ending = threading.Lock()  # released when a thread ends; a plain lock survives Ctrl-C, an event may not

    def work(number: int) -> None:
        try:
            loop(stopped, number)
        except BaseException as error:
            errors.append(error)
            stopped.set()

    def work_and_notify(number: int) -> None:
        work(number)
        ended.append(number)
        with contextlib.suppress(RuntimeError):  # released already
            ending.release()

    def wait_for_others() -> None:
        while len(ended) < len(started):
            ending.acquire(timeout=WAKE_SECONDS)

    try:
        for number in range(1, n_threads):
            threading.Thread(target=work_and_notify, args=(number,), name=f"dpmf-{number}", daemon=True).start()
            started.append(number)
        work(0)
        wait_for_others()
    except BaseException:
        stopped.set()
        wait_for_others()
        raise
    if errors:
        raise errors[0]
