"""Ratings that are too large for memory: where they come from, and how they are split and laid out on disk.

>>> import tempfile
>>> from dpmf.methods import SGD
>>> from dpmf.ratings.store.pieces import MemorySource
>>> from dpmf.ratings.synthetic import make
>>> from dpmf.runs.training import Arguments, train_on
>>> source, scratch = MemorySource(make(60, 40)), Path(tempfile.mkdtemp())
>>> parts = prepare(source, Split(holdout=0.2), memory=1000, scratch=scratch)
>>> run = train_on(SGD(n_factors=4, n_epochs=2), parts, Arguments(n_threads=1))
>>> run.streamed, run.accuracy["rmse"] > 0
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import padded
from dpmf.engine.store import StoredRatings
from dpmf.evaluation.accuracy import own_means
from dpmf.evaluation.new_users import NewUsers, People, people_of
from dpmf.evaluation.peers import count_items, positives_of
from dpmf.kernels.sort import row_pointers
from dpmf.ratings import Ratings
from dpmf.ratings.alignment import align
from dpmf.ratings.formats import Sizes
from dpmf.ratings.ids import Ids
from dpmf.ratings.location import locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import RatingsOnDisk, Source, with_positions
from dpmf.ratings.store.pieces import MemorySource
from dpmf.ratings.subset import keep_users, select_users
from dpmf.runs.parts import AnySplit, NewUserParts, Split, StoredParts, TestFile, check_times

_BYTES_PER_RATING = 40  # while ratings are read, split and laid out in memory


@contextmanager
def open_ratings(
    data: str, *, memory: int, n_factors: int, scratch: Path, options: ReadOptions | None = None
) -> Iterator[Source | Ratings]:
    """Yield ratings in memory, or a source to stream them from if they, or the factors to learn, do not fit there.

    Args:
        data: a catalogue name, a file or a folder.
        memory: how many bytes there are.
        n_factors: K.
        scratch: a folder for sorting.
        options: how to read the data.
    """
    location = locate(data, options)
    sizes = location.sizes()
    if sizes is not None and _bytes_in_memory(sizes, n_factors) > memory:
        with location.stream(memory=memory, scratch=scratch) as source:
            yield source
        return
    ratings = location.read()
    fits = _bytes_in_memory(Sizes(len(ratings), ratings.n_users, ratings.n_items), n_factors) <= memory
    yield ratings if fits else MemorySource(ratings)


def _bytes_in_memory(sizes: Sizes, n_factors: int) -> int:
    """Return what training in memory takes: factors stand there twice when they are handed over at the end."""
    return sizes.ratings * _BYTES_PER_RATING + 2 * 4 * padded(n_factors) * (sizes.users + sizes.items)


def prepare(source: Source, split: AnySplit, *, memory: int, scratch: Path) -> StoredParts | NewUserParts:
    """Lay out ratings that come in pieces; once it is done, the source is no longer needed.

    Args:
        source: the ratings. A store from which nothing is held out is used as it is.
        split: what is held out.
        memory: bytes that factors and blocks may take while training.
        scratch: a folder for the blocks.
    """
    if isinstance(split, NewUsers):
        by_user = _UserSplitter(source, split)
        stored = StoredRatings.build(by_user, scratch / "store", memory=memory)
        return NewUserParts(stored, by_user.people(), by_user.popularity)
    if isinstance(split, TestFile):
        return _with_test(source, split, memory=memory, scratch=scratch)
    splitter = _Splitter(source, split)
    if isinstance(source, RatingsOnDisk) and not split.holdout:
        train = StoredRatings.open(source.folder, memory=memory)
    else:
        train = StoredRatings.build(splitter, scratch / "store", memory=memory)
    test = splitter.test()
    if split.how == "time" and split.holdout:
        check_times(len(train), len(test))
    return StoredParts(train, test, splitter.means[test.users] - test.values)


def _with_test(source: Source, test_file: TestFile, *, memory: int, scratch: Path) -> StoredParts:
    """Lay out all ratings, and compare them with those of a test file in a pass of its own."""
    found = align(test_file.read(source.scale), source.user_ids, source.catalogue, source.scale)
    means = np.full(len(source.user_ids), source.scale.middle)
    for positions, piece in with_positions(source):
        found = found.without(piece, positions)
        means[positions] = own_means(piece)
    test = found.checked().ratings
    if isinstance(source, RatingsOnDisk):
        train = StoredRatings.open(source.folder, memory=memory)
    else:
        train = StoredRatings.build(source, scratch / "store", memory=memory)
    return StoredParts(train, test, means[test.users] - test.values, found)


class _Splitter:
    """Splits pieces as they pass; keeps the test parts, and everybody's mean over the training part."""

    def __init__(self, source: Source, split: Split) -> None:
        self.user_ids, self.catalogue = source.user_ids, source.catalogue
        self.scale, self.name, self.users_about = source.scale, source.name, source.users_about
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


class _UserSplitter:
    """Leaves out people as pieces pass; keeps those for whom lists are made, and counts what the others like."""

    def __init__(self, source: Source, new_users: NewUsers) -> None:
        self._source, self._new_users = source, new_users
        self._held_out = new_users.choose(source.user_ids)
        self._measured = new_users.choose_measured(source.user_ids)
        self.user_ids, self.catalogue = Ids(source.user_ids.array[~self._held_out]), source.catalogue
        self.scale, self.name, self.users_about = source.scale, source.name, source.users_about
        self._least = new_users.least_positive(source.scale)
        self._set_aside: list[tuple[NDArray[np.int64], Ratings]] = []
        self.popularity = np.zeros(len(source.catalogue), np.int64)

    def pieces(self) -> Iterator[Ratings]:
        """Yield the training part of every piece; to be called once."""
        for positions, piece in with_positions(self._source):
            measured = self._measured[positions]
            self._set_aside.append((positions[measured], keep_users(piece, measured)))
            train = keep_users(piece, ~self._held_out[positions])
            self.popularity += count_items(positives_of(train, self._least), piece.n_items)
            if train.n_users:
                yield train

    def people(self) -> People:
        """Return those for whom lists are made, in their usual order."""
        parts = [part for _, part in self._set_aside]
        counts = np.concatenate([np.diff(part.indptr) for part in parts])
        together = Ratings(
            np.concatenate([[0], np.cumsum(counts)]),
            np.concatenate([part.items for part in parts]),
            np.concatenate([part.values for part in parts]),
            None,
            Ids(np.concatenate([part.user_ids.array for part in parts])),
            self.catalogue,
            self.scale,
        )
        order = np.argsort(np.concatenate([positions for positions, _ in self._set_aside]))
        n_held_out = int(np.count_nonzero(self._held_out))
        return people_of(select_users(together, order), self._new_users, n_held_out=n_held_out)
