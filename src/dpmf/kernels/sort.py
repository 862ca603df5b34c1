"""Sorting ratings: counting sorts, duplicates, dense ids.

>>> import numpy as np
>>> order_pairs(np.array([1, 0, 1], np.int32), np.array([0, 1, 0], np.int32), 2, 2)
array([1, 0, 2])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.jit import kernel, short_form


@kernel
def pairs_in_order(users: NDArray[np.int32], items: NDArray[np.int32]) -> bool:
    """Tell whether the pairs (user, item) never decrease."""
    for p in range(1, len(users)):
        if users[p] < users[p - 1] or (users[p] == users[p - 1] and items[p] < items[p - 1]):
            return False
    return True


@short_form(pairs_in_order)
def pairs_in_order_reference(users: NDArray[np.int32], items: NDArray[np.int32]) -> bool:
    """Return what `pairs_in_order` returns."""
    rises, stays = users[1:] > users[:-1], users[1:] == users[:-1]
    return bool((rises | (stays & (items[1:] >= items[:-1]))).all())


@kernel
def _starts(codes: NDArray[np.int32], n_codes: int) -> NDArray[np.int64]:
    """Return where each code's run begins once the codes are sorted, with the total at the end."""
    starts = np.zeros(n_codes + 1, np.int64)
    for code in codes:
        starts[code + 1] += 1
    for c in range(n_codes):
        starts[c + 1] += starts[c]
    return starts


@kernel
def order_pairs(users: NDArray[np.int32], items: NDArray[np.int32], n_users: int, n_items: int) -> NDArray[np.int64]:
    """Return the stable order that sorts by user, then item: two counting sorts, least significant first."""
    cursor = _starts(items, n_items)
    by_item = np.empty(len(items), np.int64)
    for p in range(len(items)):
        by_item[cursor[items[p]]] = p
        cursor[items[p]] += 1
    cursor = _starts(users, n_users)
    order = np.empty(len(users), np.int64)
    for place in range(len(by_item)):
        p = by_item[place]
        order[cursor[users[p]]] = p
        cursor[users[p]] += 1
    return order


@short_form(order_pairs)
def order_pairs_reference(
    users: NDArray[np.int32], items: NDArray[np.int32], n_users: int, n_items: int
) -> NDArray[np.int64]:
    """Return what `order_pairs` returns."""
    return np.lexsort((items, users))


@kernel
def row_pointers(users: NDArray[np.int32], n_users: int) -> NDArray[np.int64]:
    """Return where each user's ratings begin, for users in order, with the total at the end."""
    return _starts(users, n_users)


@short_form(row_pointers)
def row_pointers_reference(users: NDArray[np.int32], n_users: int) -> NDArray[np.int64]:
    """Return what `row_pointers` returns."""
    return np.concatenate([[0], np.cumsum(np.bincount(users, minlength=n_users))])


@kernel
def kept_pointers(indptr: NDArray[np.int64], keep: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return where each user's ratings begin once only those marked are left."""
    kept = np.zeros(len(indptr), np.int64)
    for i in range(len(indptr) - 1):
        count = 0
        for p in range(indptr[i], indptr[i + 1]):
            count += keep[p]
        kept[i + 1] = kept[i] + count
    return kept


@short_form(kept_pointers)
def kept_pointers_reference(indptr: NDArray[np.int64], keep: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return what `kept_pointers` returns."""
    return np.concatenate([[0], np.cumsum(keep)])[indptr]


@kernel
def rows_ascend(rated: CsrPattern) -> bool:
    """Tell whether the items of every row are in ascending order, each once."""
    indptr, items = rated
    for i in range(len(indptr) - 1):
        for p in range(indptr[i] + 1, indptr[i + 1]):
            if items[p] <= items[p - 1]:
                return False
    return True


@short_form(rows_ascend)
def rows_ascend_reference(rated: CsrPattern) -> bool:
    """Return what `rows_ascend` returns."""
    first, last = rated.indptr[0], rated.indptr[-1]
    items = rated.items[first:last]
    ascends = np.append(items[1:] > items[:-1], True)
    ascends[rated.indptr[1:] - 1 - first] = True  # at the end of a row another begins; at that of an empty one, too
    return bool(ascends.all())


@kernel
def row_sums(indptr: NDArray[np.int64], values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the sum of each user's values."""
    sums = np.zeros(len(indptr) - 1)
    for i in range(len(sums)):
        for p in range(indptr[i], indptr[i + 1]):
            sums[i] += values[p]
    return sums


@short_form(row_sums)
def row_sums_reference(indptr: NDArray[np.int64], values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return what `row_sums` returns."""
    users = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.bincount(users, values, minlength=len(indptr) - 1).astype(np.float64)


@kernel
def latest_of_each_pair(
    users: NDArray[np.int32], items: NDArray[np.int32], timestamps: NDArray[np.int64], keep: NDArray[np.bool_]
) -> int:
    """Mark in `keep` (out) the latest rating of every pair, pairs in order; return the number of the others.

    The latest has the greatest timestamp, and among equal ones (or without any: an empty array) comes last.
    """
    dropped = 0
    p = 0
    while p < len(users):
        best = p
        end = p + 1
        while end < len(users) and users[end] == users[p] and items[end] == items[p]:
            if len(timestamps) == 0 or timestamps[end] >= timestamps[best]:
                best = end
            end += 1
        for q in range(p, end):
            keep[q] = q == best
        dropped += end - p - 1
        p = end
    return dropped


def latest_of_each_pair_reference(
    users: NDArray[np.int32], items: NDArray[np.int32], timestamps: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return what `latest_of_each_pair` writes."""
    latest: dict[tuple[int, int], int] = {}
    for p, pair in enumerate(zip(users.tolist(), items.tolist(), strict=True)):
        if pair not in latest or not len(timestamps) or timestamps[p] >= timestamps[latest[pair]]:
            latest[pair] = p
    keep = np.zeros(len(users), np.bool_)
    keep[list(latest.values())] = True
    return keep


@kernel
def mark_present(ids: NDArray[Any], lowest: int, present: NDArray[np.bool_]) -> None:
    """Set present[id - lowest] (out) for every id."""
    for one in ids:
        present[np.int64(one) - lowest] = True


@short_form(mark_present)
def mark_present_reference(ids: NDArray[Any], lowest: int, present: NDArray[np.bool_]) -> None:
    """Write what `mark_present` writes."""
    present[ids.astype(np.int64) - lowest] = True


@kernel
def look_up(ids: NDArray[Any], lowest: int, table: NDArray[np.int32], codes: NDArray[np.int32]) -> None:
    """Write to codes (out) table[id - lowest] for every id, and -1 for ids outside the table."""
    for p in range(len(ids)):
        place = np.int64(ids[p]) - lowest
        if 0 <= place < len(table):
            codes[p] = table[place]
        else:
            codes[p] = -1


@short_form(look_up)
def look_up_reference(ids: NDArray[Any], lowest: int, table: NDArray[np.int32], codes: NDArray[np.int32]) -> None:
    """Write what `look_up` writes."""
    places = ids.astype(np.int64) - lowest
    inside = (places >= 0) & (places < len(table))
    codes[:] = -1
    codes[inside] = table[places[inside]]
