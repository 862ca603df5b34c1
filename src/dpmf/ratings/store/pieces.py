"""Ratings piece by piece: each piece holds all ratings of some users, in the order of a hash of their ids.

>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> pieces = list(pieces_of(ratings, users_per_piece=20))
>>> [piece.n_users for piece in pieces], sum(map(len, pieces)) == len(ratings)
([20, 20, 10], True)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpmf.ratings.ids import Ids
from dpmf.ratings.items import Items
from dpmf.ratings.subset import select_users
from dpmf.ratings.table import Ratings, Scale

USERS_PER_PIECE = 20_000


def pieces_of(ratings: Ratings, users_per_piece: int = USERS_PER_PIECE) -> Iterator[Ratings]:
    """Yield ratings that are in memory, `users_per_piece` users at a time."""
    order = ratings.user_ids.hash_order
    for first in range(0, len(order), users_per_piece):
        yield select_users(ratings, order[first : first + users_per_piece])


@dataclass(frozen=True)
class MemorySource:
    """Ratings in memory as a source of pieces; see `dpmf.ratings.store.columns.Source`."""

    ratings: Ratings

    @property
    def user_ids(self) -> Ids:
        """All users."""
        return self.ratings.user_ids

    @property
    def catalogue(self) -> Items:
        """All items."""
        return self.ratings.catalogue

    @property
    def scale(self) -> Scale:
        """The rating scale."""
        return self.ratings.scale

    @property
    def name(self) -> str:
        """What to call the data set."""
        return self.ratings.name

    @property
    def users_about(self) -> int | None:
        """About how many users there are, if that was declared."""
        return self.ratings.users_about

    def pieces(self) -> Iterator[Ratings]:
        """Yield all ratings, some users at a time."""
        return pieces_of(self.ratings)
