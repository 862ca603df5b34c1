"""What reading a format produces: columns with encoded ids, still unchecked and in the order of the source.

>>> import numpy as np
>>> columns = Columns.of_raw(np.array([7, 7]), np.array(["a", "b"], object), np.array([1.0, 5.0]), None)
>>> columns.item_codes.tolist(), list(columns.item_ids)
([0, 1], ['a', 'b'])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.ratings.ids import Ids
from dpmf.ratings.kinds import numbers_of
from dpmf.ratings.times import Times, times_of


@dataclass(eq=False)
class Columns:
    """Ratings as read.

    Attributes:
        user_ids, item_ids: the distinct ids.
        user_codes, item_codes: shape (n,), positions among those ids.
        values: shape (n,), float32, NaN where the source has nothing or no number.
        times: of all ratings, or None.
        first_row: the number a person would give the first rating: 1, or 2 below a header line.
        counts: whether values say how often a user had an item, not how they rated it.
    """

    user_ids: Ids
    user_codes: NDArray[np.int32]
    item_ids: Ids
    item_codes: NDArray[np.int32]
    values: NDArray[np.float32]
    times: Times | None
    first_row: int = 1
    counts: bool = False

    @classmethod
    def of_raw(
        cls,
        users: NDArray[Any],
        items: NDArray[Any],
        values: NDArray[Any],
        timestamps: NDArray[Any] | None,
        first_row: int = 1,
        counts: bool = False,
    ) -> Columns:
        """Encode raw id columns."""
        lengths = {len(users), len(items), len(values)} | (set() if timestamps is None else {len(timestamps)})
        if len(lengths) > 1:
            raise InvalidRatings(f"columns have different lengths: {sorted(lengths)}")
        times = None if timestamps is None else times_of(timestamps, first_row)
        ids = *encode_column("user", users), *encode_column("item", items)
        return cls(*ids, numbers_of(values), times, first_row, counts)


def encode_column(role: str, values: NDArray[Any]) -> tuple[Ids, NDArray[np.int32]]:
    """Return the distinct ids of a column, and every value's position among them."""
    try:
        return Ids.factorize(values)
    except InvalidRatings as error:
        raise InvalidRatings(f"{role} {error}") from None
