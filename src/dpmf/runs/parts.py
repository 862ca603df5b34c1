"""The two parts of a split: ratings to train on, and ratings to test on with the errors of a baseline, or new users.

>>> from dpmf.ratings.synthetic import make
>>> parts = Parts.of(make(60, 40), Split(holdout=0.2, seed=1))
>>> len(parts.baseline) == len(parts.test) > 0
True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.evaluation import baseline_errors
from dpmf.evaluation.new_users import NewUsers, People, split_users
from dpmf.evaluation.peers import count_items, positives_of
from dpmf.ratings import Ratings
from dpmf.ratings.alignment import Aligned, beside, read_test
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.table import Scale


@dataclass(frozen=True)
class Split:
    """What is held out, see `Ratings.split`.

    Attributes:
        holdout: what part; with how="last", how many ratings of a user; with how="time", from which time on. 0 for
            none.
        how: "random", "per-user", "last" or "time".
        seed: of the choice.
    """

    holdout: float = 0.0
    how: str = "random"
    seed: int = 0


@dataclass(frozen=True)
class TestFile:
    """Ratings to test on that are in a file of their own.

    Attributes:
        source: the file.
        data, options: the training data, and how to read both.
    """

    __test__ = False  # for pytest

    source: str
    data: str
    options: ReadOptions = field(default_factory=ReadOptions)

    def read(self, scale: Scale) -> Ratings:
        """Read it on the scale of the training data."""
        return read_test(self.source, self.data, self.options, scale)


@dataclass(frozen=True, eq=False)
class Parts:
    """Ratings in memory, split.

    Attributes:
        train: the ratings to train on.
        test: the ratings held out; empty if there are none.
        baseline: errors of the per-user mean on them.
        aligned: the test file, if they are from one.
    """

    train: Ratings
    test: Ratings
    baseline: NDArray[np.float64]
    aligned: Aligned | None = None

    @classmethod
    def of(cls, ratings: Ratings, split: Split) -> Parts:
        """Split ratings."""
        if not split.holdout:
            return cls(ratings, ratings.select(np.zeros(len(ratings), np.bool_)), np.zeros(0))
        train, test = ratings.split(split.holdout, seed=split.seed, how=split.how)
        if split.how == "time":
            check_times(len(train), len(test))
        return cls(train, test, baseline_errors(train, test))

    @classmethod
    def with_test(cls, ratings: Ratings, test: Ratings) -> Parts:
        """Train on all ratings, and test on others."""
        found = beside(ratings, test)
        return cls(ratings, found.ratings, baseline_errors(ratings, found.ratings), found)


@dataclass(frozen=True, eq=False)
class StoredParts:
    """Ratings on disk, split: as `Parts`, with what was held out in memory."""

    train: StoredRatings
    test: Ratings
    baseline: NDArray[np.float64]
    aligned: Aligned | None = None


@dataclass(frozen=True, eq=False)
class NewUserParts:
    """People to train on, in memory or on disk, and new users to rank for.

    Attributes:
        train: the ratings of those who are not held out.
        people: those who are.
        popularity: shape (n_items,), how many of those who are trained on like each item.
    """

    train: Ratings | StoredRatings
    people: People
    popularity: NDArray[np.int64]

    @classmethod
    def of(cls, ratings: Ratings, new_users: NewUsers) -> NewUserParts:
        """Hold people out of ratings in memory."""
        train, people = split_users(ratings, new_users)
        liked = positives_of(train, new_users.least_positive(train.scale))
        return cls(train, people, count_items(liked, train.n_items))


AnyParts: TypeAlias = Parts | StoredParts | NewUserParts
AnySplit: TypeAlias = Split | NewUsers | TestFile


def split_ratings(ratings: Ratings, split: AnySplit) -> Parts | NewUserParts:
    """Split ratings in memory, by ratings or by people, or put those of a test file beside them."""
    if isinstance(split, TestFile):
        return Parts.with_test(ratings, split.read(ratings.scale))
    return NewUserParts.of(ratings, split) if isinstance(split, NewUsers) else Parts.of(ratings, split)


def check_times(n_train: int, n_test: int) -> None:
    """Refuse a split by time that leaves one of its parts empty."""
    if not n_test:
        raise InvalidArgument("no rating is from the time of --holdout or later: give an earlier one")
    if not n_train:
        raise InvalidArgument("all ratings are from the time of --holdout or later: give a later one")
