"""Ratings that stay on the disk while a method trains on them: their columns, and the block grid made of them.

>>> import tempfile
>>> from dpmf.ratings.store.pieces import MemorySource
>>> from dpmf.ratings.synthetic import make
>>> StoredRatings.build(MemorySource(make(50, 40)), Path(tempfile.mkdtemp()) / "store", memory=1 << 20)
StoredRatings(1,101 ratings, 50 users, 40 items, scale 1:5)
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import FILES as BLOCK_FILES
from dpmf.engine.blockfile import BlockFile
from dpmf.engine.factors import padded
from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.files import check_replaceable, new_folder, scratch_file
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.ids import Ids
from dpmf.ratings.store.columns import FILES as COLUMN_FILES
from dpmf.ratings.store.columns import RatingsOnDisk, Source, with_positions

logger = logging.getLogger(__name__)

FILES = (*COLUMN_FILES, "blocks")
Leave = Callable[[Ratings, NDArray[np.int64]], Ratings]
_BESIDE_SUMS = 5  # arrays of their size: averages, and noise, noisy sums and steps while these are made
_LEAST_MEMORY = 1 << 26  # little beside the program itself, which takes about three times this: never refused


def check_store_replaceable(folder: Path, replace: bool = True) -> None:
    """Raise `InvalidArgument` unless a store can be written to a folder: a new one, or one with nothing but a store."""
    check_replaceable(folder, FILES if replace else ())
    check_replaceable(folder / "blocks", BLOCK_FILES)


@dataclass(frozen=True, eq=False, repr=False)
class StoredRatings:
    """Ratings on disk, in blocks.

    Attributes:
        columns: the ratings user by user.
        blocks: the ratings block by block.
        memory: how many bytes training may use for factors and blocks together.
    """

    columns: RatingsOnDisk
    blocks: BlockFile
    memory: int

    @classmethod
    def build(cls, source: Source, folder: Path, *, memory: int = 0) -> StoredRatings:
        """Write ratings that come in pieces to a folder, readable by its owner only: it appears whole or not at all."""
        check_store_replaceable(folder)
        with new_folder(folder, may_replace=FILES, mode=0o700) as work:
            columns = RatingsOnDisk.write(source, work)
            BlockFile.build(columns.pieces, columns.user_ids, len(columns.catalogue), work / "blocks")
        return cls.open(folder, memory=memory)

    @classmethod
    def open(cls, folder: Path, *, memory: int = 0) -> StoredRatings:
        """Open what `build` wrote: a matter of milliseconds, because no rating is read."""
        columns, blocks = RatingsOnDisk.open(folder), BlockFile.open(folder / "blocks")
        sizes = len(columns), len(columns.user_ids), len(columns.catalogue)
        if sizes != (len(blocks), len(blocks.user_counts), len(blocks.item_counts)):
            raise DamagedFile(f"{folder / 'blocks'} was made from other ratings: ingest the data again")
        return cls(columns, blocks, memory)

    def seen(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return which items each user has rated, as in `Ratings`: pointers, and items mapped from the disk."""
        indptr = self.columns.indptr
        with scratch_file(self.columns.folder) as file:
            file.truncate(4 * int(indptr[-1]))
            for positions, piece in with_positions(self.columns):
                places = indptr[positions].tolist()
                starts = piece.indptr.tolist()
                for place, start, end in zip(places, starts[:-1], starts[1:], strict=True):
                    os.pwrite(file.fileno(), piece.items[start:end].data, 4 * place)
            return indptr, np.memmap(file, np.int32, "r")

    @contextlib.contextmanager
    def thinned(self, leave: Leave) -> Iterator[StoredRatings]:
        """Yield a store of fewer ratings, in a folder that is readable by its owner only and removed in the end.

        Args:
            leave: returns what is left of a piece, with the same users; it is given their positions among all users.
        """
        with tempfile.TemporaryDirectory(prefix="dpmf-train-") as folder:
            yield StoredRatings.build(_Thinned(self.columns, leave), Path(folder) / "store", memory=self.memory)

    @property
    def user_ids(self) -> Ids:
        """The users."""
        return self.columns.user_ids

    @property
    def catalogue(self) -> Items:
        """The items."""
        return self.columns.catalogue

    @property
    def scale(self) -> Scale:
        """The rating scale."""
        return self.columns.scale

    @property
    def name(self) -> str:
        """What to call the data set."""
        return self.columns.name

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """The number of items in the catalogue."""
        return len(self.catalogue)

    def __len__(self) -> int:
        return len(self.blocks)

    def __repr__(self) -> str:
        return (
            f"StoredRatings({len(self):,} ratings, {self.n_users:,} users, {self.n_items:,} items, scale {self.scale})"
        )


AnyRatings = Ratings | StoredRatings


def parts_of(ratings: AnyRatings) -> Iterator[tuple[NDArray[np.int64], Ratings]]:
    """Yield ratings as they can be in memory, all at once or piece by piece, with the positions of their users."""
    if isinstance(ratings, StoredRatings):
        yield from with_positions(ratings.columns)
    else:
        yield np.arange(ratings.n_users), ratings


class _Thinned:
    """What is left of every piece of a source."""

    def __init__(self, source: Source, leave: Leave) -> None:
        self.user_ids, self.catalogue = source.user_ids, source.catalogue
        self.scale, self.name = source.scale, source.name
        self._source, self._leave = source, leave

    def pieces(self) -> Iterator[Ratings]:
        """Yield the pieces."""
        return (self._leave(piece, positions) for positions, piece in with_positions(self._source))


@dataclass(frozen=True)
class Room:
    """What may be in memory while a method trains.

    Attributes:
        n_threads: how many threads may be at work.
        capacity: how many ratings may be held at once; None for all.
        user_folder: a folder on whose disk user factors are kept; None if they are in memory.
    """

    n_threads: int
    capacity: int | None = None
    user_folder: Path | None = None

    @classmethod
    def for_factors(cls, ratings: StoredRatings, n_factors: int, n_threads: int) -> Room:
        """Share out the memory: factors first, and of what is left half for ratings, for safety.

        User factors that would take more than half of it go to the disk; a strip of them per thread stays, and there
        are no more threads than such strips fit.

        Raises:
            InvalidArgument: not even one thread can work in it.
        """
        memory, blocks, row = ratings.memory, ratings.blocks, 4 * padded(n_factors)
        strip = row * int(np.diff(blocks.layout.strip_starts).max())
        block = blocks.bytes_per_rating * int(np.diff(blocks.pointers).max())
        always = row * ratings.n_items + 4 * (ratings.n_users + ratings.n_items)  # item factors and all biases
        limit = max(memory, _LEAST_MEMORY)
        of_users = row * ratings.n_users
        if of_users <= memory // 2 and always + of_users + block <= limit:
            return cls(n_threads, cls._capacity(ratings, always + of_users))
        if always + strip + block > limit:
            raise _too_little(memory, n_factors, "one strip of users and all items", always + strip + block)
        fitting = _fitting(min(n_threads, blocks.size), always + block, strip, limit, "user factors")
        return cls(fitting, cls._capacity(ratings, always + fitting * strip), ratings.columns.folder)

    @classmethod
    def for_sums(cls, ratings: StoredRatings, n_factors: int, n_threads: int) -> Room:
        """Share out the memory where every thread adds up a number for each factor and bias of an item.

        User factors, which are wanted at the end only, go to the disk as above; there are no more threads than sums
        fit. Pieces of ratings are small, and do not count.

        Raises:
            InvalidArgument: not even one thread can work in it.
        """
        memory, limit = ratings.memory, max(ratings.memory, _LEAST_MEMORY)
        sums = 8 * (n_factors + 1) * ratings.n_items
        always = _BESIDE_SUMS * sums + 4 * (n_factors + 1) * ratings.n_items
        if always + sums > limit:
            raise _too_little(memory, n_factors, "sums for all items", always + sums)
        fitting = _fitting(n_threads, always, sums, limit, "sums")
        on_disk = 4 * n_factors * ratings.n_users > memory // 2
        return cls(fitting, user_folder=ratings.columns.folder if on_disk else None)

    @staticmethod
    def _capacity(ratings: StoredRatings, resident: int) -> int:
        return max((ratings.memory - resident) // 2 // ratings.blocks.bytes_per_rating, 1)


def _fitting(wanted: int, always: int, each: int, limit: int, what: str) -> int:
    """Return how many threads fit that hold so many bytes each beside what is always there; one does."""
    fitting = min((limit - always) // each, wanted)
    if fitting < wanted:
        logger.warning(
            "using %d of %d threads, because each holds %s of %s: allow %s of memory to use all",
            fitting, wanted, _megabytes(each), what, _megabytes(always + wanted * each),
        )  # fmt: skip
    return fitting


def _too_little(memory: int, n_factors: int, what: str, needed: int) -> InvalidArgument:
    return InvalidArgument(
        f"{_megabytes(memory)} of memory is too little for {n_factors} factors: {what} take {_megabytes(needed)}; "
        "allow that much, or use fewer factors"
    )


def _megabytes(count: int) -> str:
    return f"{-(-count // 10**6):,} MB"
