"""Workers on a Ray cluster: the one module that imports Ray, and only when a run asks for it.

Ray starts processes, finds room for them, moves arguments and results, and notices what is lost. It repeats nothing:
an actor that Ray restarted would begin with no state and go on as if it had one. So neither actors nor calls are
retried; a lost worker is replaced here, and whoever asked decides what is asked again.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dpmf.engine.cluster import Call, Ray, WorkerLost
from dpmf.engine.ray_connect import attach, own_cluster
from dpmf.engine.ray_host import POST, Host, Meeting, about
from dpmf.engine.threads import available_cpus
from dpmf.errors import DpmfError, MissingExtra

logger = logging.getLogger(__name__)
_MOST_LOSSES = 5  # of one worker over one question: it would not survive the next attempt either
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing about a run is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else it warns
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # of calls that were given up with others, which is said once
}
_ROOM = {"cpus": "CPU", "memory": "memory", "object_store_memory": "object_store_memory"}  # what Ray calls it
_FOR_NUMBA = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")  # what kernels are compiled for, wherever they run


class RayTeam:
    """Objects on the workers of a Ray cluster, as `dpmf.engine.cluster.Team` says."""

    def __init__(self, cluster: RayCluster, key: int, make: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self._cluster, self._key, self._make, self._arguments = cluster, key, make, arguments
        self._n_meetings = 0

    def ask(self, method: str, *arguments: Any) -> Iterator[Any]:
        """Yield what a method of every object returns, in the order in which they are done."""
        cluster, losses = self._cluster, Counter[int]()
        shared = [cluster.ray.put(one) for one in arguments]  # once, and then from node to node

        def submit(worker: int) -> Any:
            return cluster.hosts[worker].call.remote(self._key, method, *shared)

        waiting = {submit(worker): worker for worker in range(cluster.n_workers)}
        while waiting:
            (done, *_), _ = cluster.ray.wait(list(waiting))
            worker = waiting.pop(done)
            try:
                answer = cluster.get(done)
            except WorkerLost as why:
                losses[worker] += 1
                if losses[worker] > _MOST_LOSSES:
                    raise DpmfError(
                        f"worker {worker + 1} was lost {losses[worker]} times over one question ({why}): give it more "
                        "memory, or use more workers"
                    ) from None
                cluster.replace(worker, str(why))
                waiting[submit(worker)] = worker
                continue
            yield answer

    def carry_out(self, calls: Sequence[Call]) -> list[Any]:
        """Carry out calls, those of a worker in this order, and return the results that are wanted."""
        results: dict[Call, Any] = {}
        uses = Counter(one for call in calls for one in call.arguments if isinstance(one, Call))
        given = Counter(id(one) for call in calls for one in call.arguments if isinstance(one, tuple))
        stored: dict[int, Any] = {}  # what many calls are given, such as the constants of an epoch: once for all

        def argument(one: Any) -> Any:
            if isinstance(one, Call):
                return results[one]
            if given[id(one)] < 2:
                return one
            if id(one) not in stored:
                stored[id(one)] = self._cluster.ray.put(one)
            return stored[id(one)]

        for call in calls:
            arguments = [argument(one) for one in call.arguments]
            host = self._cluster.hosts[call.worker]
            results[call] = host.call.remote(self._key, call.method, *arguments)
            for one in call.arguments:
                if isinstance(one, Call):
                    uses[one] -= 1
                    if not uses[one] and not one.wanted:
                        del results[one]  # so that its memory is free as soon as it has been used
            del arguments
        wanted = [results[call] for call in calls if call.wanted]
        try:
            return [self._cluster.get(one) for one in wanted]
        except WorkerLost as why:
            self._cluster.repair(str(why))
            raise

    def together(self, method: str, *arguments: Any) -> list[Any]:
        """Return what a method of every object returns, in the order of workers; all run it at the same time."""
        cluster = self._cluster
        self._n_meetings += 1
        meeting, hosts = (self._key, self._n_meetings), list(cluster.hosts)
        shared = [cluster.ray.put(one) for one in (hosts, *arguments)]
        calls = [host.meet.remote(meeting, method, *shared) for host in hosts]
        waiting = list(calls)
        try:
            while waiting:
                done, waiting = cluster.ray.wait(waiting)
                cluster.get(done[0])
        except Exception as why:
            cluster.end_meeting(meeting, calls)
            if isinstance(why, WorkerLost):
                cluster.repair(str(why))
            raise
        return [cluster.get(one) for one in calls]

    def make(self, worker: int) -> Any:
        """Let a worker make its object, and return what to wait for."""
        arguments = self._arguments[worker]
        return self._cluster.hosts[worker].make.remote(self._key, self._make, *arguments)


class RayCluster:
    """Workers on a Ray cluster, as `dpmf.engine.cluster.Cluster` says.

    Args:
        ray: the library.
        settings: of the cluster.
        n_workers, n_threads: how many there are, and how many threads each may use.
        cpus: how many CPUs Ray sets aside for each.
    """

    def __init__(self, ray: Any, settings: Ray, n_workers: int, n_threads: int, cpus: int) -> None:
        self.ray, self.n_workers, self.n_threads = ray, n_workers, n_threads
        self._patience = settings.patience
        environment = {name: os.environ[name] for name in _FOR_NUMBA if name in os.environ}
        options = {"runtime_env": {"env_vars": environment}} if environment and not settings.is_local else {}
        self._actor = ray.remote(concurrency_groups={POST: 1})(Host).options(
            num_cpus=cpus, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD", **options
        )
        self._teams: dict[int, RayTeam] = {}
        self._n_teams = 0
        self.hosts: list[Any] = []

    def start(self) -> None:
        """Start all workers, and refuse those whose results would differ."""
        self.hosts = [self._actor.remote() for _ in range(self.n_workers)]
        for worker in range(self.n_workers):
            try:
                self._check(worker, "there is")
            except WorkerLost as why:  # a node may be gone, and Ray not have noticed yet
                self.replace(worker, str(why))

    def offers(self) -> dict[str, Any]:
        """Return what it offers, in JSON values."""
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        room = {name: sum(node["Resources"].get(key, 0) for node in nodes) for name, key in _ROOM.items()}
        places = Counter(self.ray.get([host.node.remote() for host in self.hosts]))
        return {
            "nodes": len(nodes),
            **{name: int(amount) for name, amount in room.items()},
            "workers": self.n_workers,
            "threads_per_worker": self.n_threads,
            "workers_by_node": dict(places),
        }

    @contextlib.contextmanager
    def team(self, make: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[RayTeam]:
        """Let every worker make an object, which it drops when the block ends."""
        self._n_teams += 1
        put = {id(one): self.ray.put(one) for own in arguments for one in own}  # once what several workers get
        key, held = self._n_teams, [tuple(put[id(one)] for one in own) for own in arguments]
        team = self._teams[key] = RayTeam(self, key, make, held)
        try:
            made = [team.make(worker) for worker in range(self.n_workers)]
            for worker, one in enumerate(made):
                try:
                    self.get(one)
                except WorkerLost as why:
                    self.replace(worker, str(why))
            yield team
        finally:
            del self._teams[key]
            for host in self.hosts:
                host.drop.remote(key)

    def get(self, reference: Any, timeout: float | None = None) -> Any:
        """Return a result, or raise what the worker raised, or `WorkerLost` if it raised nothing."""
        exceptions = self.ray.exceptions
        try:
            return self.ray.get(reference, timeout=timeout)
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, DpmfError | OSError | MemoryError):
                raise error.cause from None
            if isinstance(error.cause, exceptions.RayError):  # what it was to work on was lost with another worker
                raise WorkerLost(_reason(error.cause)) from None
            raise
        except exceptions.GetTimeoutError:
            raise
        except exceptions.RayError as error:
            if missing := re.search(r"No module named '([\w.]+)'", str(error)):  # another worker would do no better
                raise DpmfError(
                    f"a worker cannot import {missing[1]}: `pip install 'dpmf[ray]'` of the same version on all nodes, "
                    "in the environment in which `ray start` runs"
                ) from None
            raise WorkerLost(_reason(error)) from None

    def end_meeting(self, meeting: Meeting, calls: Sequence[Any]) -> None:
        """Let workers give up what they do together, and wait until they have."""
        for host in self.hosts:
            host.abandon.options(concurrency_group=POST).remote(meeting)
        self.ray.wait(list(calls), num_returns=len(calls), timeout=self._patience)

    def repair(self, why: str) -> None:
        """Replace the workers that were lost."""
        for worker, host in enumerate(self.hosts):
            try:
                self.get(host.process.remote())
            except WorkerLost as error:
                self.replace(worker, str(error) or why)

    def replace(self, worker: int, why: str) -> None:
        """Put a new worker in the place of one that was lost, with objects made again."""
        logger.warning("worker %d of %d was lost (%s): another takes its place", worker + 1, self.n_workers, why)
        for _ in range(_MOST_LOSSES):
            self.ray.kill(self.hosts[worker], no_restart=True)  # it may live on where nobody can reach it
            self.hosts[worker] = self._actor.remote()
            try:
                self._check(worker, f"one was lost ({why}), and there is")
                for team in self._teams.values():
                    self.get(team.make(worker))
                return
            except WorkerLost as error:
                why = str(error)
        raise DpmfError(f"worker {worker + 1} was lost {_MOST_LOSSES} times in a row ({why}): look at that node")

    def _check(self, worker: int, situation: str) -> None:
        """Wait for a worker, and refuse one whose results would differ."""
        host, exceptions = self.hosts[worker], self.ray.exceptions
        try:
            theirs, node = self.get(host.about.remote(), self._patience), self.get(host.node.remote())
        except exceptions.GetTimeoutError:
            raise DpmfError(
                f"{situation} no node with room for worker {worker + 1} of {self.n_workers} within "
                f"{self._patience:g} seconds: add a node, use fewer workers or threads, or wait for other jobs to end"
            ) from None
        check_alike(theirs, about(), f"worker {worker + 1} on {node}")

    def stop(self) -> None:
        """End all workers."""
        for host in self.hosts:
            with contextlib.suppress(Exception):
                self.ray.kill(host, no_restart=True)


def check_alike(theirs: Mapping[str, str], ours: Mapping[str, str], who: str) -> None:
    """Refuse a worker whose results would differ from those of this process.

    >>> check_alike({"numba": "0.60"}, {"numba": "0.61"}, "worker 1 on node-a")
    Traceback (most recent call last):
        ...
    dpmf.errors.DpmfError: worker 1 on node-a has numba 0.60 and this process 0.61, so results could differ: install \
the same version everywhere
    """
    for name, mine in ours.items():
        if theirs.get(name) == mine:
            continue
        what, advice = name, "install the same version everywhere"
        if name == "cpu":
            what = "the CPU"
            advice = "leave that node out, or set NUMBA_CPU_NAME and NUMBA_CPU_FEATURES here to what all have in common"
        raise DpmfError(
            f"{who} has {what} {theirs.get(name)} and this process {mine}, so results could differ: {advice}"
        )


@contextlib.contextmanager
def connected(settings: Ray, n_threads: int | None) -> Iterator[RayCluster]:
    """Start workers on a Ray cluster; when the block ends they are gone, and so is a cluster started for them."""
    with contextlib.ExitStack() as stack:
        ray = _library()
        stack.enter_context(_silent(ray))
        if settings.is_local:
            cluster = _local(ray, settings, n_threads, stack)
        else:
            cluster = _elsewhere(ray, settings, n_threads, stack)
        stack.callback(cluster.stop)
        cluster.start()
        yield cluster


def _local(ray: Any, settings: Ray, n_threads: int | None, stack: contextlib.ExitStack) -> RayCluster:
    n_workers = settings.n_workers or max(available_cpus(), 1)
    stack.enter_context(own_cluster(ray, settings, n_workers))
    return RayCluster(ray, settings, n_workers, n_threads or max(available_cpus() // n_workers, 1), 1)


def _elsewhere(ray: Any, settings: Ray, n_threads: int | None, stack: contextlib.ExitStack) -> RayCluster:
    if not ray.is_initialized():
        stack.callback(ray.shutdown)
        attach(ray, settings)
    cpus = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    cpus = [one for one in cpus if one]
    if not cpus:
        raise DpmfError(f"the cluster {settings.address} has no CPUs: start nodes with `ray start`")
    n_workers = settings.n_workers or len(cpus)
    threads = n_threads or max(min(cpus) // -(-n_workers // len(cpus)), 1)
    room = sum(one // threads for one in cpus)
    if n_workers > room:
        raise DpmfError(
            f"{n_workers} workers with {threads} thread{'s' if threads > 1 else ''} each are more than the "
            f"{sum(cpus)} CPUs of {len(cpus)} nodes have room for, which is {room}: use fewer workers or threads"
        )
    return RayCluster(ray, settings, n_workers, threads, threads)


@contextlib.contextmanager
def _silent(ray: Any) -> Iterator[None]:
    """Keep Ray's messages about workers off the terminal: what matters of them is said here."""
    worker = ray._private.worker
    before = getattr(worker, "_worker_logs_enabled", True)
    worker._worker_logs_enabled = False  # log_to_driver leaves messages of nodes on
    try:
        yield
    finally:
        worker._worker_logs_enabled = before


def _library() -> Any:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise MissingExtra("clusters need Ray: pip install 'dpmf[ray]'") from None


def _reason(error: BaseException) -> str:
    """Return in a few words what happened to a worker."""
    name, text = type(error).__name__, str(error)
    if "OutOfMemory" in name:
        return "out of memory"
    if "node" in name.lower() or "node has died" in text or "node died" in text or "node is dead" in text:
        return "its node is gone"
    if "ObjectLost" in name or "OwnerDied" in name or "ObjectReconstruction" in name:
        return "what it sent is gone"
    return "its process ended"
