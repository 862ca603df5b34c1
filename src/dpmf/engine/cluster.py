"""Workers on other processes and machines, as methods see them: what they are given, and what is asked of them.

Each worker of a `Team` makes an object of its own, from a function and arguments that can be pickled, and is then asked
for the results of its methods. `Ray` says where the processes are, and `dpmf.engine.ray` starts them. Nothing here, and
nothing that methods do with a team, imports Ray.

>>> Ray("local:2").n_workers
2
>>> Ray("somewhere").check()
Traceback (most recent call last):
    ...
dpmf.errors.InvalidArgument: cluster 'somewhere' is not known: give local:N, auto, HOST:PORT or ray://HOST:PORT
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from dpmf.engine.threads import thread_count
from dpmf.errors import DpmfError, InvalidArgument

_MOST_WORKERS = 1 << 12
_ADDRESS = re.compile(r"auto|local(:\d+)?|ray://[^\s/]+:\d+|[^\s/:]+:\d+|\[[0-9a-fA-F:]+\]:\d+")


class WorkerLost(DpmfError):
    """A worker was lost with the state that it had; another has taken its place, with none."""


class Abandoned(DpmfError):
    """What objects on workers did together is given up, because one of them failed or was lost."""


class Post(Protocol):
    """How objects on workers send each other what they need, while they do something together."""

    def send(self, worker: int, tag: tuple[str, int, int], content: Any) -> None:
        """Send something to a worker, without waiting for it to arrive; it must not change any more.

        Args:
            worker: whose object receives it.
            tag: tells it from everything else that is sent there meanwhile.
            content: which can be pickled.
        """

    def receive(self, tag: tuple[str, int, int]) -> Any:
        """Wait for what has this tag, and return it; arrays in it may be read only.

        Raises:
            Abandoned: another object failed, or was lost.
        """


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a method of a worker's object.

    Attributes:
        worker: whose.
        method: its name.
        arguments: of the call; another call stands for its result, which goes from worker to worker.
        wanted: whether whoever asks gets the result.
    """

    worker: int
    method: str
    arguments: tuple[Any, ...] = ()
    wanted: bool = False


class Team(Protocol):
    """Objects on workers, one each."""

    def ask(self, method: str, *arguments: Any) -> Iterator[Any]:
        """Yield what a method of every object returns, in the order in which they are done.

        For objects that always give the same answer: one that is lost is made again, and asked again.
        """

    def together(self, method: str, *arguments: Any) -> list[Any]:
        """Return what a method of every object returns, in the order of workers; all of them run it at the same time.

        The method is given a `Post` before the arguments.

        Raises:
            WorkerLost: a worker was lost. Its object was made again; what the others have done is undefined.
        """

    def carry_out(self, calls: Sequence[Call]) -> list[Any]:
        """Carry out calls, those of a worker in this order, and return the results that are wanted.

        Raises:
            WorkerLost: a worker was lost. Its object was made again; others may have carried out some of the calls.
        """


class Cluster(Protocol):
    """Workers that are running."""

    @property
    def n_workers(self) -> int:
        """How many there are."""

    @property
    def n_threads(self) -> int:
        """How many threads each may use."""

    def offers(self) -> dict[str, Any]:
        """Return what it offers, in JSON values."""

    def team(self, make: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> AbstractContextManager[Team]:
        """Let every worker make an object, which it drops when the block ends.

        Args:
            make: a function of a module.
            arguments: of each worker.
        """


@dataclass(frozen=True)
class Ray:
    """Where to train: on the workers of a Ray cluster.

    Attributes:
        address: "local:N" for N workers on this machine alone; "auto" for the cluster that this machine is a node of;
            "HOST:PORT", or "ray://HOST:PORT" from outside, for another.
        workers: how many; by default one for each node.
        patience: how many seconds to wait for room for a worker, be it a new one or one in the place of a lost one.
    """

    address: str = "auto"
    workers: int | None = None
    patience: float = 120.0

    def check(self) -> None:
        """Refuse what no cluster can be."""
        if not isinstance(self.address, str) or not _ADDRESS.fullmatch(self.address):
            raise InvalidArgument(
                f"cluster {self.address!r} is not known: give local:N, auto, HOST:PORT or ray://HOST:PORT"
            )
        if self.is_local and self.workers is not None and ":" in self.address:
            raise InvalidArgument(f"workers={self.workers}: {self.address} says how many there are, leave it out")
        number = self.n_workers
        if number is not None and not (isinstance(number, int) and 1 <= number <= _MOST_WORKERS):
            raise InvalidArgument(f"{number!r} workers: give a whole number from 1 to {_MOST_WORKERS}")
        if not self.patience > 0:
            raise InvalidArgument(f"patience={self.patience!r}: give a positive number of seconds")

    @property
    def is_local(self) -> bool:
        """Whether the cluster is started for the run, on this machine."""
        return self.address.partition(":")[0] == "local"

    @property
    def n_workers(self) -> int | None:
        """How many workers are asked for; None for one on each node."""
        if self.is_local and ":" in self.address:
            return int(self.address.partition(":")[2])
        return self.workers

    def start(self, n_threads: int | None = None) -> AbstractContextManager[Cluster]:
        """Start the workers, which are gone when the block ends.

        Args:
            n_threads: how many threads each uses; all CPUs of its share unless given.
        """
        self.check()
        from dpmf.engine.ray import connected

        return connected(self, None if n_threads is None else thread_count(n_threads))
