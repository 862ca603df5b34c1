"""Ratings that stay on the disk while a method trains on them: their columns, and the block grid made of them.

>>> import tempfile
>>> from dpmf.ratings.pieces import InPieces
>>> from dpmf.ratings.synthetic import make
>>> StoredRatings.build(InPieces(make(50, 40)), Path(tempfile.mkdtemp()) / "store", memory=1 << 20)
StoredRatings(1,101 ratings, 50 users, 40 items, scale 1:5)
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import FILES as BLOCK_FILES
from dpmf.engine.blockfile import BlockFile
from dpmf.engine.factors import padded
from dpmf.errors import DamagedFile, InvalidArgument
from dpmf.files import check_replaceable, new_folder, scratch_file
from dpmf.ratings import Items, Scale
from dpmf.ratings.ids import Ids
from dpmf.ratings.ondisk import FILES as COLUMN_FILES
from dpmf.ratings.ondisk import RatingsOnDisk, Source

logger = logging.getLogger(__name__)

FILES = (*COLUMN_FILES, "blocks")
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
        by_hash, indptr, done = self.user_ids.hash_order, self.columns.indptr, 0
        with scratch_file(self.columns.folder) as file:
            file.truncate(4 * int(indptr[-1]))
            for piece in self.columns.pieces():
                places = indptr[by_hash[done : done + piece.n_users]].tolist()
                starts = piece.indptr.tolist()
                for place, start, end in zip(places, starts[:-1], starts[1:], strict=True):
                    os.pwrite(file.fileno(), piece.items[start:end].data, 4 * place)
                done += piece.n_users
            return indptr, np.memmap(file, np.int32, "r")

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
            raise InvalidArgument(
                f"{_megabytes(memory)} of memory is too little for {n_factors} factors: one strip of users and all "
                f"items take {_megabytes(always + strip + block)}; allow that much, or use fewer factors"
            )
        most = min(n_threads, blocks.size)
        fitting = min((limit - always - block) // strip, most)
        if fitting < most:
            logger.warning(
                "using %d of %d threads, because each holds %s of user factors: allow %s of memory to use all",
                fitting, most, _megabytes(strip), _megabytes(always + most * strip + block),
            )  # fmt: skip
        return cls(fitting, cls._capacity(ratings, always + fitting * strip), ratings.columns.folder)

    @staticmethod
    def _capacity(ratings: StoredRatings, resident: int) -> int:
        return max((ratings.memory - resident) // 2 // ratings.blocks.bytes_per_rating, 1)


def _megabytes(count: int) -> str:
    return f"{-(-count // 10**6):,} MB"
