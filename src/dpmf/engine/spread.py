"""An epoch over the block grid on the workers of a cluster: strips of users stay, tiers of items travel.

Each worker owns consecutive strips: it opens their blocks by itself and keeps their state. A tier visits strip after
strip, so it passes from a worker to the one before it in the order of strips, directly; whoever leads the run sees sums
of errors, and in the end item factors. The order of visits is that of `dpmf.engine.schedule`, whatever the number of
workers, so results are those of one machine, byte for byte.

A visit changes its state in place and cannot be repeated. So nothing is retried when a worker is lost: whoever leads
the run lets all workers load the last snapshot, or begin again, which gives the same bits as well.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.cluster import Call
from dpmf.engine.portions import Portion, Portions, Start, Travelling, own_copy
from dpmf.engine.schedule import Place, tier_at
from dpmf.engine.threads import run_tasks


class Visitor(Start, Protocol):
    """How a method begins, and what it does with a block."""

    def visit(self, block: Any, strip: Any, tier: Any, constants: Any, place: Place) -> float:
        """Do the work of one block, as `dpmf.engine.executor.Epoch` says."""


class Spent(NamedTuple):
    """What a worker did in an epoch.

    Attributes:
        results: of its visits, by place.
        received: how many bytes of tiers came from other workers.
    """

    results: dict[tuple[int, int], float]
    received: int


class Strips(Portion):
    """Consecutive strips on a worker, and the tiers that are there at the moment.

    Args:
        folder, fingerprint, first, last: as those of `Portion`.
        visitor: of the method.
        n_threads: how many blocks are visited at a time.
    """

    def __init__(self, folder: Path, fingerprint: str, first: int, last: int, visitor: Visitor, n_threads: int) -> None:
        super().__init__(folder, fingerprint, first, last, visitor)
        self._visitor, self._n_threads = visitor, n_threads
        self._results: dict[tuple[int, int], float] = {}
        self._received = 0

    def begin(self) -> None:
        """Set the initial state."""
        super().begin()
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
            values[task] = self._visitor.visit(block, self._strips[strip], self._tiers[place.tier], constants, place)
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

    def _receive(self, incoming: Travelling | None) -> None:
        """Keep a tier that arrived."""
        if incoming is not None:
            self._received += sum(array.nbytes for array in incoming.state)
            self._tiers[incoming.number] = own_copy(incoming.state)


@dataclass(frozen=True)
class Epoch:
    """What the workers did in an epoch.

    Attributes:
        results: what the visits returned, shape (T, T), by strip and tier.
        received: how many bytes of tiers each worker got from others.
    """

    results: NDArray[np.float64]
    received: tuple[int, ...]


class SpreadGrid(Portions):
    """A block grid on the workers of a cluster, as whoever leads the run sees it: a team of `Strips`."""

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
