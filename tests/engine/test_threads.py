"""Threads: all the work once, errors and Ctrl-C passed on, and no thread left behind."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmf.engine import threads
from dpmf.engine.threads import _container_limit, available_cpus, run_tasks, thread_count
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
