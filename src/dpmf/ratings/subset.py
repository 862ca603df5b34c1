"""Ratings of some users, or of some items.

>>> from dpmf.ratings.synthetic import make
>>> part = random_items(make(50, 40), 5, seed=1)
>>> part.n_items, bool((np.diff(part.indptr) > 0).all())
(5, True)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.ratings.ids import Ids
from dpmf.ratings.items import Items
from dpmf.ratings.table import Ratings
from dpmf.streams import mix, stream_key


def random_items(ratings: Ratings, count: int, *, seed: int, keep_people: bool = False) -> Ratings:
    """Return the ratings of `count` items, drawn from the catalogue.

    Args:
        ratings: of all items.
        count: how many items to draw; which depends on their ids and the seed alone.
        seed: of the draw.
        keep_people: whether users who rated none of them stay. Where participation is public, leaving them out would
            reveal something about their ratings.
    """
    if not 1 <= count <= ratings.n_items:
        raise InvalidArgument(f"{count} items cannot be drawn: the catalogue has {ratings.n_items:,}")
    drawn = mix(stream_key(seed, "random items") ^ ratings.catalogue.ids.keys)
    return select_items(ratings, np.sort(np.argsort(drawn, kind="stable")[:count]), keep_people=keep_people)


def select_items(ratings: Ratings, positions: NDArray[np.int64], *, keep_people: bool = False) -> Ratings:
    """Return all ratings of the items at these positions, ascending; `keep_people` is as above."""
    places = np.full(ratings.n_items, -1, np.int32)
    places[positions] = np.arange(len(positions), dtype=np.int32)
    kept, whole = ratings.select(places[ratings.items] >= 0), ratings.catalogue
    items = Items(
        ids=Ids(whole.ids.array[positions]),
        titles=[whole.titles[place] for place in positions],
        genres=[whole.genres[place] for place in positions],
        declared=whole.declared,
        descriptions=[one._replace(columns=one.columns[positions]) for one in whole.descriptions],
    )
    kept = replace(kept, items=places[kept.items], catalogue=items)
    return kept if keep_people else select_users(kept, np.flatnonzero(np.diff(kept.indptr)))


def select_users(ratings: Ratings, positions: NDArray[np.int64]) -> Ratings:
    """Return the ratings of the users at these positions, in this order."""
    counts = np.diff(ratings.indptr)[positions]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    chosen = np.arange(indptr[-1]) + np.repeat(ratings.indptr[positions] - indptr[:-1], counts)
    return replace(
        ratings,
        indptr=indptr,
        items=ratings.items[chosen],
        values=ratings.values[chosen],
        timestamps=None if ratings.timestamps is None else ratings.timestamps[chosen],
        user_ids=Ids(ratings.user_ids.array[positions]),
    )


def keep_users(ratings: Ratings, kept: NDArray[np.bool_]) -> Ratings:
    """Return the ratings of the users marked; as `select_users`, and with less memory for most of them."""
    counts = np.diff(ratings.indptr)
    chosen = np.repeat(kept, counts)
    return replace(
        ratings,
        indptr=np.concatenate([[0], np.cumsum(counts[kept])]),
        items=ratings.items[chosen],
        values=ratings.values[chosen],
        timestamps=None if ratings.timestamps is None else ratings.timestamps[chosen],
        user_ids=Ids(ratings.user_ids.array[kept]),
    )
