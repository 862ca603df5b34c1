"""An epoch over the block grid on the workers of a cluster: strips of users stay, tiers of items travel.

Each worker owns consecutive strips: it opens their blocks by itself and keeps their state. A tier visits strip after
strip, so it passes from a worker to the one before it in the order of strips, directly; whoever leads the run sees sums
of errors, and in the end item factors. The order of visits is that of `dpmf.engine.schedule`, whatever the number of
workers, so results are those of one machine, byte for byte.

A visit changes its state in place and cannot be repeated. So nothing is retried when a worker is lost: whoever leads
the run lets all workers load the last snapshot, or begin again, which gives the same bits as well.
"""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import BlockFile
from dpmf.engine.cluster import Call, Team
from dpmf.engine.factors import factor_rows
from dpmf.engine.layout import equal_masses
from dpmf.engine.schedule import Place, tier_at
from dpmf.engine.shares import check_same, check_there
from dpmf.engine.tensorfile import read_tensors, write_tensors
from dpmf.engine.threads import run_tasks
from dpmf.errors import DamagedFile, DpmfError
from dpmf.files import sha256_of

State = Any  # a named tuple of arrays


class Start(Protocol):
    """How a method begins, and what it does with a block; pickled, and the same on every worker."""

    def strip(self, blocks: BlockFile, strip: int) -> State:
        """Return the initial state of a strip: a named tuple of arrays."""

    def tier(self, blocks: BlockFile, tier: int) -> State:
        """Return the initial state of a tier, likewise."""

    def visit(self, block: Any, strip: Any, tier: Any, constants: Any, place: Place) -> float:
        """Do the work of one block, as `dpmf.engine.executor.Epoch` says."""


class Travelling(NamedTuple):
    """A tier on its way to another worker."""

    tier: int
    state: State


class Spent(NamedTuple):
    """What a worker did in an epoch.

    Attributes:
        results: of its visits, by place.
        received: how many bytes of tiers came from other workers.
    """

    results: dict[tuple[int, int], float]
    received: int


class Strips:
    """Consecutive strips on a worker, and the tiers that are there at the moment.

    Args:
        folder: of the blocks.
        fingerprint: of their ratings.
        first, last: strips first..last-1.
        start: of the method.
        n_threads: how many blocks are visited at a time.
    """

    def __init__(self, folder: Path, fingerprint: str, first: int, last: int, start: Start, n_threads: int) -> None:
        check_there(folder, (folder / "layout.json").is_file())
        self._blocks = BlockFile.open(folder)
        check_same(folder, self._blocks.fingerprint(), fingerprint)
        self._own, self._start, self._n_threads = range(first, last), start, n_threads
        self._strips: dict[int, State] = {}
        self._tiers: dict[int, State] = {}
        self._results: dict[tuple[int, int], float] = {}
        self._received = 0

    def begin(self) -> None:
        """Set the initial state, with the tiers that have the numbers of the own strips."""
        self._strips = {strip: self._start.strip(self._blocks, strip) for strip in self._own}
        self._tiers = {tier: self._start.tier(self._blocks, tier) for tier in self._own}
        self._results, self._received = {}, 0

    def visit(self, step: int, first_tier: int, constants: Any, incoming: Travelling | None, passes: bool) -> Any:
        """Visit the blocks of a step; return the tier that is to travel, if any does.

        Args:
            step: of the epoch.
            first_tier: of the epoch.
            constants: of the epoch.
            incoming: the tier that has arrived since the last step.
            passes: whether there are other workers.
        """
        self._receive(incoming)
        size, values = self._blocks.size, np.zeros(len(self._own))

        def work(task: int) -> None:
            strip = self._own[task]
            place = Place(strip, tier_at(strip, step, first_tier, size))
            block = self._blocks.block(*place)
            values[task] = self._start.visit(block, self._strips[strip], self._tiers[place.tier], constants, place)
            self._blocks.release(block)

        run_tasks(work, len(self._own), self._n_threads)
        for strip, value in zip(self._own, values.tolist(), strict=True):
            self._results[strip, tier_at(strip, step, first_tier, size)] = value
        if not passes:
            return None
        outgoing = tier_at(self._own.start, step, first_tier, size)
        return Travelling(outgoing, self._tiers.pop(outgoing))

    def finish(self, incoming: Travelling | None) -> Spent:
        """Take the last tier that travelled, and return what visits returned."""
        self._receive(incoming)
        spent = Spent(self._results, self._received)
        self._results, self._received = {}, 0
        return spent

    def give(self, tiers: list[int]) -> list[Travelling]:
        """Return tiers that begin the epoch elsewhere."""
        return [Travelling(tier, self._tiers.pop(tier)) for tier in tiers]

    def take(self, arrived: list[Travelling]) -> None:
        """Keep tiers that begin the epoch here."""
        for one in arrived:
            self._receive(one)

    def tier(self, tier: int) -> State:
        """Return a tier that is here."""
        return self._tiers[tier]

    def save(self, folder: Path) -> dict[str, str]:
        """Write the state of strips and tiers to a folder, and return checksums by file."""
        if not folder.is_dir():
            raise DpmfError(
                f"{folder.parent} is not on {platform.node()}: keep checkpoints on a disk that all nodes share"
            )
        checksums = {}
        parts = [(_file_of("strip", one), state) for one, state in self._strips.items()]
        for name, state in [*parts, *((_file_of("tier", one), state) for one, state in self._tiers.items())]:
            write_tensors(folder / name, _named(state))
            with (folder / name).open("rb+") as file:
                os.fsync(file.fileno())
            checksums[name] = sha256_of(folder / name)
        return checksums

    def load(self, folder: Path, checksums: Mapping[str, str]) -> None:
        """Set the state from a folder, with the tiers that have the numbers of the own strips."""
        self.begin()
        for what, states in (("strip", self._strips), ("tier", self._tiers)):
            for number, state in states.items():
                path = folder / _file_of(what, number)
                if not path.is_file() or sha256_of(path) != checksums.get(path.name):
                    raise DamagedFile(
                        f"{path} is damaged, or not on {platform.node()}: keep checkpoints on a disk that all nodes "
                        "share, or start over"
                    )
                tensors = _named(state)
                read_tensors(path, list(tensors), tensors)

    def _receive(self, incoming: Travelling | None) -> None:
        """Keep a tier that arrived; what has travelled may only be read, so it is copied into rows of our own."""
        if incoming is None:
            return
        tier, state = incoming
        self._received += sum(array.nbytes for array in state)
        self._tiers[tier] = state._make(map(_copied, state))


@dataclass(frozen=True)
class Epoch:
    """What the workers did in an epoch.

    Attributes:
        results: what the visits returned, shape (T, T), by strip and tier.
        received: how many bytes of tiers each worker got from others.
    """

    results: NDArray[np.float64]
    received: tuple[int, ...]


class SpreadGrid:
    """A block grid on the workers of a cluster, as whoever leads the run sees it.

    Args:
        team: of `Strips`.
        starts: the first strip of each worker, and the end.
    """

    def __init__(self, team: Team, starts: list[int]) -> None:
        self._team, self._starts, self._size = team, starts, starts[-1]
        self._n_workers = len(starts) - 1
        self._first_tier = 0  # strip s has tier s + this

    def begin(self) -> None:
        """Set the initial state."""
        self._everywhere("begin")
        self._first_tier = 0

    def load(self, folder: Path, checksums: Mapping[str, str]) -> None:
        """Set the state from a snapshot."""
        self._everywhere("load", folder, checksums)
        self._first_tier = 0

    def save(self, folder: Path) -> dict[str, str]:
        """Write a snapshot's files, and return their checksums."""
        found: dict[str, str] = {}
        for part in self._everywhere("save", folder):
            found |= part
        return found

    def tiers(self) -> list[State]:
        """Return the state of all tiers."""
        owners = [self._owner(tier - self._first_tier) for tier in range(self._size)]
        return self._team.carry_out([Call(owner, "tier", (tier,), True) for tier, owner in enumerate(owners)])

    def run(self, constants: Any, first_tier: int) -> Epoch:
        """Visit every block once.

        Raises:
            WorkerLost: a worker was lost; all have to begin again, or load a snapshot.
        """
        calls, passes = self._rotation(first_tier), self._n_workers > 1
        last: list[Call | None] = [None] * self._n_workers
        for step in range(self._size):
            arriving = last[1:] + last[:1]  # from the worker of the next strips
            last = [
                Call(worker, "visit", (step, first_tier, constants, one if passes else None, passes))
                for worker, one in enumerate(arriving)
            ]
            calls += [one for one in last if one is not None]
        arriving = last[1:] + last[:1]
        calls += [Call(worker, "finish", (one if passes else None,), True) for worker, one in enumerate(arriving)]
        spent: list[Spent] = self._team.carry_out(calls)
        self._first_tier = first_tier
        results = np.zeros((self._size, self._size))
        for part in spent:
            for place, value in part.results.items():
                results[place] = value
        return Epoch(results, tuple(part.received for part in spent))

    def _rotation(self, first_tier: int) -> list[Call]:
        """Return the calls that bring every tier to the worker of the strip that it visits first."""
        moving: dict[tuple[int, int], list[int]] = defaultdict(list)
        for tier in range(self._size):
            ends = self._owner(tier - self._first_tier), self._owner(tier - first_tier)
            if ends[0] != ends[1]:
                moving[ends].append(tier)
        given = {ends: Call(ends[0], "give", (tiers,)) for ends, tiers in moving.items()}
        return [*given.values(), *(Call(ends[1], "take", (call,)) for ends, call in given.items())]

    def _owner(self, strip: int) -> int:
        return int(np.searchsorted(self._starts, strip % self._size, "right")) - 1

    def _everywhere(self, method: str, *arguments: Any) -> list[Any]:
        return self._team.carry_out([Call(worker, method, arguments, True) for worker in range(self._n_workers)])


def starts_of(size: int, n_workers: int) -> list[int]:
    """Return the first strip of each worker, and the end: as many strips each, or one more.

    >>> starts_of(8, 3)
    [0, 3, 5, 8]
    """
    starts: list[int] = equal_masses(np.ones(size, np.int64), n_workers).tolist()
    return starts


def _file_of(what: str, number: int) -> str:
    return f"{what}-{number:04d}.safetensors"


def _copied(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that may be written to, rows laid out for kernels."""
    if array.ndim != 2:
        return np.array(array)
    rows = factor_rows(*array.shape).view(array.dtype)
    rows[...] = array
    return rows


def _named(state: State) -> dict[str, NDArray[Any]]:
    return dict(zip(state._fields, state, strict=True))
