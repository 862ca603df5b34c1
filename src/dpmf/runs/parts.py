"""The two parts of a split: ratings to train on, and ratings to test on with the errors of a baseline, or new users.

>>> from dpmf.ratings.synthetic import make
>>> parts = Parts.of(make(60, 40), Split(holdout=0.2, seed=1))
>>> len(parts.baseline) == len(parts.test) > 0
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.store import StoredRatings
from dpmf.evaluation import baseline_errors
from dpmf.evaluation.new_users import NewUsers, People, split_users
from dpmf.evaluation.peers import count_items, positives_of
from dpmf.ratings import Ratings


@dataclass(frozen=True)
class Split:
    """What is held out, see `Ratings.split`.

    Attributes:
        holdout: what part; with how="last", how many ratings of a user. 0 for none.
        how: "random", "per-user" or "last".
        seed: of the choice.
    """

    holdout: float = 0.0
    how: str = "random"
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Parts:
    """Ratings in memory, split.

    Attributes:
        train: the ratings to train on.
        test: the ratings held out; empty if there are none.
        baseline: errors of the per-user mean on them.
    """

    train: Ratings
    test: Ratings
    baseline: NDArray[np.float64]

    @classmethod
    def of(cls, ratings: Ratings, split: Split) -> Parts:
        """Split ratings."""
        if not split.holdout:
            return cls(ratings, ratings.select(np.zeros(len(ratings), np.bool_)), np.zeros(0))
        train, test = ratings.split(split.holdout, seed=split.seed, how=split.how)
        return cls(train, test, baseline_errors(train, test))


@dataclass(frozen=True, eq=False)
class StoredParts:
    """Ratings on disk, split: as `Parts`, with what was held out in memory."""

    train: StoredRatings
    test: Ratings
    baseline: NDArray[np.float64]


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


def split_ratings(ratings: Ratings, split: Split | NewUsers) -> Parts | NewUserParts:
    """Split ratings in memory, by ratings or by people."""
    return NewUserParts.of(ratings, split) if isinstance(split, NewUsers) else Parts.of(ratings, split)
