"""Fixtures of several test files: a hand-written release, small data on disk, the command line, threads and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numba  # noqa: F401  (loaded, so that kernels are tested, and not their short forms)
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from dpmf.cli import main
from dpmf.engine.store import StoredRatings
from dpmf.engine.threads import available_cpus
from dpmf.methods import SGD
from dpmf.model import Ranking, Release, Ridge
from dpmf.model.ranking_tensors import rounded
from dpmf.privacy import Guarantee, accounting, guarantee, ledger
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

# The same examples in every run, and no limit on time: the first call of a kernel may compile it.
settings.register_profile("dpmf", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dpmf")

Command = Callable[..., subprocess.CompletedProcess[str]]

HANG = 600.0  # seconds after which something that should happen never will


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers of `--numprocesses auto`: the CPUs that this process, or its container, may use."""
    return available_cpus()


@pytest.fixture(autouse=True, scope="session")
def _account_once() -> Iterator[None]:
    """Let the accountant remember what it found: of sampled steps, the same question takes long every time."""
    remembered = cache(accounting.epsilon_of)

    def epsilon_of(events: Any, delta: float, **how: Any) -> float:
        return remembered(tuple(events), delta, **how)

    with pytest.MonkeyPatch.context() as patch:
        for module in (guarantee, ledger):
            patch.setattr(module, "epsilon_of", epsilon_of)
        yield


@pytest.fixture
def release() -> Release:
    """Return a release of six items and two factors; two items share the title "Up"."""
    return Release(
        items=Items.of(
            [10, 20, 30, 40, 50, 60],
            ["Heat (1995)", "Alien (1979)", "Le Fabuleux Destin d'Amélie 🎬", "Up", "Up", "七人の侍"],
            ["Crime", "Horror|Space", "Romance", "", "", "History"],
        ),
        scale=Scale(1, 5),
        mean=3.2,
        item_factors=np.array([[1, 0.2], [0.9, 0.1], [-1, 0.3], [0.1, 1], [0.2, -1], [-0.8, -0.4]], np.float32),
        item_biases=np.array([0.3, -0.2, 0.1, 0, 0.05, 0.4], np.float32),
        ridge=Ridge(bias=0.5, factors=0.25),
        configuration={"method": "sgd", "n_factors": 2},
        guarantee=Guarantee.none(),
    )


def random_ranking(n_items: int, *, n_factors: int = 3, n_pairs: int = 2, seed: int = 0, **changes: Any) -> Ranking:
    """Return a ranking of random numbers, as it would be read from a file; its head is two thirds of the items."""
    rng = np.random.default_rng(seed)
    n_head = -(-2 * n_items // 3)
    columns = [np.sort(rng.choice(n_head, min(n_pairs, n_head), replace=False)) for _ in range(n_head)]
    ranking = Ranking(
        items=np.sort(rng.choice(n_items, n_head, replace=False)).astype(np.int32),
        left=rng.normal(0, 0.5, (n_head, n_factors)).astype(np.float32),
        right=rng.normal(0, 0.5, (n_head, n_factors)).astype(np.float32),
        indptr=np.cumsum([0, *map(len, columns)]),
        pairs=np.concatenate(columns).astype(np.int32),
        values=rng.normal(0, 0.5, sum(map(len, columns))).astype(np.float32),
        popularity=rng.permutation(n_items).astype(np.float32),
        threshold=3.0,
        lowest_weight=0.25,
    )
    return rounded(replace(ranking, **changes))


@pytest.fixture(scope="session")
def ranking_of() -> Callable[..., Ranking]:
    """Return a function that makes random rankings."""
    return random_ranking


@pytest.fixture(scope="session")
def small_ratings() -> Ratings:
    """Return a few thousand synthetic ratings."""
    return make(120, 60, mean_ratings=25)


@pytest.fixture(scope="session")
def data_folder(small_ratings: Ratings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that holds the small ratings in dpmf's own form."""
    folder = tmp_path_factory.mktemp("data") / "small"
    StoredRatings.build(MemorySource(small_ratings), folder)
    return folder


@pytest.fixture(scope="session")
def release_folder(small_ratings: Ratings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a release trained on the small ratings. Tests only read it."""
    folder = tmp_path_factory.mktemp("trained") / "release"
    SGD(n_factors=4, n_epochs=10).fit(small_ratings, n_threads=1).release.save(folder)
    return folder


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs the command line in this process."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["dpmf", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        printed = capsys.readouterr()
        return subprocess.CompletedProcess(sys.argv, code, printed.out, printed.err)

    return run


@pytest.fixture
def program(tmp_path: Path) -> Command:
    """Return a function that runs the command line as a user would, in an empty folder."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "dpmf", *map(str, arguments)]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=HANG, **options)  # type: ignore[call-overload,no-any-return]

    return run


# The command line, which sends itself a signal at an audit event, however fast the machine is: at the n-th one of this
# kind whose path has a name that starts so, or right after it. Ctrl-C counts even if whoever runs the tests ignores it.
_SIGNALLED = """
import os, signal, sys, threading
from dpmf.cli import main

number, kind, start, n, after = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5] == "True"
del sys.argv[1:6]
reached = []

def watch(event, arguments):
    global n
    if reached == [threading.get_ident()]:
        reached.append(None)
        os.kill(os.getpid(), number)
    elif n and event == kind and any(os.path.basename(str(path)).startswith(start) for path in arguments[:2]):
        n -= 1
        if n == 0:
            reached.append(threading.get_ident())
            if not after:
                watch("", ())

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.addaudithook(watch)
main()
"""


@pytest.fixture
def signalled(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Return a function that runs the command line until it sends itself a signal at a place in its work.

    The place is the n-th audit event of a kind, such as `os.rename`, about a path whose name starts with `start`, or
    whatever the same thread does next.
    """

    def run(
        *arguments: object,
        number: int = signal.SIGKILL,
        kind: str,
        start: str,
        n: int = 1,
        after: bool = False,
        scratch: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        place = [int(number), kind, start, n, after]
        words = [sys.executable, "-c", _SIGNALLED, *map(str, (*place, *arguments))]
        folder = tmp_path_factory.mktemp("scratch") if scratch is None else scratch  # where a kill may leave something
        environment = {**os.environ, "TMPDIR": str(folder)}
        return subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANG, check=False
        )

    return run


@pytest.fixture
def no_thread_is_left() -> Iterator[None]:
    """Fail if a thread of the engine goes on after the test; after Ctrl-C it may still be in its last task."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("dpmf-"):
            thread.join(HANG)
            assert not thread.is_alive(), thread.name


@pytest.fixture
def press_ctrl_c() -> Iterator[Callable[[], None]]:
    """Return a function that presses Ctrl-C and returns once the main thread has been interrupted.

    In the main thread itself it raises KeyboardInterrupt, even where the tests were started with Ctrl-C ignored.
    """
    received = threading.Event()

    def interrupt(*_: object) -> None:
        received.set()
        raise KeyboardInterrupt

    def press() -> None:
        main = threading.main_thread()
        assert main.ident is not None
        signal.pthread_kill(main.ident, signal.SIGINT)
        if threading.current_thread() is main:
            time.sleep(HANG)  # interrupted at once
        assert received.wait(HANG)

    before = signal.signal(signal.SIGINT, interrupt)
    yield press
    signal.signal(signal.SIGINT, before)
