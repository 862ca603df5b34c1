"""From columns as read to `Ratings`: check values, drop items outside the catalogue, sort, merge duplicates.

>>> import numpy as np
>>> columns = Columns.of_raw(np.array([1, 1]), np.array([5, 5]), np.array([2.0, 4.0]), None)
>>> assemble(columns, scale=(1, 5), duplicates="mean").values.tolist()
[3.0]
"""

from __future__ import annotations

import logging
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.kernels.sort import latest_of_each_pair, order_pairs, pairs_in_order, row_pointers
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.items import Items
from dpmf.ratings.table import Ratings, Scale

logger = logging.getLogger(__name__)
Duplicates = Literal["last", "first", "mean", "error"]


class _Rows(NamedTuple):
    """Ratings on their way: positions of users and items, values, and times if there are any."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    times: NDArray[np.int64] | None

    def take(self, chosen: NDArray[Any]) -> _Rows:
        """Return the rows that a mask or a list of positions chooses."""
        times = None if self.times is None else self.times[chosen]
        return _Rows(self.users[chosen], self.items[chosen], self.values[chosen], times)


def assemble(
    columns: Columns,
    *,
    scale: Scale | tuple[float, float] | None = None,
    items: Items | None = None,
    duplicates: str = "last",
    missing: float | None = None,
    name: str = "",
    quiet: bool = False,
) -> Ratings:
    """Return checked, ordered ratings; arguments as in `Ratings.of`, and `quiet` to log nothing about duplicates.

    Raises:
        InvalidRatings: no rating at all, a value that is missing, infinite or off the scale, or (with
            duplicates="error") a pair rated twice. The message names the row.
    """
    if duplicates not in get_args(Duplicates):
        raise InvalidArgument(f"duplicates={duplicates!r} is not known: choose from {', '.join(get_args(Duplicates))}")
    scale = None if scale is None else Scale.of(scale)
    rows = _Rows(columns.user_codes, columns.item_codes, columns.values, columns.timestamps)
    keep = _usable(columns, scale, missing)
    if items is None:
        items = Items.of(columns.item_ids, declared=False)
    else:
        positions, listed = _in_catalogue(columns, items)
        rows = rows._replace(items=positions)
        keep = listed if keep is None else keep if listed is None else keep & listed
    if keep is not None:
        rows = rows.take(keep)
    if not len(rows.values):
        raise InvalidRatings("there are no ratings: the source is empty, or nothing in it is in the catalogue")
    if not pairs_in_order(rows.users, rows.items):
        rows = rows.take(order_pairs(rows.users, rows.items, len(columns.user_ids), len(items)))
    rows = _merge(rows, duplicates, columns, items, quiet)
    return Ratings(
        indptr=row_pointers(rows.users, len(columns.user_ids)),
        items=rows.items,
        values=rows.values,
        timestamps=rows.times,
        user_ids=columns.user_ids,
        catalogue=items,
        scale=scale or _observed(rows.values),
        name=name,
    )


def _usable(columns: Columns, scale: Scale | None, missing: float | None) -> NDArray[np.bool_] | None:
    """Return which ratings count, None for all; refuse values that are no ratings."""
    values = columns.values
    absent = None if missing is None else np.isnan(values) if np.isnan(missing) else values == np.float32(missing)
    if absent is not None and not absent.any():
        absent = None
    bad = ~np.isfinite(values)
    if absent is not None:
        bad &= ~absent
    if bad.any():
        row = int(np.argmax(bad)) + columns.first_row
        raise InvalidRatings(f"the rating in row {row} is missing, infinite or not a number: fix or remove it")
    if scale is not None:
        off = (values < scale.lo) | (values > scale.hi)
        if absent is not None:
            off &= ~absent
        if off.any():
            place = int(np.argmax(off))
            raise InvalidRatings(
                f"the rating {values[place]:g} in row {place + columns.first_row} is off the scale {scale}: fix it, "
                "or declare the right scale"
            )
    return None if absent is None else ~absent


def _in_catalogue(columns: Columns, catalogue: Items) -> tuple[NDArray[np.int32], NDArray[np.bool_] | None]:
    """Return catalogue positions, and which ratings have one (None for all)."""
    positions = catalogue.ids.encode(columns.item_ids.array)
    items = positions[columns.item_codes]
    if (positions >= 0).all():
        return items, None
    listed = items >= 0
    if listed.any():
        logger.warning("%d ratings of items outside the catalogue are left out", int(np.count_nonzero(~listed)))
    return items, listed


def _merge(rows: _Rows, duplicates: str, columns: Columns, catalogue: Items, quiet: bool) -> _Rows:
    """Leave one rating per pair, pairs in order."""
    users, items, values, times = rows
    again = np.zeros(len(users), np.bool_)
    np.logical_and(users[1:] == users[:-1], items[1:] == items[:-1], out=again[1:])
    if not again.any():
        return rows
    if duplicates == "error":
        place = int(np.argmax(again))
        user, item = columns.user_ids[int(users[place])], catalogue.ids[int(items[place])]
        raise InvalidRatings(f"user {user!r} rated item {item!r} more than once: choose duplicates='last' or 'mean'")
    if columns.partly_timed and duplicates != "mean":
        raise InvalidRatings(
            "some ratings have no time that can be read, and a user rated an item more than once: fix the times, or "
            "choose duplicates='mean'"
        )
    keep = ~again
    if duplicates == "last":
        latest_of_each_pair(users, items, np.zeros(0, np.int64) if times is None else times, keep)
    elif duplicates == "first" and times is not None:
        # The earliest is the latest when both the order and the times (~t falls as t grows) are reversed.
        reversed_keep = np.empty_like(keep)
        latest_of_each_pair(users[::-1].copy(), items[::-1].copy(), ~times[::-1], reversed_keep)
        keep = reversed_keep[::-1]
    elif duplicates == "mean":
        group = np.cumsum(~again) - 1
        sums = np.bincount(group, values.astype(np.float64)) / np.bincount(group)
        rows = rows._replace(values=sums[group].astype(np.float32))
    if not quiet:
        logger.warning("%d repeated (user, item) pairs: kept %s", int(again.sum()), f"the {duplicates} of each")
    return rows.take(keep)


def _observed(values: NDArray[np.float32]) -> Scale:
    lo, hi = float(values.min()), float(values.max())
    return Scale(lo, hi if hi > lo else lo + 1.0, declared=False)
