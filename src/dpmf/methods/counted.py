"""Which ratings count in a private run: up to a cap per user, and none of the users who opt out.

>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> with counted_ratings(ratings, 5, np.arange(50) > 0, seed=0) as counted:
...     np.diff(counted.indptr)[:2].tolist()
[0, 5]
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.store import AnyRatings, StoredRatings, counts_of
from dpmf.ratings import Ratings
from dpmf.ratings.trim import trimmed


@contextlib.contextmanager
def counted_ratings(
    ratings: AnyRatings, cap: int | None, takes_part: NDArray[np.bool_] | None = None, *, seed: int
) -> Iterator[AnyRatings]:
    """Yield the ratings that count, in memory or on disk, as all of them are; all users stay, with or without ratings.

    A hash of ids decides which ratings count, so the choice is the same for ratings that are read in pieces. Unless all
    ratings on disk count, the chosen ones are written to a temporary store, which is removed at the end.

    Args:
        ratings: all of them.
        cap: how many of a user count at most; None for all.
        takes_part: whose ratings count; everybody's unless given.
        seed: of the choice.
    """
    everybody = takes_part is None or bool(takes_part.all())
    if everybody and (cap is None or int(counts_of(ratings)[0].max()) <= cap):
        yield ratings
        return

    def left(part: Ratings, positions: NDArray[np.int64] | slice) -> Ratings:
        kept = part if cap is None else trimmed(part, cap, seed=seed)
        if takes_part is not None and not everybody:
            kept = kept.select(takes_part[positions][kept.users])
        return replace(kept, timestamps=None)  # nothing that trains looks at them

    if isinstance(ratings, StoredRatings):
        with ratings.thinned(left) as counted:
            yield counted
    else:
        yield left(ratings, slice(None))
