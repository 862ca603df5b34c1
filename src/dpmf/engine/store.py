"""The store of ratings that stay on disk while a method trains: their columns and their block grid.

>>> import tempfile
>>> from dpmf.ratings.store.pieces import MemorySource
>>> from dpmf.ratings.synthetic import make
>>> StoredRatings.build(MemorySource(make(50, 40)), Path(tempfile.mkdtemp()) / "store", memory=1 << 20)
StoredRatings(1,101 ratings, 50 users, 40 items, scale 1:5)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import FILES as BLOCK_FILES
from dpmf.engine.blockfile import BlockFile
from dpmf.errors import DamagedFile
from dpmf.files import check_replaceable, new_folder, scratch_file, scratch_folder, write_at
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.ids import Ids
from dpmf.ratings.store.columns import FILES as COLUMN_FILES
from dpmf.ratings.store.columns import RatingsOnDisk, Source, with_positions

FILES = (*COLUMN_FILES, "blocks")
Leave = Callable[[Ratings, NDArray[np.int64]], Ratings]
Four = TypeVar("Four", np.int32, np.float32)


def check_store_replaceable(folder: Path, replace: bool = True) -> None:
    """Raise `InvalidArgument` unless a store can be written to a folder: a new one, or one that holds only a store."""
    check_replaceable(folder, FILES if replace else ())
    check_replaceable(folder / "blocks", BLOCK_FILES)


@dataclass(frozen=True, eq=False, repr=False)
class StoredRatings:
    """Ratings on disk, in blocks.

    Attributes:
        columns: the ratings by user.
        blocks: the ratings by block.
        memory: the number of bytes that training may use for factors and blocks together.
    """

    columns: RatingsOnDisk
    blocks: BlockFile
    memory: int

    @classmethod
    def build(cls, source: Source, folder: Path, *, memory: int = 0, size: int | None = None) -> StoredRatings:
        """Write ratings that come in pieces to a folder, readable by its owner only, atomically.

        Args:
            source: the ratings.
            folder: to write.
            memory: see the class.
            size: the number of strips and tiers; chosen from the number of ratings unless given.
        """
        check_store_replaceable(folder)
        with new_folder(folder, may_replace=FILES, mode=0o700) as work:
            columns = RatingsOnDisk.write(source, work)
            BlockFile.build(columns.pieces, columns.user_ids, len(columns.catalogue), work / "blocks", size=size)
        return cls.open(folder, memory=memory)

    @classmethod
    def open(cls, folder: Path | str, *, memory: int = 0) -> StoredRatings:
        """Open a store that `build` wrote; takes milliseconds, because no rating is read."""
        folder = Path(folder)
        columns, blocks = RatingsOnDisk.open(folder), BlockFile.open(folder / "blocks")
        sizes = len(columns), len(columns.user_ids), len(columns.catalogue)
        if sizes != (len(blocks), len(blocks.user_counts), len(blocks.item_counts)):
            raise DamagedFile(f"{folder / 'blocks'} was made from other ratings: ingest the data again")
        return cls(columns, blocks, memory)

    def seen(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the items each user has rated, as in `Ratings`: pointers, and items mapped from disk."""
        return self.columns.indptr, self.gathered(lambda piece: piece.items, np.int32)

    def gathered(self, column: Callable[[Ratings], NDArray[Any]], dtype: type[Four]) -> NDArray[Four]:
        """Return a column of all ratings in the order of `seen`, mapped from disk.

        Args:
            column: of a piece, a number of four bytes per rating.
            dtype: of these numbers.
        """
        indptr = self.columns.indptr
        with scratch_file(self.columns.folder) as file:
            file.truncate(4 * int(indptr[-1]))
            for positions, piece in with_positions(self.columns):
                places = indptr[positions].tolist()
                starts, numbers = piece.indptr.tolist(), column(piece)
                for place, start, end in zip(places, starts[:-1], starts[1:], strict=True):
                    write_at(file.fileno(), numbers[start:end].data.cast("B"), 4 * place)
            return np.memmap(file, dtype, "r")

    @contextlib.contextmanager
    def thinned(self, leave: Leave) -> Iterator[StoredRatings]:
        """Yield a store of fewer ratings, in a folder that is readable by its owner only and removed at the end.

        Args:
            leave: returns the remaining ratings of a piece, with the same users; it gets their positions among all.
        """
        with scratch_folder("train") as folder:
            yield StoredRatings.build(_Thinned(self.columns, leave), folder / "store", memory=self.memory)

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
        """The name of the data set."""
        return self.columns.name

    @property
    def users_about(self) -> int | None:
        """About how many users there are, if that was declared."""
        return self.columns.users_about

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


def counts_of(ratings: AnyRatings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ratings per user and per item."""
    if isinstance(ratings, StoredRatings):
        return ratings.blocks.user_counts, ratings.blocks.item_counts
    return np.diff(ratings.indptr), np.bincount(ratings.items, minlength=ratings.n_items)


def parts_of(ratings: AnyRatings) -> Iterator[tuple[NDArray[np.int64], Ratings]]:
    """Yield ratings in parts that fit in memory, with the positions of their users; those in memory are one part."""
    if isinstance(ratings, StoredRatings):
        yield from with_positions(ratings.columns)
    else:
        yield np.arange(ratings.n_users), ratings


class _Thinned:
    """A source with the remaining ratings of every piece of another."""

    def __init__(self, source: Source, leave: Leave) -> None:
        self.user_ids, self.catalogue = source.user_ids, source.catalogue
        self.scale, self.name, self.users_about = source.scale, source.name, source.users_about
        self._source, self._leave = source, leave

    def pieces(self) -> Iterator[Ratings]:
        """Yield the pieces."""
        return (self._leave(piece, positions) for positions, piece in with_positions(self._source))
