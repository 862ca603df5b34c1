"""Recommendations to everybody, as a table on disk: some thousands of people at a time, so that memory stays bounded.

>>> import tempfile
>>> from dpmf.methods import SGD
>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> model, path = SGD(n_factors=2, n_epochs=1).fit(ratings, n_threads=1), Path(tempfile.mkdtemp()) / "top.parquet"
>>> write_lists(path, model.release, of_ratings(model.release, ratings, n_threads=1), Choice(k=3), n_threads=1)
Written(people=50, rows=150)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument, UnknownId
from dpmf.files import new_file, scratch_folder
from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.model import Model, Release
from dpmf.model.batch import Batch, recommend_many
from dpmf.model.person import fold_in_many
from dpmf.model.selection import NO_FILTERS, Filters, check_k
from dpmf.ratings import Ratings
from dpmf.ratings.formats.database import open_database
from dpmf.ratings.ids import Ids
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import is_store
from dpmf.runs.reading import as_weighed, options_for, read_for
from dpmf.runs.streamed import open_ratings

_PEOPLE_AT_ONCE = 1 << 14
_LEAST_MEMORY = 125 << 20  # below it, DuckDB may refuse to write
_SQL = {"i": "BIGINT", "f": "FLOAT", "O": "VARCHAR"}  # by the kind of a column


class Written(NamedTuple):
    """What is in the table.

    Attributes:
        people: the number of people asked for; those for whom nothing is left have no row.
        rows: the number of recommendations.
    """

    people: int
    rows: int


@dataclass(frozen=True)
class Choice:
    """What is recommended to a person.

    Attributes:
        k: the length of a list, at most.
        filters: what may be in it.
        include_rated: whether items already rated may come up again.
    """

    k: int = 10
    filters: Filters = NO_FILTERS
    include_rated: bool = False


class Some(NamedTuple):
    """Some people, as a model or a fold-in knows them.

    Attributes:
        ids: who they are.
        factors, biases: shapes (n, K) and (n,).
        rated: the items that each has rated, with their weights in the ranking.
    """

    ids: NDArray[Any]
    factors: NDArray[np.float32]
    biases: NDArray[np.float32]
    rated: Csr


def of_model(model: Model, users: Ids) -> Iterator[Some]:
    """Yield users of a model with what was learnt of them."""
    places = np.arange(len(users)) if users is model.user_ids else model.user_ids.encode(users.array).astype(np.int64)
    if (places < 0).any():
        stranger = users[int(np.flatnonzero(places < 0)[0])]
        raise UnknownId(f"user {stranger!r} was not in the training ratings: recommend from the release instead")
    for first in range(0, len(places), _PEOPLE_AT_ONCE):
        some = places[first : first + _PEOPLE_AT_ONCE]
        yield Some(model.user_ids.array[some], model.user_factors[some], model.user_biases[some], model.rated(some))


def of_ratings(release: Release, ratings: Ratings, *, n_threads: int | None = None) -> Iterator[Some]:
    """Yield everybody in ratings, folded in."""
    n_threads = thread_count(n_threads)
    if ratings.catalogue.ids != release.items.ids:
        raise InvalidArgument(
            "the ratings are of another catalogue: give that of the release, or no memory limit for a store"
        )
    for first in range(0, ratings.n_users, _PEOPLE_AT_ONCE):
        indptr = ratings.indptr[first : first + _PEOPLE_AT_ONCE + 1]
        own = slice(indptr[0], indptr[-1])
        items, values = ratings.items[own], ratings.values[own]
        biases, factors = fold_in_many(release, indptr - indptr[0], items, values, n_threads)
        weights = release.weigh(values)
        rated = Csr(indptr - indptr[0], items, np.ones_like(values) if weights is None else weights)
        yield Some(ratings.user_ids.array[first : first + _PEOPLE_AT_ONCE], factors, biases, rated)


@contextmanager
def open_people(
    release: Release, data: str, options: ReadOptions, *, memory: int | None = None, n_threads: int | None = None
) -> Iterator[tuple[int, Iterator[Some]]]:
    """Yield the number of people in data, and everybody folded in.

    Args:
        release: what to fold in to.
        data: a catalogue name, a file or a folder.
        options: how to read the data.
        memory: how many bytes there are; ratings that take more are streamed from disk, in the order of a hash of the
            users. None for no limit.
        n_threads: all CPUs by default.
    """
    if memory is None:
        ratings = read_for(release, data, options)
        yield ratings.n_users, of_ratings(release, ratings, n_threads=n_threads)
        return
    sizes = {"memory": memory, "n_factors": 0}
    with (
        scratch_folder("recommend") as scratch,
        open_ratings(data, **sizes, scratch=scratch, options=_options(release, data, options)) as source,
    ):
        pieces = (source,) if isinstance(source, Ratings) else source.pieces()
        parts = (of_ratings(release, as_weighed(release, data, one), n_threads=n_threads) for one in pieces)
        yield len(source.user_ids), chain.from_iterable(parts)


def _options(release: Release, data: str, options: ReadOptions) -> ReadOptions:
    """Return how to stream data; a store is streamed as it is, so its catalogue has to be that of the release."""
    return options if is_store(data) else options_for(release, options)


def write_lists(
    path: Path,
    release: Release,
    people: Iterable[Some],
    choice: Choice,
    *,
    n_threads: int | None = None,
    memory: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Written:
    """Write the lists of people to a Parquet file that only its owner can read; it is whole or not there.

    Its columns are user, item, rank (from 1) and score, as in `Person.recommend`, and rating if there is one beside the
    score. Rows are in the order of the people, then by rank.

    Args:
        path: the file; an older one is replaced.
        release: what to recommend from.
        people: everybody, some at a time.
        choice: what is recommended.
        n_threads: all CPUs by default.
        memory: how many bytes the table may take before it is spilled to the disk.
        progress: called with the number of people done.
    """
    check_table(path, choice.k)
    done = rows = 0
    with new_file(path, mode=0o600) as temporary, _table(release, memory) as (insert, write):
        for some in people:
            batch = _recommend(release, some, choice, n_threads)
            rows += insert(some.ids, batch)
            done += len(some.ids)
            progress(done)
        write(temporary)
    return Written(done, rows)


def check_table(path: Path, k: int) -> None:
    """Refuse a file that cannot be written, and lists of nothing, before anything is read."""
    check_k(k)
    if path.is_dir():
        raise InvalidArgument(f"{path} is a folder: name a file to write the recommendations to")
    if path.exists() and not path.is_file():  # a device, such as /dev/null, would be replaced
        raise InvalidArgument(f"{path} is not a file: name one to write the recommendations to")
    if not path.parent.is_dir():
        raise InvalidArgument(f"{path} cannot be written: there is no folder {path.parent}")


def _recommend(release: Release, some: Some, choice: Choice, n_threads: int | None) -> Batch:
    seen = some.rated.pattern
    if choice.include_rated:
        seen = CsrPattern(np.zeros(len(some.ids) + 1, np.int64), np.zeros(0, np.int32))
    of_people = some.factors, some.biases, seen.indptr, seen.items
    return recommend_many(release, *of_people, choice.k, rated=some.rated, filters=choice.filters, n_threads=n_threads)


Insert = Callable[[NDArray[Any], Batch], int]
Write = Callable[[Path], None]


@contextmanager
def _table(release: Release, memory: int | None) -> Iterator[tuple[Insert, Write]]:
    """Yield functions that add the lists of some people, returning the number of rows, and that write all of them."""
    with open_database(None if memory is None else f"{max(memory, _LEAST_MEMORY)}B") as connection:
        made = False

        def insert(users: NDArray[Any], batch: Batch) -> int:
            nonlocal made
            columns = replace(batch, users=users).to_columns(titles=False)
            if not made:
                kinds = ", ".join(f'"{name}" {_SQL[column.dtype.kind]}' for name, column in columns.items())
                connection.execute(f"CREATE TABLE lists ({kinds})")
                made = True
            connection.register("added", columns)
            connection.execute("INSERT INTO lists SELECT * FROM added")
            connection.unregister("added")
            return len(columns["rank"])

        def write(path: Path) -> None:
            if not made:
                raise InvalidArgument("there is nobody to recommend to")
            target = str(path).replace("'", "''")
            connection.execute(f"COPY lists TO '{target}' (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)")

        yield insert, write
