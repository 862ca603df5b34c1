"""Shares of a store: whose ratings each worker of a cluster reads, by itself, from a disk that all of them can read.

>>> import tempfile
>>> from dpmf.engine.store import StoredRatings
>>> from dpmf.ratings.store.pieces import MemorySource
>>> from dpmf.ratings.synthetic import make
>>> store = StoredRatings.build(MemorySource(make(50, 40)), Path(tempfile.mkdtemp()) / "store")
>>> shares = shares_of(store, 2)
>>> shares[0].last == shares[1].first, sum(len(share.read()) for share in shares) == len(store)
(True, True)
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.grid import checksum_of
from dpmf.engine.layout import equal_masses
from dpmf.engine.store import StoredRatings
from dpmf.errors import DamagedFile, DpmfError
from dpmf.ratings import Ratings
from dpmf.ratings.ids import Ids
from dpmf.ratings.store.columns import RatingsOnDisk, is_store


@dataclass(frozen=True)
class Share:
    """Consecutive users of a store.

    Attributes:
        folder: of the store, on every machine.
        fingerprint: of its ratings.
        first, last: users first..last-1 in the order of `Ids.hash_order`.
    """

    folder: Path
    fingerprint: str
    first: int
    last: int

    def read(self, *, with_times: bool = False) -> Ratings:
        """Return the ratings of these users, in that order; with timestamps, which nothing that trains looks at."""
        columns = open_there(self.folder, self.fingerprint)
        parts = list(columns.between(self.first, self.last))
        counts, times = columns.counts[self.first : self.last], None
        if with_times and columns.has_times:
            found = [part.timestamps for part in parts if part.timestamps is not None]
            times = np.concatenate([np.zeros(0, np.int64), *found])
        users = Ids(columns.user_ids.array[columns.user_ids.hash_order[self.first : self.last]])
        return Ratings(
            indptr=np.concatenate([[0], np.cumsum(counts)]),
            items=np.concatenate([np.zeros(0, np.int32), *(part.items for part in parts)]),
            values=np.concatenate([np.zeros(0, np.float32), *(part.values for part in parts)]),
            timestamps=times,
            user_ids=users,
            catalogue=columns.catalogue,
            scale=columns.scale,
            name=columns.name,
            users_about=columns.users_about,
        )


def shares_of(store: StoredRatings, n_workers: int) -> list[Share]:
    """Return the shares of workers, with about the same number of ratings each; some may be empty."""
    columns = store.columns
    whole = Share(columns.folder.absolute(), fingerprint_of(columns), 0, len(columns.user_ids))
    starts = equal_masses(columns.counts + 1, n_workers).tolist()
    return [replace(whole, first=first, last=last) for first, last in pairwise(starts)]


def positions_in(store: StoredRatings, share: Share) -> NDArray[np.int64]:
    """Return the positions of a share's users among all."""
    return store.user_ids.hash_order[share.first : share.last]


def fingerprint_of(columns: RatingsOnDisk) -> str:
    """Return a checksum of checksums, by which a worker recognises the store."""
    return f"{checksum_of((columns.counts, columns.piece_starts, columns.checksums)):08x}"


def open_there(folder: Path, fingerprint: str) -> RatingsOnDisk:
    """Open a store on a worker's machine, or say what is wrong with it there."""
    check_there(folder, is_store(folder))
    columns = RatingsOnDisk.open(folder)
    check_same(folder, fingerprint_of(columns), fingerprint)
    return columns


def check_there(folder: Path, is_there: bool) -> None:
    """Refuse a folder of a store that this worker cannot see."""
    if not is_there:
        raise DpmfError(
            f"{folder} is not on {platform.node()}: put the store on a disk that all nodes share, or copy it to the "
            "same path on each"
        )


def check_same(folder: Path, found: str, expected: str) -> None:
    """Refuse a folder that holds something else on this worker, by fingerprints."""
    if found != expected:
        raise DamagedFile(f"{folder} holds other ratings on {platform.node()} than here: copy the store there again")
