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
from dpmf.ratings.table import MOST_COUNT, Ratings, Scale
from dpmf.ratings.times import Times

logger = logging.getLogger(__name__)
Duplicates = Literal["last", "first", "mean", "sum", "error"]


class _Rows(NamedTuple):
    """Ratings on their way: positions of users and items, values, and times if there are any."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    times: Times | None

    def take(self, chosen: NDArray[Any]) -> _Rows:
        """Return the rows that a mask or a list of positions chooses."""
        times = None if self.times is None else self.times.take(chosen)
        return _Rows(self.users[chosen], self.items[chosen], self.values[chosen], times)


def assemble(
    columns: Columns,
    *,
    scale: Scale | tuple[float, float] | None = None,
    items: Items | None = None,
    duplicates: str | None = None,
    missing: float | None = None,
    name: str = "",
    quiet: bool = False,
) -> Ratings:
    """Return checked, ordered ratings; arguments as in `Ratings.of`, and `quiet` to log nothing about duplicates.

    Raises:
        InvalidRatings: no rating at all, a value that is missing, infinite or off the scale, a count that is not above
            0, or (with duplicates="error") a pair rated twice. The message names the row.
    """
    scale = None if scale is None else Scale.of(scale)
    if columns.counts:
        scale = Scale.of_counts(scale)
    counts = scale is not None and scale.counts
    duplicates = ("sum" if counts else "last") if duplicates is None else duplicates
    if duplicates not in get_args(Duplicates):
        raise InvalidArgument(f"duplicates={duplicates!r} is not known: choose from {', '.join(get_args(Duplicates))}")
    if duplicates == "sum" and not counts:
        raise InvalidArgument("duplicates='sum' is for counts, and these are ratings: choose 'last' or 'mean'")
    rows = _Rows(columns.user_codes, columns.item_codes, columns.values, columns.times)
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
        if len(columns.item_ids) and len(items) and not (items.ids.encode(columns.item_ids.array) >= 0).any():
            raise InvalidRatings(
                f"none of the items in the ratings, such as {columns.item_ids[0]!r}, is in the catalogue, which has "
                f"{items.ids[0]!r}, …: name the list of these items, or its column with item_columns={{'item': …}}"
            )
        raise InvalidRatings("there are no ratings: the source is empty, or nothing in it is in the catalogue")
    if not pairs_in_order(rows.users, rows.items):
        rows = rows.take(order_pairs(rows.users, rows.items, len(columns.user_ids), len(items)))
    rows = _merge(rows, duplicates, columns, items, quiet)
    if scale is not None and scale.counts:
        rows = rows._replace(values=np.minimum(rows.values, np.float32(scale.hi)))
    return Ratings(
        indptr=row_pointers(rows.users, len(columns.user_ids)),
        items=rows.items,
        values=rows.values,
        timestamps=None if rows.times is None else rows.times.whole,
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
        off = _off_scale(values, scale)
        if absent is not None:
            off &= ~absent
        if off.any():
            place = int(np.argmax(off))
            if scale.counts and values[place] <= 0:
                raise InvalidRatings(
                    f"the count {values[place]:g} in row {place + columns.first_row} is not above 0: fix or remove it, "
                    f"or say missing={values[place]:g} if it counts nothing"
                )
            raise InvalidRatings(
                f"the rating {values[place]:g} in row {place + columns.first_row} is off the scale {scale}: "
                "declare the right scale, which `dpmf data describe` finds, or "
                f"missing={values[place]:g} if that means no rating"
            )
    return None if absent is None else ~absent


def _off_scale(values: NDArray[np.float32], scale: Scale) -> NDArray[np.bool_]:
    """Return which values are not on the scale; larger counts than any, unless a limit was declared, are cut later."""
    if scale == Scale.of_counts():
        return values <= 0
    return (values < scale.lo) | (values > scale.hi) | (scale.counts & (values <= 0))


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
    keep = ~again
    if duplicates in ("last", "sum"):  # counts that are added up have the time of the last of them
        latest_of_each_pair(users, items, np.zeros(0, np.int64) if times is None else times.ranks(), keep)
    elif duplicates == "first" and times is not None:
        # The earliest is the latest when both the order and the times (~t falls as t grows) are reversed.
        reversed_keep = np.empty_like(keep)
        latest_of_each_pair(users[::-1].copy(), items[::-1].copy(), ~times.ranks()[::-1], reversed_keep)
        keep = reversed_keep[::-1]
    if duplicates in ("mean", "sum"):
        group = np.cumsum(~again) - 1
        sums = np.bincount(group, values.astype(np.float64))
        merged = sums / np.bincount(group) if duplicates == "mean" else np.minimum(sums, MOST_COUNT)
        rows = rows._replace(values=merged[group].astype(np.float32))
    if not quiet and duplicates != "sum":
        logger.warning("%d repeated (user, item) pairs: kept %s", int(again.sum()), f"the {duplicates} of each")
    return rows.take(keep)


def _observed(values: NDArray[np.float32]) -> Scale:
    lo, hi = float(values.min()), float(values.max())
    return Scale(lo, hi if hi > lo else lo + 1.0, declared=False)
