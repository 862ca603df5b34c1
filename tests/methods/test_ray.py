"""Training on real nodes of a Ray cluster, on this machine: the bits of one process, through losses of all kinds."""

from __future__ import annotations

import math
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.cluster import Cluster, Ray
from dpmf.engine.ray import RayCluster
from dpmf.engine.store import StoredRatings
from dpmf.errors import DpmfError
from dpmf.methods import SGD, SGLD
from dpmf.model import EpochRecord
from dpmf.privacy import Budget
from dpmf.privacy.ledger import Ledger
from dpmf.privacy.mechanism import Mechanism
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.synthetic import make

from .cases import CERTIFIED, RATINGS, release_bits

pytest.importorskip("ray", reason="Ray is not installed: pip install 'dpmf[ray]'")
SEED = {"noise_seed": 5}
ENOUGH = 6000  # looks at what should end, a tenth of a second apart: then it never will
ALS = CERTIFIED[0]
pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray, about itself


def started(start: Callable[[], Any]) -> Any:
    """Start a node, which Ray gives up on after half a minute, however busy the machine is."""
    for _ in range(9):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    return start()


class Nodes:
    """A cluster of several nodes on this machine."""

    def __init__(self) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        from ray import cluster_utils

        soon = {
            "health_check_initial_delay_ms": 500,
            "health_check_period_ms": 500,
            "health_check_failure_threshold": 2,
        }
        self._cluster: Any = started(
            lambda: cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": soon})
        )
        self._others: list[Any] = []
        self.add()

    def executor(self, workers: int = 2) -> Ray:
        return Ray(self._cluster.address, workers)

    def add(self) -> None:
        self._others.append(started(lambda: self._cluster.add_node(num_cpus=1)))

    def kill(self, place: int) -> None:
        """Kill a node as if its power had gone."""
        self._cluster.remove_node(self._others.pop(place), allow_graceful=False)

    def stop(self) -> None:
        self._cluster.shutdown()


@dataclass(frozen=True)
class Running(Ray):
    """Workers that have been started, for several runs one after the other."""

    cluster: Any = None

    def start(self, n_threads: int | None = None) -> AbstractContextManager[Cluster]:
        return nullcontext(self.cluster)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Nodes()
        yield found
        found.stop()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> StoredRatings:
    return StoredRatings.build(MemorySource(RATINGS), tmp_path_factory.mktemp("ray") / "store")


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes of the workers of this test's cluster."""
    found: list[int] = []
    check = RayCluster._check

    def noting(self: RayCluster, worker: int, situation: str) -> None:
        check(self, worker, situation)
        found.append(self.get(self.hosts[worker].process.remote()))

    monkeypatch.setattr("dpmf.engine.ray.RayCluster._check", noting)
    return found


def wait_for_the_end_of(processes: list[int]) -> None:
    """Wait until processes have ended: Ray kills without waiting."""
    for _ in range(ENOUGH):
        if not any(map(is_alive, processes)):
            return
        time.sleep(0.1)
    raise AssertionError("a worker lives on")


def is_alive(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_killed_workers_leave_the_bits_alone_and_no_round_is_drawn_or_charged_twice(
    nodes: Nodes,
    store: StoredRatings,
    processes: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    here, release = ALS.fit(RATINGS, SEED, n_threads=1), Mechanism.release
    drawn: list[str] = []
    shots: list[Timer] = []

    def kill_between(record: EpochRecord) -> None:
        if record.epoch in (1, len(here.history)):  # after the last one there is nothing left to ask
            os.kill(processes[-1], signal.SIGKILL)

    def kill_within(record: EpochRecord) -> None:
        if record.epoch == 2:
            shots.append(Timer(0.005, lambda: os.kill(processes[-1], signal.SIGKILL)))
            shots[-1].start()
        elif record.epoch == 4:
            shots[-1].join()  # at the latest between the last two epochs

    def noting(self: Mechanism, what: str, *arguments: Any) -> Any:
        drawn.append(what)
        return release(self, what, *arguments)

    monkeypatch.setattr(Mechanism, "release", noting)
    ledger, plan = Ledger(tmp_path / "ledger", Budget(math.inf)), Checkpoint(tmp_path / "run")
    # Tiers that are large enough for the stores of nodes: smaller ones take another way.
    large = MemorySource(make(300, 4000, mean_ratings=30))
    tiers = StoredRatings.build(large, tmp_path / "store", size=4, memory=1 << 30)
    with nodes.executor().start() as cluster:
        executor = Running(cluster=cluster)
        there = ALS.fit(store, SEED, executor=executor, callbacks=[kill_between], ledger=ledger, checkpoint=plan)
        assert release_bits(there) == release_bits(here)
        assert len(drawn) == sum(ALS.stages)
        assert len(ledger.entries()) == 1
        assert len(processes) == 3
        for method in (
            SGD(n_factors=32, n_epochs=5, seed=5),
            SGLD(n_factors=32, n_epochs=5, seed=5, budget=Budget(math.inf)),
        ):
            plan = Checkpoint(tmp_path / method.name)
            here, before = method.fit(tiers, n_threads=1), len(processes)
            there = method.fit(tiers, executor=executor, callbacks=[kill_within], checkpoint=plan)
            assert release_bits(there) == release_bits(here)
            assert [one.train_rmse for one in there.history] == [one.train_rmse for one in here.history]
            assert len(processes) > before
    wait_for_the_end_of(processes)
    assert "raylet" not in "".join(capfd.readouterr())


def test_a_killed_node_leaves_the_bits_alone_and_its_loss_for_good_is_an_error(
    nodes: Nodes, store: StoredRatings, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, replace = ALS.fit(RATINGS, SEED, n_threads=1), RayCluster.replace
    lost: list[int] = []

    def kill_and_replace(record: EpochRecord) -> None:
        if record.epoch == 1:
            nodes.add()
            nodes.kill(0)

    def impatient(self: RayCluster, worker: int, why: str) -> None:
        monkeypatch.setattr(self, "_patience", 3.0)  # there will be no room, however long it waits
        lost.append(worker)
        replace(self, worker, why)

    with nodes.executor().start() as cluster:
        there = ALS.fit(store, SEED, executor=Running(cluster=cluster), callbacks=[kill_and_replace])
        assert release_bits(there) == release_bits(here)
        monkeypatch.setattr(RayCluster, "replace", impatient)
        with pytest.raises(DpmfError, match=r"one was lost .* no node with room for worker \d of 2 within 3 seconds"):
            ALS.fit(store, SEED, executor=Running(cluster=cluster), callbacks=[lambda _: nodes.kill(0)])
    assert len(lost) == 1
    nodes.add()


def test_workers_that_cannot_be_are_errors(nodes: Nodes, store: StoredRatings, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DpmfError, match=r"9 workers with 1 thread each are more than the \d CPUs of \d nodes"):
        ALS.fit(store, executor=nodes.executor(9))
    with pytest.raises(DpmfError, match="no Ray cluster answers at localhost:1: start one with `ray start --head`"):
        ALS.fit(store, executor=Ray("localhost:1"))
    monkeypatch.setattr("dpmf.engine.ray.about", lambda: {"cpu": "another"})
    with pytest.raises(DpmfError, match=r"worker 1 on \S+ has the CPU .* and this process another, so results could"):
        ALS.fit(store, executor=nodes.executor())
