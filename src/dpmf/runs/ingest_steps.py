"""What a worker of a cluster does to write a block store: each step can be done again, with the same result.

A worker reads some Parquet files, and writes each row to a file for the worker to whom its user belongs (`scatter`);
sorts the rows of its own users (`gather`); copies their columns to their place in the store (`place`); and makes the
blocks of some strips (`blocks`). Between steps everything is on a disk that all workers share.
"""

from __future__ import annotations

import os
import platform
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.blockfile import Tally, strips_of
from dpmf.engine.layout import Layout
from dpmf.errors import DpmfError, InvalidArgument
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.formats.database import open_database
from dpmf.ratings.formats.parquet import scan_files
from dpmf.ratings.formats.relation import Relation, check_ids
from dpmf.ratings.ids import Ids
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import COLUMNS, RatingsOnDisk, checksum_of_piece, columns_of
from dpmf.ratings.store.external import (
    BYTES_PER_RATING,
    SMALLEST_LIMIT,
    ExternalRatings,
    check_values,
    distinct_ids,
    moment_of,
    place_rows,
)

_CHUNK = 1 << 24


class Surveyed(NamedTuple):
    """What is in a worker's files.

    Attributes:
        users, items: the distinct ids.
        kinds: the types of the columns.
        counts: whether they are counts, not ratings.
        timed: whether rows have times.
    """

    users: NDArray[Any]
    items: NDArray[Any]
    kinds: dict[str, str]
    counts: bool
    timed: bool


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the whole before it is sorted.

    Attributes:
        user_ids, catalogue, scale, name, users_about: as in `Ratings`.
        timed: whether ratings have times.
        starts: the first user of each worker in the order of the hash, and the end.
    """

    user_ids: Ids
    catalogue: Items
    scale: Scale
    name: str
    users_about: int | None
    timed: bool
    starts: Sequence[int]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are stored."""
        return ("items", "values", "times") if self.timed else ("items", "values")


@dataclass(frozen=True, eq=False)
class Ingester:
    """A worker.

    Attributes:
        number: of the worker.
        paths: the files that it reads.
        starts: the number of the first row of each.
        options: how to read them.
        memory: bytes that it may use, roughly.
    """

    number: int
    paths: Sequence[Path]
    starts: Sequence[int]
    options: ReadOptions
    memory: int

    def step(self, name: str, *arguments: Any) -> tuple[int, Any]:
        """Take a step, and return the worker's number and what the step returns."""
        return self.number, getattr(self, name)(*arguments)

    def survey(self) -> Surveyed | None:
        """Check the worker's files, and return what is in them; None if it has none."""
        missing = next((path for path in self.paths if not path.is_file()), None)
        if missing is not None:
            raise DpmfError(f"{missing} is not on {platform.node()}: keep the ratings on a disk that all nodes share")
        if not self.paths:
            return None
        with self._scan() as relation:
            kinds = relation.kinds()
            for role in ("user", "item"):
                check_ids(relation, role)
            scale = Scale.of_counts(self.options.scale) if relation.counts else self.options.scale
            if scale is None:
                raise InvalidArgument("a cluster needs to know the rating scale beforehand: give scale=(1, 5), say")
            check_values(relation, scale, self.options.missing)
            users, items = (distinct_ids(relation, role, kinds[role]).ids.array for role in ("user", "item"))
            timed = moment_of(relation, kinds.get("timestamp")) is not None
        return Surveyed(users, items, kinds, relation.counts, timed)

    def scatter(self, known: Known, scratch: Path) -> int:
        """Write the worker's rows to a file for each worker that will sort them; return how many were left out."""
        check_shared(scratch)
        if not self.paths:
            return 0
        with self._scan() as relation:
            kinds = relation.kinds()
            user, item = (distinct_ids(relation, role, kinds[role]) for role in ("user", "item"))
            moment = moment_of(relation, kinds.get("timestamp")) if known.timed else None
            placed = place_rows(relation, user, item, known.user_ids, known.catalogue, moment, self.options.missing)
            connection = relation.connection
            connection.execute(f"CREATE TEMP TABLE placed AS {placed.sql}", dict(relation.parameters))
            for number, (first, last) in enumerate(pairwise(known.starts)):
                target = str(_scattered(scratch, self.number, number)).replace("'", "''")
                connection.execute(
                    f"COPY (SELECT * FROM placed WHERE place >= {first} AND place < {last}) TO '{target}' "
                    "(FORMAT parquet, COMPRESSION zstd)"
                )
        return placed.left_out

    def gather(self, known: Known, scratch: Path, n_workers: int) -> Tally:
        """Sort the rows of the worker's users, and write their columns to the scratch folder; return their tally."""
        first, last = known.starts[self.number], known.starts[self.number + 1]
        sources = [_scattered(scratch, number, self.number) for number in range(n_workers)]
        found = [str(path) for path in sources if path.is_file()]
        with open_database(self._limit) as connection:
            connection.execute(
                "CREATE TABLE sorted AS SELECT * EXCLUDE (row) FROM read_parquet($path) ORDER BY place, item, row",
                {"path": found},
            )
            n_rows = connection.execute("SELECT count(*) FROM sorted").fetchall()[0][0]
            source = ExternalRatings(
                user_ids=known.user_ids,
                catalogue=known.catalogue,
                scale=known.scale,
                name=known.name,
                n_rows=n_rows,
                _connection=connection,
                _rows_per_piece=max(self.memory // 5 // BYTES_PER_RATING, 1000),
                _duplicates=self.options.duplicates,
                _with_time=known.timed,
            )
            pieces = self._written(source.between(first, last), known, scratch)
            return replace(Tally.of(pieces, len(known.catalogue)), scale=known.scale)

    def place(self, known: Known, scratch: Path, store: Path, offsets: Sequence[int]) -> None:
        """Copy the worker's columns to their place in those of the store: after so many ratings, for each worker."""
        for name in known.columns:
            with (
                self._column(scratch, name).open("rb") as source,
                (store / f"{name}.bin").open("rb+") as target,
            ):
                target.seek(offsets[self.number] * COLUMNS[name].itemsize)
                shutil.copyfileobj(source, target, _CHUNK)
                target.flush()
                os.fsync(target.fileno())

    def checksums(self, known: Known, store: Path, places: Sequence[Sequence[int]]) -> list[int]:
        """Return the checksums of the worker's pieces.

        Args:
            known: of the whole.
            store: a folder with the columns.
            places: where the pieces of each worker begin, in ratings, and the end.
        """
        found = []
        for first, last in pairwise(places[self.number]):
            columns = (
                np.fromfile(store / f"{name}.bin", COLUMNS[name], last - first, offset=first * COLUMNS[name].itemsize)
                for name in known.columns
            )
            found.append(checksum_of_piece(columns))
        return found

    def blocks(
        self, store: Path, layout: Layout, table: NDArray[np.float32], strips: Sequence[int], offsets: Sequence[int]
    ) -> list[tuple[list[int], list[int]]]:
        """Write the blocks of the worker's strips; return their sizes and checksums, strip by strip.

        Args:
            store: a folder with the columns and what describes them.
            layout, table: of the blocks.
            strips: the first strip of each worker, and the end.
            offsets: where each strip begins among the blocks, in bytes.
        """
        first, last = strips[self.number], strips[self.number + 1]
        starts, found = layout.strip_starts, []
        pieces = RatingsOnDisk.open(store).between(int(starts[first]), int(starts[last]))
        with (store / "blocks" / "blocks.bin").open("rb+") as file:
            file.seek(offsets[first])
            for contents, counts in strips_of(layout, table, pieces, first, last):
                for content in contents:
                    file.write(content)
                found.append((counts, [zlib.crc32(content) for content in contents]))
            file.flush()
            os.fsync(file.fileno())
        return found

    def _written(self, pieces: Iterable[Ratings], known: Known, scratch: Path) -> Iterator[Ratings]:
        """Write the columns of pieces as they pass."""
        with ExitStack() as stack:
            files = {name: stack.enter_context(self._column(scratch, name).open("wb")) for name in known.columns}
            for piece in pieces:
                for name, column in columns_of(piece).items():
                    files[name].write(column.data)
                yield piece

    def _column(self, scratch: Path, name: str) -> Path:
        return scratch / f"column-{self.number:05d}.{name}"

    @property
    def _limit(self) -> str:
        return f"{max(self.memory * 2 // 5, SMALLEST_LIMIT)}B"

    def _scan(self) -> AbstractContextManager[Relation]:
        return scan_files(self.paths, self.options, self._limit, self.starts)


def check_shared(folder: Path) -> None:
    """Refuse a folder of the store that this worker cannot see."""
    if not folder.is_dir():
        raise DpmfError(f"{folder.parent.parent} is not on {platform.node()}: write to a disk that all nodes share")


def _scattered(scratch: Path, source: int, target: int) -> Path:
    return scratch / f"rows-{source:05d}-{target:05d}.parquet"
