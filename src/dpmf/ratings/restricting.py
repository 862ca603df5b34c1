"""A part of the catalogue, and the people who rated any of it.

>>> from dpmf.ratings.synthetic import make
>>> part = random_items(make(50, 40), 5, seed=1)
>>> part.n_items, bool((np.diff(part.indptr) > 0).all())
(5, True)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpmf.errors import InvalidArgument
from dpmf.ratings.ids import Ids
from dpmf.ratings.items import Items
from dpmf.ratings.table import Ratings
from dpmf.streams import mix, stream_key


def random_items(ratings: Ratings, count: int, *, seed: int, keep_people: bool = False) -> Ratings:
    """Return the ratings of so many items, drawn from the catalogue.

    Args:
        ratings: of all items.
        count: how many items to draw; which depends on their ids and the seed alone.
        seed: of the draw.
        keep_people: whether people who rated none of them stay. Where that somebody takes part is public, leaving them
            out would tell something of the ratings of the others.
    """
    if not 1 <= count <= ratings.n_items:
        raise InvalidArgument(f"{count} items cannot be drawn: the catalogue has {ratings.n_items:,}")
    catalogue = ratings.catalogue
    drawn = mix(stream_key(seed, "random items") ^ catalogue.ids.keys)
    chosen = np.sort(np.argsort(drawn, kind="stable")[:count])
    places = np.full(ratings.n_items, -1, np.int32)
    places[chosen] = np.arange(count, dtype=np.int32)
    kept = ratings.select(places[ratings.items] >= 0)
    people = np.arange(ratings.n_users) if keep_people else np.flatnonzero(np.diff(kept.indptr))
    items = Items(
        Ids(catalogue.ids.array[chosen]), [catalogue.titles[place] for place in chosen],
        [catalogue.genres[place] for place in chosen], declared=catalogue.declared,
    )  # fmt: skip
    return replace(
        kept,
        indptr=np.append(kept.indptr[people], kept.indptr[-1]),
        items=places[kept.items],
        user_ids=Ids(kept.user_ids.array[people]),
        catalogue=items,
    )
