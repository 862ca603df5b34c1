"""Ratings that stay on the disk while a method trains on them.

>>> import tempfile
>>> from dpmf.ratings.pieces import pieces_of
>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> facts = ratings.user_ids, ratings.catalogue, ratings.scale
>>> stored = StoredRatings.build(lambda: pieces_of(ratings), *facts, Path(tempfile.mkdtemp()) / "store", memory=1 << 20)
>>> stored
StoredRatings(1,101 ratings, 50 users, 40 items, scale 1:5)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import BlockFile, Pieces
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.ids import Ids


@dataclass(frozen=True, eq=False, repr=False)
class StoredRatings:
    """Ratings on disk, in blocks.

    Attributes:
        blocks: the ratings.
        user_ids, catalogue, scale: as in `Ratings`.
        memory: how many bytes training may use for factors and blocks together.
        name: what to call the data set in reports.
    """

    blocks: BlockFile
    user_ids: Ids
    catalogue: Items
    scale: Scale
    memory: int
    name: str = ""

    @classmethod
    def build(
        cls, pieces: Pieces, user_ids: Ids, catalogue: Items, scale: Scale, folder: Path, *, memory: int, name: str = ""
    ) -> StoredRatings:
        """Write ratings that come in pieces to a folder, readable by its owner only; see `BlockFile.build`."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The first of the two passes also writes down who rated what, for recommendations later on.
        passes = iter((lambda: _recorded(pieces(), folder / "seen.bin"), pieces))
        blocks = BlockFile.build(lambda: next(passes)(), user_ids, len(catalogue), folder / "blocks")
        return cls(blocks, user_ids, catalogue, scale, memory, name)

    def capacity(self, factor_bytes: int) -> int:
        """Return how many ratings may be held beside so many bytes of factors: half of what is left, for safety."""
        return max((self.memory - factor_bytes) // 2 // self.blocks.bytes_per_rating, 1)

    def seen(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return which items each user has rated, as in `Ratings`: pointers, and items mapped from the disk."""
        indptr = np.concatenate([[0], np.cumsum(self.blocks.user_counts)])
        by_hash = self.user_ids.hash_order
        starts = np.empty(len(by_hash), np.int64)
        starts[by_hash] = np.concatenate([[0], np.cumsum(self.blocks.user_counts[by_hash])[:-1]])
        source = os.open(self.blocks.folder.parent / "seen.bin", os.O_RDONLY)
        target = self.blocks.folder.parent / "seen-in-order.bin"
        try:
            with target.open("wb", buffering=1 << 20) as file:
                for start, count in zip(starts.tolist(), self.blocks.user_counts.tolist(), strict=True):
                    file.write(os.pread(source, 4 * count, 4 * start))
        finally:
            os.close(source)
        return indptr, np.memmap(target, np.int32, "r")

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


def _recorded(pieces: Iterable[Ratings], path: Path) -> Iterator[Ratings]:
    """Pass pieces on, and write the items of their ratings to a file."""
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece.items.tobytes())
            yield piece
