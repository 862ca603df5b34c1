"""Ratings of one file under the ids of another: a published test file beside the ratings to train on.

>>> train = Ratings.of(["ann", "bob"], ["Heat", "Up"], [5, 3], scale=(1, 5))
>>> test = Ratings.of(["ann", "ann", "cy", "bob"], ["Up", "Jaws", "Up", "Up"], [4, 1, 2, 5], scale=(1, 5))
>>> print(beside(train, test))
1 ratings of the test file; left out: 2 of 1 users and 1 items that are not in the training data; left out, because \
they are trained on: 1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.kernels.sort import row_pointers
from dpmf.ratings.ids import Ids
from dpmf.ratings.items import Items
from dpmf.ratings.location import locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.table import Ratings, Scale


@dataclass(frozen=True, eq=False)
class Aligned:
    """Ratings to test on, of the users and items of training data, and what was left out.

    Attributes:
        ratings: users and items have the positions that they have in the training data.
        unknown_users, unknown_items: how many of the test file are not among them.
        left_out: how many ratings are of these.
        also_trained_on: how many others are left out because the same user's rating of the same item is trained on.
    """

    ratings: Ratings
    unknown_users: int
    unknown_items: int
    left_out: int
    also_trained_on: int = 0

    def without(self, train: Ratings, positions: NDArray[Any] | None = None) -> Aligned:
        """Leave out ratings that training data have, too.

        Args:
            train: training data, or a piece of them.
            positions: of the users of the piece among all; those of `train` by default.
        """
        users = train.users if positions is None else positions[train.users]
        ours, theirs = (
            who.astype(np.int64) * train.n_items + what
            for who, what in ((self.ratings.users, self.ratings.items), (users, train.items))
        )
        again = np.isin(ours, theirs)
        kept = self.ratings.select(~again) if again.any() else self.ratings
        return replace(self, ratings=kept, also_trained_on=self.also_trained_on + int(np.count_nonzero(again)))

    def checked(self) -> Aligned:
        """Return this, or refuse it if nothing is left to test on."""
        if not len(self.ratings):
            raise InvalidRatings(
                "nothing is left of the test file: its users or items are not in the training data, or all its ratings "
                "are: name a file with the same ids and other ratings"
            )
        return self

    def to_json(self) -> dict[str, int]:
        """Return the numbers as a report has them."""
        names = ("unknown_users", "unknown_items", "left_out", "also_trained_on")
        return {"test_ratings": len(self.ratings)} | {f"test_{name}": getattr(self, name) for name in names}

    def __str__(self) -> str:
        said = f"{len(self.ratings):,} ratings of the test file"
        if self.left_out:
            said += (
                f"; left out: {self.left_out:,} of {self.unknown_users:,} users and {self.unknown_items:,} items that "
                "are not in the training data"
            )
        if self.also_trained_on:
            said += f"; left out, because they are trained on: {self.also_trained_on:,}"
        return said


def read_test(source: str, data: str, options: ReadOptions, scale: Scale) -> Ratings:
    """Read a test file as training data are read, on their scale, with the items that it has.

    Args:
        source: the test file.
        data: the training data: what is declared beside them holds for both.
        options: how to read both.
        scale: of the training data.
    """
    declared = locate(data, options).options
    alike = replace(
        declared,
        scale=scale,
        items=None,
        item_features=None,
        item_columns=None,
        item_delimiter=None,
        item_encoding=None,
    )
    return locate(source, alike).read()


def beside(train: Ratings, test: Ratings) -> Aligned:
    """Return ratings to test on beside those to train on, all in memory, or refuse them if nothing is left."""
    return align(test, train.user_ids, train.catalogue, train.scale).without(train).checked()


def align(test: Ratings, users: Ids, catalogue: Items, scale: Scale) -> Aligned:
    """Return ratings with the positions that users and items have in training data, without those that have none."""
    user_places, item_places = users.encode(test.user_ids.array), catalogue.ids.encode(test.catalogue.ids.array)
    of_users, of_items = user_places[test.users], item_places[test.items]
    known = np.flatnonzero((of_users >= 0) & (of_items >= 0))
    chosen = known[np.lexsort((of_items[known], of_users[known]))]
    return Aligned(
        ratings=Ratings(
            indptr=row_pointers(of_users[chosen], len(users)),
            items=of_items[chosen],
            values=test.values[chosen],
            timestamps=None if test.timestamps is None else test.timestamps[chosen],
            user_ids=users,
            catalogue=catalogue,
            scale=scale,
        ),
        unknown_users=int(np.count_nonzero(user_places < 0)),
        unknown_items=int(np.count_nonzero(item_places[np.unique(test.items)] < 0)),
        left_out=len(test) - len(known),
    )
