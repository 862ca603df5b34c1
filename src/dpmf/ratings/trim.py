"""Limit the number of ratings per user.

Which ones are kept depends on the user's own ratings and on a hash of their ids, never on anybody else.

>>> from dpmf.ratings import Ratings
>>> ratings = Ratings.of([1, 1, 1, 2], [7, 8, 9, 7], [5, 4, 3, 2], scale=(1, 5))
>>> trimmed(ratings, 2, seed=0)
Ratings(3 ratings, 2 users, 3 items, scale 1:5)
"""

from __future__ import annotations

import numpy as np

from dpmf.errors import InvalidArgument
from dpmf.ratings.split import draw_uniforms, rank_within_user
from dpmf.ratings.table import Ratings
from dpmf.streams import stream_key


def trimmed(ratings: Ratings, most: int, *, seed: int) -> Ratings:
    """Return at most `most` ratings of every user, chosen by a hash of user, item and seed."""
    if most < 1:
        raise InvalidArgument(f"most={most}: keep at least 1 rating of every user")
    if not len(ratings) or int(np.diff(ratings.indptr).max()) <= most:
        return ratings
    return ratings.select(rank_within_user(ratings, draw_uniforms(ratings, stream_key(seed, "trim"))) < most)
