"""Ratings that are too large for memory: where they come from, and how they are split and laid out on disk.

>>> import tempfile
>>> from dpmf.methods import SGD
>>> from dpmf.ratings.store.pieces import InPieces
>>> from dpmf.ratings.synthetic import make
>>> from dpmf.runs.training import Arguments, train_on
>>> source, scratch = InPieces(make(60, 40)), Path(tempfile.mkdtemp())
>>> parts = prepare(source, Split(holdout=0.2), memory=1000, scratch=scratch)
>>> run = train_on(SGD(n_factors=4, n_epochs=2), parts, Arguments(n_threads=1))
>>> run.streamed, run.accuracy["rmse"] > 0
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import padded
from dpmf.engine.stored import StoredRatings
from dpmf.evaluation.accuracy import own_means
from dpmf.kernels.sort import row_pointers
from dpmf.ratings import Ratings
from dpmf.ratings.location import Located, located
from dpmf.ratings.reader import refuse_options
from dpmf.ratings.store.columns import RatingsOnDisk, Source, is_store, with_positions
from dpmf.ratings.store.external import external_ratings
from dpmf.ratings.store.pieces import InPieces
from dpmf.runs.parts import Split, StoredParts

_BYTES_PER_RATING = 40  # while ratings are read, split and laid out in memory
_BYTES_PER_LINE = 6  # of a text file, at least
_PACKING = 10  # how much smaller a packed text file may be


@contextmanager
def streaming_source(
    data: str, *, memory: int, n_factors: int, scratch: Path, **options: Any
) -> Iterator[Source | Ratings]:
    """Yield a source of ratings to stream if they, or the factors to learn, do not fit in memory; else the ratings.

    Args:
        data: a catalogue name, a file or a folder.
        memory: how many bytes there are.
        n_factors: K.
        scratch: a folder for sorting.
        options: as in `dpmf.ratings.reader.read`.
    """
    store = RatingsOnDisk.open(Path(data)) if is_store(data) else None
    if store is not None:
        sizes = len(store), len(store.user_ids), len(store.catalogue)
        if _bytes_in_memory(*sizes, n_factors) > memory:
            refuse_options(options)
            yield store
            return
    elif data != "synthetic" or Path(data).exists():
        found = located(data, **{name: value for name, value in options.items() if name != "duplicates"})
        if _rows_about(found) * _BYTES_PER_RATING > memory:
            with external_ratings(data, scratch=scratch, memory=memory, **options) as source:
                yield source
            return
    ratings = Ratings.read(data, **options)
    fits = _bytes_in_memory(len(ratings), ratings.n_users, ratings.n_items, n_factors) <= memory
    yield ratings if fits else InPieces(ratings)


def _bytes_in_memory(n_ratings: int, n_users: int, n_items: int, n_factors: int) -> int:
    """Return what training in memory takes: factors stand there twice when they are handed over at the end."""
    return n_ratings * _BYTES_PER_RATING + 2 * 4 * padded(n_factors) * (n_users + n_items)


def _rows_about(found: Located) -> int:
    """Return how many ratings there are, or for text about how many at most."""
    if found.format != "parquet":
        packed = _PACKING if found.paths[0].suffix.lower() == ".gz" else 1
        return sum(path.stat().st_size for path in found.paths) * packed // _BYTES_PER_LINE
    with found.open(None) as source:
        return int(source.first("SELECT count(*)")[0])


def prepare(source: Source, split: Split, *, memory: int, scratch: Path) -> StoredParts:
    """Lay out ratings that come in pieces; once it is done, the source is no longer needed.

    Args:
        source: the ratings. A store from which nothing is held out is used as it is.
        split: what is held out.
        memory: bytes that factors and blocks may take while training.
        scratch: a folder for the blocks.
    """
    splitter = _Splitter(source, split)
    if isinstance(source, RatingsOnDisk) and not split.holdout:
        train = StoredRatings.open(source.folder, memory=memory)
    else:
        train = StoredRatings.build(splitter, scratch / "store", memory=memory)
    test = splitter.test()
    return StoredParts(train, test, splitter.means[test.users] - test.values)


class _Splitter:
    """Splits pieces as they pass; keeps the test parts, and everybody's mean over the training part."""

    def __init__(self, source: Source, split: Split) -> None:
        self.user_ids, self.catalogue = source.user_ids, source.catalogue
        self.scale, self.name = source.scale, source.name
        self._source, self._split = source, split
        self._tests: list[tuple[NDArray[np.int64], Ratings]] = []
        self.means = np.full(len(source.user_ids), source.scale.middle)

    def pieces(self) -> Iterator[Ratings]:
        """Yield the training part of every piece; to be called once."""
        for positions, piece in with_positions(self._source):
            if not self._split.holdout:
                yield piece
                continue
            train, test = piece.split(self._split.holdout, seed=self._split.seed, how=self._split.how)
            self._tests.append((positions, test))
            self.means[positions] = own_means(train)
            yield train

    def test(self) -> Ratings:
        """Return all test ratings, users in their usual order."""
        users = np.concatenate([np.zeros(0, np.int64), *(where[part.users] for where, part in self._tests)])
        items = np.concatenate([np.zeros(0, np.int32), *(part.items for _, part in self._tests)])
        values = np.concatenate([np.zeros(0, np.float32), *(part.values for _, part in self._tests)])
        order = np.argsort(users, kind="stable")
        pointers = row_pointers(users[order].astype(np.int32), len(self.user_ids))
        return Ratings(pointers, items[order], values[order], None, self.user_ids, self.catalogue, self.scale)
