"""What each worker of a cluster keeps of a factorization: consecutive strips of users, and tiers of items.

A worker opens the blocks by itself, makes the start of its own part, and writes and reads its part of a snapshot by
itself, a file for each strip and each tier, so that another number of workers can continue.
"""

from __future__ import annotations

import os
import platform
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import BlockFile
from dpmf.engine.cluster import Call, Team
from dpmf.engine.factors import factor_rows
from dpmf.engine.layout import equal_masses
from dpmf.engine.shares import check_same, check_there
from dpmf.engine.tensorfile import read_tensors, write_tensors
from dpmf.errors import DamagedFile, DpmfError, InvalidArgument
from dpmf.files import sha256_of

State = Any  # a named tuple of arrays


class Start(Protocol):
    """How a method begins; pickled, and the same on every worker."""

    def strip(self, blocks: BlockFile, strip: int) -> State:
        """Return the initial state of a strip: a named tuple of arrays."""

    def tier(self, blocks: BlockFile, tier: int) -> State:
        """Return the initial state of a tier, likewise."""


class Travelling(NamedTuple):
    """A strip or a tier on its way to another worker."""

    number: int
    state: State


class Portion:
    """Consecutive strips on a worker, and the tiers that are there: those of the same numbers, unless they travel.

    Args:
        folder: of the blocks.
        fingerprint: of their ratings.
        starts: the first strip of each worker, and the end.
        worker: which of them this is.
        start: of the method.
    """

    def __init__(self, folder: Path, fingerprint: str, starts: Sequence[int], worker: int, start: Start) -> None:
        check_there(folder, (folder / "layout.json").is_file())
        self._blocks = BlockFile.open(folder)
        check_same(folder, self._blocks.fingerprint(), fingerprint)
        self._starts, self._worker = starts, worker
        self._own, self._start = range(starts[worker], starts[worker + 1]), start
        self._strips: dict[int, State] = {}
        self._tiers: dict[int, State] = {}

    def begin(self) -> None:
        """Set the initial state."""
        self._strips = {strip: self._start.strip(self._blocks, strip) for strip in self._own}
        self._tiers = {tier: self._start.tier(self._blocks, tier) for tier in self._own}

    def tier(self, tier: int) -> State:
        """Return a tier that is here."""
        return self._tiers[tier]

    def held(self, first_tier: int) -> list[int]:
        """Return the tiers that are here when strip 0 has one, between epochs."""
        return [(strip + first_tier) % self._starts[-1] for strip in self._own]

    def save(self, folder: Path) -> dict[str, str]:
        """Write the state of strips and tiers to a folder, and return checksums by file."""
        if not folder.is_dir():
            raise DpmfError(
                f"{folder.parent} is not on {platform.node()}: keep checkpoints on a disk that all nodes share"
            )
        checksums = {}
        for name, state in self._files():
            write_tensors(folder / name, _named(state))
            with (folder / name).open("rb+") as file:
                os.fsync(file.fileno())
            checksums[name] = sha256_of(folder / name)
        return checksums

    def load(self, folder: Path, checksums: Mapping[str, str]) -> None:
        """Set the state from a folder, with the tiers that have the numbers of the own strips."""
        self.begin()
        for name, state in self._files():
            path = folder / name
            if not path.is_file() or sha256_of(path) != checksums.get(name):
                raise DamagedFile(
                    f"{path} is damaged, or not on {platform.node()}: keep checkpoints on a disk that all nodes "
                    "share, or start over"
                )
            tensors = _named(state)
            read_tensors(path, list(tensors), tensors)

    def _kept(self) -> dict[str, dict[int, State]]:
        """Return all that a snapshot has of this worker, by kind and number."""
        return {"strip": self._strips, "tier": self._tiers}

    def _files(self) -> Iterator[tuple[str, State]]:
        for kind, states in self._kept().items():
            for number, state in states.items():
                yield f"{kind}-{number:04d}.safetensors", state


class Portions:
    """The portions of all workers, as whoever leads the run sees them.

    Args:
        team: of `Portion`s.
        starts: the first strip of each worker, and the end.
    """

    def __init__(self, team: Team, starts: Sequence[int]) -> None:
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
        owners = [owner_of(tier - self._first_tier, self._starts) for tier in range(self._size)]
        return self._team.carry_out([Call(owner, "tier", (tier,), True) for tier, owner in enumerate(owners)])

    def _everywhere(self, method: str, *arguments: Any) -> list[Any]:
        return self._team.carry_out([Call(worker, method, arguments, True) for worker in range(self._n_workers)])


def starts_of(size: int, n_workers: int) -> list[int]:
    """Return the first strip of each worker, and the end: as many strips each, or one more.

    >>> starts_of(8, 3)
    [0, 3, 5, 8]
    """
    if n_workers > size:
        raise InvalidArgument(
            f"{n_workers} workers cannot share {size} strips of users: use {size} of them at most, or ingest the data "
            f"again with --strips {n_workers} or more, which changes results of SGD"
        )
    starts: list[int] = equal_masses(np.ones(size, np.int64), n_workers).tolist()
    return starts


def owner_of(strip: int, starts: Sequence[int]) -> int:
    """Return the worker of a strip, numbered modulo their number.

    >>> owner_of(3, [0, 3, 5, 8]), owner_of(-1, [0, 3, 5, 8])
    (1, 2)
    """
    return bisect_right(starts, strip % starts[-1]) - 1


def own_copy(state: State) -> State:
    """Return a copy of what arrived, which may only be read: one that may be written to, rows laid out for kernels."""
    return state._make(map(_copied, state))


def writable(content: Any) -> Any:
    """Return constants that arrived, arrays that may only be read copied: kernels are compiled for those that may not.

    >>> writable((1, np.broadcast_to(2.0, (3,))))
    (1, array([2., 2., 2.]))
    """
    if isinstance(content, np.ndarray):
        return content if content.flags.writeable else np.array(content)
    if isinstance(content, tuple):
        parts = map(writable, content)
        return content._make(parts) if hasattr(content, "_make") else tuple(parts)
    return content


def _copied(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 2:
        return np.array(array)
    rows = factor_rows(*array.shape).view(array.dtype)
    rows[...] = array
    return rows


def _named(state: State) -> dict[str, NDArray[Any]]:
    return dict(zip(state._fields, state, strict=True))
