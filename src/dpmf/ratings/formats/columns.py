"""What reading a format produces: columns with encoded ids, still unchecked and in the order of the source.

>>> import numpy as np
>>> columns = Columns.of_raw(np.array([7, 7]), np.array(["a", "b"], object), np.array([1.0, 5.0]), None)
>>> columns.item_codes.tolist(), list(columns.item_ids)
([0, 1], ['a', 'b'])
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.ratings.ids import Ids

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Columns:
    """Ratings as read.

    Attributes:
        user_ids, item_ids: the distinct ids.
        user_codes, item_codes: shape (n,), positions among those ids.
        values: shape (n,), float32, NaN where the source has nothing or no number.
        timestamps: shape (n,), seconds (or any integer that grows with time), or None.
        first_row: the number a person would give the first rating: 1, or 2 below a header line.
        partly_timed: whether timestamps were left out because some, but not all, could not be read. Then none may
            decide which of two ratings is the later one: whether it does would depend on other people's rows.
    """

    user_ids: Ids
    user_codes: NDArray[np.int32]
    item_ids: Ids
    item_codes: NDArray[np.int32]
    values: NDArray[np.float32]
    timestamps: NDArray[np.int64] | None
    first_row: int = 1
    partly_timed: bool = False

    @classmethod
    def of_raw(
        cls,
        users: NDArray[Any],
        items: NDArray[Any],
        values: NDArray[Any],
        timestamps: NDArray[Any] | None,
        first_row: int = 1,
    ) -> Columns:
        """Encode raw id columns."""
        lengths = {len(users), len(items), len(values)} | (set() if timestamps is None else {len(timestamps)})
        if len(lengths) > 1:
            raise InvalidRatings(f"columns have different lengths: {sorted(lengths)}")
        times, partly = (None, False) if timestamps is None else whole_times(np.asarray(timestamps), first_row)
        return cls(
            *encode_column("user", users), *encode_column("item", items), _numbers(values), times, first_row, partly
        )


def encode_column(role: str, values: NDArray[Any]) -> tuple[Ids, NDArray[np.int32]]:
    """Return the distinct ids of a column, and every value's position among them."""
    try:
        return Ids.factorize(values)
    except InvalidRatings as error:
        raise InvalidRatings(f"{role} {error}") from None


def _warn_of_bad_time(row: int) -> None:
    """Log that timestamps are left out: part of a history cannot be put in order."""
    logger.warning("the timestamps are left out: the one in row %d is missing, or neither a number nor a date", row)


def _numbers(values: NDArray[Any]) -> NDArray[np.float32]:
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind in "cmM":
        raise InvalidRatings(f"the rating column is not a flat list of numbers: it is {values.dtype} {values.shape}")
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which is refused
            return values.astype(np.float32, copy=False)
    except (TypeError, ValueError) as error:
        raise InvalidRatings(f"the rating column is not numeric: {error}") from None


def whole_times(timestamps: NDArray[Any], first_row: int) -> tuple[NDArray[np.int64] | None, bool]:
    """Return times as integers in the same order, or None if any cannot be read, and whether only some cannot.

    Whole seconds stay what they are. With fractions among them, times are numbered from the earliest on: only their
    order counts.
    """
    if timestamps.dtype.kind in "iu":
        return timestamps.astype(np.int64), False
    if timestamps.dtype.kind == "M":
        seconds = timestamps.astype("datetime64[us]").astype(np.float64) / 1e6
        seconds[np.isnat(timestamps)] = np.nan
    else:
        seconds = _seconds(timestamps)
    missing = ~np.isfinite(seconds)
    if missing.any():
        _warn_of_bad_time(int(np.argmax(missing)) + first_row)
        return None, not missing.all()
    whole = seconds.astype(np.int64)
    if (whole == seconds).all():
        return whole, False
    return np.unique(seconds, return_inverse=True)[1].astype(np.int64), False


def _seconds(timestamps: NDArray[Any]) -> NDArray[np.float64]:
    """Return times given as numbers, their texts, ISO dates or datetime objects; NaN where there is none."""
    try:
        return timestamps.astype(np.float64)
    except (TypeError, ValueError):
        return np.array([_second(one) for one in timestamps.tolist()])


def _second(moment: Any) -> float:
    with contextlib.suppress(TypeError, ValueError):
        return float(moment)
    try:
        when = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        return float("nan")
