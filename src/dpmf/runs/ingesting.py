"""A block store written by the workers of a cluster, from Parquet files that no machine has room for.

Whoever leads the run sees ids, counts and checksums; ratings go from worker to worker, by files on a disk that they
share. The store is that of one machine with enough memory, byte for byte.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate, pairwise
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import Tally, bytes_of_rating
from dpmf.engine.blockfile import complete as complete_blocks
from dpmf.engine.cluster import Ray, Team
from dpmf.engine.layout import equal_masses
from dpmf.engine.ray_connect import write_rows
from dpmf.engine.store import FILES, StoredRatings, check_store_replaceable
from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.files import new_folder
from dpmf.ratings import Items, Scale
from dpmf.ratings.formats.parquet import rows_before
from dpmf.ratings.ids import Ids
from dpmf.ratings.location import Location, locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import COLUMNS, small_parts
from dpmf.ratings.store.columns import complete as complete_columns
from dpmf.ratings.store.external import NO_RATINGS, warn_of
from dpmf.ratings.store.pieces import USERS_PER_PIECE
from dpmf.runs.ingest_steps import Ingester, Known, Surveyed
from dpmf.temporary import claimed_folder

_MEMORY = 2 << 30  # bytes of a worker, unless given


def ingest(
    data: Any,
    folder: str | Path,
    *,
    executor: Ray,
    scale: Scale | tuple[float, float] | None = None,
    items: Items | str | Path | None = None,
    columns: Mapping[str, str | int | None] | None = None,
    users_about: int | None = None,
    size: int | None = None,
    memory: int | None = None,
) -> StoredRatings:
    """Write a block store on a cluster, whose workers read and sort the ratings together, and open it.

    Args:
        data: a Parquet file, a folder of such files or a pattern, on a disk that all nodes share; or a Ray Dataset,
            which is written to such files beside the store first, and these are removed at the end.
        folder: to write, on such a disk, too; a store that is there is replaced.
        executor: the cluster; that of a Dataset is "auto".
        scale, items, columns, users_about: as those of `Ratings.read`. The scale has to be given, except of counts.
        size, memory: as those of `ingest_on`.
    """
    folder = Path(folder).absolute()
    options = ReadOptions(
        scale=None if scale is None else Scale.of(scale), items=items, columns=columns, users_about=users_about
    )
    if isinstance(data, str | Path):
        return ingest_on(executor, locate(data, options), folder, size=size, memory=memory)
    if not callable(getattr(data, "write_parquet", None)):
        raise InvalidArgument(
            f"cannot ingest a {type(data).__name__} on a cluster: give a Ray Dataset, or the path of Parquet files"
        )
    executor.check()
    check_store_replaceable(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with claimed_folder(folder.parent, f".{folder.name}-rows.") as rows:
        try:
            write_rows(data, rows)
            if not list(rows.glob("*.parquet")):
                raise InvalidRatings(
                    f"the Dataset has no rows, or {rows.parent} is not on a disk that all nodes share: choose another "
                    "folder"
                )
            location = replace(locate(rows, options), name=folder.name)
            return ingest_on(executor, location, folder, size=size, memory=memory)
        finally:
            shutil.rmtree(rows, ignore_errors=True)


def ingest_on(
    executor: Ray,
    location: Location,
    folder: Path,
    *,
    size: int | None = None,
    memory: int | None = None,
) -> StoredRatings:
    """Write a block store.

    Args:
        executor: the cluster.
        location: Parquet files, on a disk that all nodes share.
        folder: to write, on such a disk, too; a store that is there is replaced.
        size: the number of strips and tiers; chosen from the number of ratings unless given.
        memory: bytes that each worker may use, roughly; 2 GB by default.
    """
    executor.check()
    if location.format.name != "parquet":
        raise InvalidArgument(
            f"a cluster ingests Parquet files, and {location.name} is of the {location.format.name} format: ingest it "
            "on one machine"
        )
    check_store_replaceable(folder)
    catalogue, options = location.read_items(), replace(location.options, items=None)
    paths = [path.absolute() for path in location.paths]
    starts = rows_before(paths)
    with (
        new_folder(folder.absolute(), may_replace=FILES, mode=0o700) as work,
        executor.start() as cluster,
    ):
        scratch = work / "parts"
        scratch.mkdir()
        dealt = equal_masses(np.array([path.stat().st_size for path in paths]), cluster.n_workers).tolist()
        arguments = [
            (number, paths[first:last], starts[first:last], options, memory or _MEMORY)
            for number, (first, last) in enumerate(pairwise(dealt))
        ]
        with cluster.team(Ingester, arguments) as team:
            _write(team, work, scratch, cluster.n_workers, location, catalogue, size)
        shutil.rmtree(scratch)
    return StoredRatings.open(folder)


def _write(
    team: Team, work: Path, scratch: Path, n_workers: int, location: Location, catalogue: Items | None, size: int | None
) -> None:
    """Let the workers write columns and blocks, and describe them."""
    surveyed = [one for one in _each(team, "survey") if one is not None]
    known = _known(surveyed, location, catalogue, n_workers)
    warn_of(sum(_each(team, "scatter", known, scratch)))
    tallies: list[Tally] = _each(team, "gather", known, scratch, n_workers)
    tally = reduce(add, tallies)
    if not tally.item_counts.any():
        raise InvalidRatings(NO_RATINGS)
    layout, ends = tally.layout(known.user_ids, size), np.concatenate([[0], np.cumsum(tally.user_counts)])

    for name in known.columns:
        _allocate(work / f"{name}.bin", int(ends[-1]) * COLUMNS[name].itemsize)
    _each(team, "place", known, scratch, work, ends[known.starts].tolist())
    pieces = _piece_starts(tally.user_counts)
    places = ends[pieces].tolist()
    bounds = np.linspace(0, len(places) - 1, n_workers + 1).astype(int).tolist()
    shares = [places[first : last + 1] for first, last in pairwise(bounds)]
    checksums = [one for part in _each(team, "checksums", known, work, shares) for one in part]
    complete_columns(work, known, tally.user_counts, pieces, checksums, known.timed)

    (work / "blocks").mkdir(mode=0o700)
    width = bytes_of_rating(layout, tally.table)
    _allocate(work / "blocks" / "blocks.bin", int(ends[-1]) * width)
    strips = equal_masses(np.ones(layout.size, np.int64), n_workers).tolist()
    offsets = (ends[layout.strip_starts] * width).tolist()
    made = [one for part in _each(team, "blocks", work, layout, tally.table, strips, offsets) for one in part]
    pointers = np.array([0, *accumulate(count for counts, _ in made for count in counts)], np.int64)
    of_blocks = [one for _, found in made for one in found]
    complete_blocks(work / "blocks", layout, tally, known.user_ids, pointers, of_blocks)


def _each(team: Team, step: str, *arguments: Any) -> list[Any]:
    """Let all workers take a step, and return their results in the order of their numbers."""
    return [result for _, result in sorted(team.ask("step", step, *arguments), key=lambda one: one[0])]


def _known(surveyed: Sequence[Surveyed], location: Location, catalogue: Items | None, n_workers: int) -> Known:
    """Return what is known once all files were looked at; refuse files that are not alike."""
    first = surveyed[0]
    for other in surveyed[1:]:
        if (other.kinds, other.counts) != (first.kinds, first.counts):
            raise InvalidRatings("the files are not alike: all should have the same columns, of the same types")
        if other.timed != first.timed:
            raise InvalidRatings("some ratings have timestamps and others have none: leave them out")
    users, items = (_distinct([getattr(one, role) for one in surveyed]) for role in ("users", "items"))
    scale = location.options.scale
    return Known(
        user_ids=users,
        catalogue=Items.of(items, declared=False) if catalogue is None else catalogue,
        scale=Scale.of_counts(scale) if scale is None or first.counts else scale,
        name=location.name,
        users_about=location.options.users_about,
        timed=first.timed,
        starts=np.linspace(0, len(users), n_workers + 1).astype(int).tolist(),
    )


def _distinct(found: Sequence[NDArray[Any]]) -> Ids:
    together = np.concatenate(found)
    if together.dtype.kind == "i":
        return Ids(np.unique(together))
    return Ids(np.array(sorted(set(together.tolist())), object))


def _piece_starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first user of each piece that one machine with enough memory writes, and the end."""
    found = [0]
    for first in range(0, len(counts), USERS_PER_PIECE):
        indptr = np.concatenate([[0], np.cumsum(counts[first : first + USERS_PER_PIECE])])
        found += [first + one for one in small_parts(indptr)[1:]]
    return np.array(found)


def _allocate(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)
