"""Threads: all the work once, errors and Ctrl-C passed on, and no thread left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmf.engine import threads
from dpmf.engine.threads import _container_limit, available_cpus, run_tasks, run_workers, thread_count
from dpmf.errors import InvalidArgument

pytestmark = pytest.mark.usefixtures("no_thread_is_left")
SEVERAL = pytest.mark.parametrize("n_threads", [1, 2, 4])


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
        together.wait(timeout=600)

    run_tasks(work, 3, n_threads=3)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[threading.Event]:
    """Return a list that gets the event by which `run_tasks` tells its threads to stop."""
    events: list[threading.Event] = []

    def run(loop: Callable[[threading.Event, int], None], n_threads: int) -> None:
        def noting(event: threading.Event, number: int) -> None:
            events.append(event)
            loop(event, number)

        run_workers(noting, n_threads)

    monkeypatch.setattr(threads, "run_workers", run)
    return events


@SEVERAL
def test_an_error_in_a_task_is_raised_and_stops_the_rest(n_threads: int, stopped: list[threading.Event]) -> None:
    done = []

    def work(task: int) -> None:
        if task == 2:
            raise ZeroDivisionError("task 2")
        assert task < 2 or stopped[0].wait(timeout=600)
        done.append(task)

    with pytest.raises(ZeroDivisionError, match="task 2"):
        run_tasks(work, 1000, n_threads)
    assert len(done) <= 1 + n_threads  # two before, and one in progress on every other thread


@SEVERAL
def test_ctrl_c_stops_tasks(n_threads: int, stopped: list[threading.Event], press_ctrl_c: Callable[[], None]) -> None:
    done = []
    pressed = threading.Lock()

    def work(task: int) -> None:
        if task >= 20:
            if pressed.acquire(blocking=False):
                press_ctrl_c()
            if threading.current_thread() is threading.main_thread():
                time.sleep(600)  # until it is interrupted; not in an event, which that might leave locked
            assert stopped[0].wait(timeout=600)
        done.append(task)

    with pytest.raises(KeyboardInterrupt):
        run_tasks(work, 1000, n_threads)
    assert len(done) < 20 + n_threads  # those before, and one in progress on every other thread
