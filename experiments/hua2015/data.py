"""The data of the paper: MovieLens 100K as it is, and all Netflix ratings of 100 movies drawn at random.

The paper's 100 movies have ratings from 191,668 users, and it repeats experiments with other movies. Which ones is not
known; here a seed draws them.

>>> from dpmf.ratings.synthetic import make
>>> part = select_items(make(60, 40, mean_ratings=5), np.array([3, 8]))
>>> part.n_items, bool(np.diff(part.indptr).min() > 0)
(2, True)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf import Ratings
from dpmf.ratings.subset import select_items
from dpmf.streams import generator
from experiments.figure import Run

MOVIES = 100
DRAWS = 3  # of movies, in a full run: "different sets", the paper says
PUBLISHED_USERS = 191_668
_MANY_USERS = 100_000  # more than any set that is used whole


def is_large(ratings: Ratings) -> bool:
    """Tell whether movies have to be drawn."""
    return ratings.n_users > _MANY_USERS


def name_of(ratings: Ratings) -> str:
    """Return the paper's name for data of this size."""
    return "Netflix" if is_large(ratings) else "MovieLens"


def draws_of(ratings: Ratings, run: Run) -> Iterator[Ratings]:
    """Yield the ratings of each draw of movies; all ratings, once, if the set is small."""
    if not is_large(ratings):
        yield ratings
        return
    for draw in range(DRAWS if run.full else 1):
        yield select_items(ratings, drawn_items(ratings.n_items, run.seed, draw))


def drawn_items(n_items: int, seed: int, draw: int) -> NDArray[np.int64]:
    """Return the positions of the movies of a draw, ascending."""
    chosen: NDArray[Any] = generator(seed, f"movies of draw {draw}").choice(n_items, MOVIES, replace=False)
    return np.sort(chosen).astype(np.int64)
