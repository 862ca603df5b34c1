"""Split ratings into training and test parts.

Whether a rating is held out depends on the seed, its user's id and its item's id alone (or on that user's own
history, or on the time of that rating alone), so adding or removing a person changes nobody else's split. This is why
there is no split at "the last tenth of all ratings": where it lies depends on everybody.

>>> from dpmf.ratings.table import Ratings
>>> ratings = Ratings.of([1, 1, 1, 2], [1, 2, 3, 1], [5, 4, 3, 2], [30, 10, 20, 1], scale=(1, 5))
>>> choose_test(ratings, 1, seed=0, how="last").tolist()
[True, False, False, True]
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.kernels.hashes import pair_uniforms
from dpmf.ratings.table import Ratings
from dpmf.ratings.times import UNKNOWN
from dpmf.streams import stream_key

How = Literal["random", "per-user", "last", "time"]


def choose_test(ratings: Ratings, test: float, *, seed: int, how: str) -> NDArray[np.bool_]:
    """Return which ratings belong to the test part.

    Args:
        ratings: what to split.
        test: the fraction held out; for how="last", the number of ratings per user; for how="time", a time.
        seed: fixes the choice.
        how: "random" holds out each rating with probability `test`; "per-user" holds out that share of every user's
            ratings, rounded; "last" holds out every user's latest `test` ratings, chosen at random among equally
            late ones; "time" holds out all ratings from the time `test` on, in the units of the timestamps (seconds
            since 1970 for dates), the same for everybody. Both need timestamps.
    """
    if how not in get_args(How):
        raise InvalidArgument(f"how={how!r} is not a way to split: choose from {', '.join(get_args(How))}")
    if how == "time":
        return _times(ratings, how) >= test
    if how == "last":
        _times(ratings, how)
        _check_count(test)
    elif not 0 < test < 1:
        raise InvalidArgument(f"test={test} is not a fraction: give a number between 0 and 1, such as 0.1")
    chance = draw_uniforms(ratings, stream_key(seed, "split"))
    if how == "random":
        return chance < test
    if how == "last" and ratings.timestamps is not None:
        return rank_within_user(ratings, ~ratings.timestamps, chance) < test  # ~t falls as t grows
    counts = np.diff(ratings.indptr)
    return rank_within_user(ratings, chance) < np.repeat(np.rint(test * counts), counts)


def draw_uniforms(ratings: Ratings, key: np.uint64) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each rating, a hash of the key and of the ids of its user and its item."""
    drawn = np.empty(len(ratings), np.float64)
    users, items = ratings.user_ids.keys, ratings.catalogue.ids.keys
    pair_uniforms(key, users, items, ratings.csr.pattern, 0, ratings.n_users, drawn)
    return drawn


def _times(ratings: Ratings, how: str) -> NDArray[np.int64]:
    if ratings.timestamps is None or (ratings.timestamps == UNKNOWN).any():
        raise InvalidArgument(f"how={how!r} needs a timestamp for every rating: name the column, or split at random")
    return ratings.timestamps


def _check_count(count: float) -> None:
    if not (count >= 1 and count % 1 == 0):
        raise InvalidArgument(f"test={count} with how='last' is a number of ratings per user: give 1, 2, …")


def rank_within_user(ratings: Ratings, *keys: NDArray[Any]) -> NDArray[np.int64]:
    """Return each rating's rank, from 0, when its user's ratings are sorted by the first key, then the next."""
    order = np.lexsort((*reversed(keys), ratings.users))
    places = np.empty(len(ratings), np.int64)
    places[order] = np.arange(len(ratings)) - np.repeat(ratings.indptr[:-1], np.diff(ratings.indptr))
    return places
