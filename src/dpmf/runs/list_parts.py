"""Recommendations to everybody, by the workers of a cluster: a folder of tables, each written where its people live.

Each table is of users that follow each other in the store, a few hundred thousand at most, so that memory stays
bounded. Nobody's ratings, factors or lists come to whoever asks for them.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from dpmf.engine.cluster import Ray
from dpmf.engine.shares import Share, shares_of
from dpmf.engine.store import StoredRatings
from dpmf.errors import DpmfError, InvalidArgument
from dpmf.files import check_replaceable, new_folder
from dpmf.model import Release
from dpmf.model.own import as_weighed
from dpmf.model.selection import check_k
from dpmf.runs.recommending import Choice, Written, of_ratings, write_lists

_PEOPLE_PER_TABLE, _RATINGS_PER_TABLE = 1 << 18, 1 << 26


@dataclass(frozen=True, eq=False)
class Writer:
    """A worker's users, those of a table at a time.

    Attributes:
        shares: the users of each table, by its name.
        release: what to recommend from.
        choice: what is recommended.
        n_threads: how many threads to use.
    """

    shares: dict[str, Share]
    release: Release
    choice: Choice
    n_threads: int

    def write(self, folder: Path) -> dict[str, Written]:
        """Write the tables to a folder, and return what is in each."""
        if not folder.is_dir():
            raise DpmfError(f"{folder.parent} is not on {platform.node()}: write to a disk that all nodes share")
        written = {}
        for name, share in self.shares.items():
            ratings = as_weighed(self.release, str(share.folder), share.read())
            people = of_ratings(self.release, ratings, n_threads=self.n_threads)
            written[name] = write_lists(folder / name, self.release, people, self.choice, n_threads=self.n_threads)
        return written


def write_lists_on(
    executor: Ray,
    store: StoredRatings,
    release: Release,
    folder: Path,
    choice: Choice,
    *,
    n_threads: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Written:
    """Write the lists of everybody in a store to a folder of Parquet files; it is whole or not there.

    Rows are as in `write_lists`, users in the order of the store: that of a hash of their ids.

    Args:
        executor: the cluster.
        store: everybody's ratings, in a catalogue that is the release's.
        release: what to recommend from; people are folded in.
        folder: a new one, on a disk that all nodes share; only its owner can read it.
        choice: what is recommended.
        n_threads: of each worker.
        progress: called with the number of people done.
    """
    executor.check()
    check_k(choice.k)
    check_replaceable(folder, ())
    if not np.array_equal(store.catalogue.ids.keys, release.items.ids.keys):
        raise InvalidArgument(
            "the store has another catalogue than the release: ingest the ratings again, with the items of the release"
        )
    with new_folder(folder.absolute(), mode=0o700) as work, executor.start(n_threads) as cluster:
        dealt = _dealt(store, cluster.n_workers)
        arguments = [(shares, release, choice, cluster.n_threads) for shares in dealt]
        found: dict[str, Written] = {}
        with cluster.team(Writer, arguments) as team:
            for written in team.ask("write", work):
                found |= written
                progress(sum(one.people for one in found.values()))
        for path in work.iterdir():
            if path.name not in found:  # left by a worker that was lost
                path.unlink()
        if missing := [name for name in sorted(found) if not (work / name).is_file()]:
            raise DpmfError(
                f"{folder} is not the same folder everywhere, {missing[0]} was written elsewhere: write to a disk that "
                "all nodes share"
            )
    return Written(sum(one.people for one in found.values()), sum(one.rows for one in found.values()))


def _dealt(store: StoredRatings, n_workers: int) -> Sequence[dict[str, Share]]:
    """Return the tables of each worker."""
    n_tables = max(-(-store.n_users // _PEOPLE_PER_TABLE), -(-len(store) // _RATINGS_PER_TABLE), n_workers)
    tables = [one for one in shares_of(store, n_tables) if one.last > one.first]
    named = [(f"part-{number:05d}.parquet", share) for number, share in enumerate(tables)]
    bounds = np.linspace(0, len(named), n_workers + 1).astype(int).tolist()
    return [dict(named[first:last]) for first, last in pairwise(bounds)]
