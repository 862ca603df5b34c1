"""What every reader produces: columns with coded ids, still unchecked and in the order of the source.

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


@dataclass(eq=False)
class Columns:
    """Ratings as read.

    Attributes:
        user_ids, item_ids: the distinct ids.
        user_codes, item_codes: shape (n,), positions among those ids.
        values: shape (n,), float32, NaN where the source has nothing or no number.
        timestamps: shape (n,), seconds (or any integer that grows with time), or None.
        first_row: the number a person would give the first rating: 1, or 2 below a header line.
    """

    user_ids: Ids
    user_codes: NDArray[np.int32]
    item_ids: Ids
    item_codes: NDArray[np.int32]
    values: NDArray[np.float32]
    timestamps: NDArray[np.int64] | None
    first_row: int = 1

    @classmethod
    def of_raw(
        cls,
        users: NDArray[Any],
        items: NDArray[Any],
        values: NDArray[Any],
        timestamps: NDArray[Any] | None,
        first_row: int = 1,
    ) -> Columns:
        """Code raw id columns."""
        lengths = {len(users), len(items), len(values)} | (set() if timestamps is None else {len(timestamps)})
        if len(lengths) > 1:
            raise InvalidRatings(f"columns have different lengths: {sorted(lengths)}")
        user_ids, user_codes = Ids.factorize(users)
        item_ids, item_codes = Ids.factorize(items)
        return cls(user_ids, user_codes, item_ids, item_codes, _numbers(values), _times(timestamps), first_row)


def _numbers(values: NDArray[Any]) -> NDArray[np.float32]:
    try:
        return np.asarray(values).astype(np.float32, copy=False)
    except (TypeError, ValueError) as error:
        raise InvalidRatings(f"the rating column is not numeric: {error}") from None


def _times(timestamps: NDArray[Any] | None) -> NDArray[np.int64] | None:
    """Return times as integers, or None if any is missing: part of a history cannot be put in order."""
    if timestamps is None:
        return None
    timestamps = np.asarray(timestamps)
    if timestamps.dtype.kind == "M":
        return None if np.isnat(timestamps).any() else timestamps.astype("datetime64[s]").astype(np.int64)
    try:
        numbers = timestamps.astype(np.float64) if timestamps.dtype.kind != "i" else timestamps
    except (TypeError, ValueError):
        raise InvalidRatings("the timestamp column holds neither numbers nor dates") from None
    return None if numbers.dtype.kind == "f" and not np.isfinite(numbers).all() else numbers.astype(np.int64)
