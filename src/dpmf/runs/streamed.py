"""One run of a method on ratings that stay on the disk.

>>> import tempfile
>>> from dpmf.methods import SGD
>>> from dpmf.ratings.store.pieces import MemorySource
>>> from dpmf.ratings.synthetic import make
>>> source, scratch = MemorySource(make(60, 40)), Path(tempfile.mkdtemp())
>>> prepared = prepare(source, memory=1000, scratch=scratch, holdout=0.2, how="random", seed=0)
>>> run = train_streamed(SGD(n_factors=4, n_epochs=2), prepared, n_threads=1)
>>> run.streamed, run.accuracy["rmse"] > 0
(True, True)
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Checkpoint
from dpmf.engine.factors import padded
from dpmf.engine.store import StoredRatings
from dpmf.evaluation import prediction_errors
from dpmf.evaluation.accuracy import own_means
from dpmf.evaluation.metrics import mae, rmse
from dpmf.kernels.sort import row_pointers
from dpmf.methods import SGD, SGLD
from dpmf.methods.base import Callback
from dpmf.privacy.ledger import Ledger
from dpmf.ratings import Ratings
from dpmf.ratings.formats import Sizes
from dpmf.ratings.location import locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.store.columns import RatingsOnDisk, Source, with_positions
from dpmf.ratings.store.pieces import MemorySource
from dpmf.runs.training import Run

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


@dataclass(frozen=True, eq=False)
class Prepared:
    """Ratings laid out on the disk for training, with what was held out of them.

    Attributes:
        training: the ratings to train on.
        test: the ratings held out.
        means: the mean training rating of every user.
    """

    training: StoredRatings
    test: Ratings
    means: NDArray[np.float64]


def prepare(source: Source, *, memory: int, scratch: Path, holdout: float, how: str, seed: int) -> Prepared:
    """Lay out ratings that come in pieces; once it is done, the source is no longer needed.

    Args:
        source: the ratings. A store from which nothing is held out is used as it is.
        memory: bytes that factors and blocks may take while training.
        scratch: a folder for the blocks.
        holdout, how, seed: as in `dpmf.runs.training.train_and_test`.
    """
    split = _Split(source, holdout, how, seed)
    if isinstance(source, RatingsOnDisk) and not holdout:
        training = StoredRatings.open(source.folder, memory=memory)
    else:
        training = StoredRatings.build(split, scratch / "store", memory=memory)
    return Prepared(training, split.test(), split.means)


def train_streamed(
    method: SGD | SGLD,
    prepared: Prepared,
    *,
    n_threads: int | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
    user_budgets: Mapping[Any, float] | None = None,
    ledger: Ledger | None = None,
) -> Run:
    """Train on ratings on the disk, with the same result as `train_and_test` has in memory.

    The arguments after `checkpoint` are for SGLD, see `dpmf.methods.SGLD.fit`.
    """
    private = {} if isinstance(method, SGD) else {"user_budgets": user_budgets, "ledger": ledger}
    began = time.perf_counter()
    model = method.fit(prepared.training, n_threads=n_threads, callbacks=callbacks, checkpoint=checkpoint, **private)  # type: ignore[arg-type]
    seconds = time.perf_counter() - began
    accuracy, test = {}, prepared.test
    if len(test):
        errors = prediction_errors(model, test, n_threads=n_threads)
        baseline = prepared.means[test.users] - test.values
        accuracy = {"rmse": rmse(errors), "mae": mae(errors), "baseline_rmse": rmse(baseline)}
    return Run(model, len(prepared.training), seconds, accuracy, streamed=True)


class _Split:
    """Splits pieces as they pass; keeps the test parts, and everybody's mean over the training part."""

    def __init__(self, source: Source, holdout: float, how: str, seed: int) -> None:
        self.user_ids, self.catalogue = source.user_ids, source.catalogue
        self.scale, self.name = source.scale, source.name
        self._source = source
        self._holdout, self._how, self._seed = holdout, how, seed
        self._tests: list[tuple[NDArray[np.int64], Ratings]] = []
        self.means = np.full(len(source.user_ids), source.scale.middle)

    def pieces(self) -> Iterator[Ratings]:
        """Yield the training part of every piece; to be called once."""
        for positions, piece in with_positions(self._source):
            if not self._holdout:
                yield piece
                continue
            train, test = piece.split(self._holdout, seed=self._seed, how=self._how)
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
