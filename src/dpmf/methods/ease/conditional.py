"""A ranking by conditional frequencies: of those who like one item, how many like the other?

Where popularity is flat there is no matrix of a few popular items whose inverse would say more. What is known is
Σ z z' at linked pairs, and how much people like groups of items together, such as series. An item k then scores the sum
of S_jk / S_jj over a person's items j. A pair of groups is shared among the pairs of their items by popularity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.ease.defaults import MOST_HEAD
from dpmf.methods.ease.item_item import ItemItem, largest_pairs
from dpmf.methods.ease.links import LinkedSums
from dpmf.methods.ease.questions import rows_of_groups
from dpmf.methods.ease.shrinkage import Array, Matrix, shrink_entries

_RIDGE = 0.1  # of the mean diagonal, added to S_jj: rare items are known badly
_TRUST = 0.2  # in pairs of groups beside linked pairs: the noise left in them is there for every item of a group
_STANDS_OUT = 4.0  # standard deviations of noise: what is estimated from noise alone can be nearly as large
_ROOT_TWO = 2.0**0.5
Positions = NDArray[np.int32]


class Grouped(NamedTuple):
    """Estimates of Σ z z' at pairs of groups of items, as if people liked one item of each.

    Attributes:
        rows: shape (n_items,), the group of every item, or -1.
        parts: shape (n_items,), which part of the popularity of its group an item has.
        matrix: symmetric, shape (G, G), 0 on the diagonal.
    """

    rows: Positions
    parts: Array
    matrix: Matrix


def grouped_sums(pairs: Array, sd: float, groups: Positions, head: Positions, counts: Array) -> Grouped | None:
    """Return what is known of pairs of groups; None if nothing stands out from the noise.

    Args:
        pairs: noisy sums over pairs of groups, as `add_group_pairs` forms them.
        sd: of the noise on each of them.
        groups: of every item, named by the first member.
        head: ascending first members of the groups that were measured.
        counts: above 0: about how much people like every item.
    """
    liked = np.asarray(np.bincount(groups, counts, len(counts)), np.float64)
    noise = sd / _ROOT_TWO  # of an element of a symmetric matrix of this Frobenius norm
    noisy = np.zeros((len(head), len(head)), np.float32)
    rows, columns = np.tril_indices(len(head), -1)
    noisy[rows, columns] = noisy[columns, rows] = pairs / _ROOT_TWO
    matrix = shrink_entries(noisy, noise, liked[head])
    if np.abs(matrix).max(initial=0.0) < _STANDS_OUT * noise:
        return None
    matrix *= np.float32(liked[head].sum() / liked.sum())  # over the head, pairs are scaled to length 1 there
    return Grouped(rows_of_groups(groups, head), counts / liked[groups], matrix)


def conditional(
    linked: LinkedSums, grouped: Grouped | None, counts: Array, n_users: float, most_pairs: int
) -> tuple[Positions, ItemItem]:
    """Return ascending positions of the items that something is known of, and their item-item matrix.

    Args:
        linked: what links say.
        grouped: what pairs of groups say, if they were measured.
        counts: above 0, of all items: about how much people like them.
        n_users: about how many people there are: in the whole catalogue the diagonal adds up to that.
        most_pairs: of an item, on average, in the result.
    """
    per_count, ridge = n_users / counts.sum(), _RIDGE * counts.mean()
    items = _chosen(linked, grouped, len(counts))
    S = _shared(grouped, items)
    places = np.full(len(counts), -1, np.int64)
    places[items] = np.arange(len(items))
    one, other = places[linked.first], places[linked.second]
    kept = (one >= 0) & (other >= 0)
    one, other, values = one[kept], other[kept], linked.values[kept].astype(np.float32)
    S[one, other] += values
    S[other, one] += values
    S /= (per_count * (counts[items] + ridge)).astype(np.float32)[:, None]
    np.clip(S, -1.0, 1.0, out=S)  # they are frequencies
    narrow = np.zeros((len(items), 0), np.float32)
    return items, ItemItem(narrow, narrow, *largest_pairs(S, counts[items], most_pairs))


def _chosen(linked: LinkedSums, grouped: Grouped | None, n_items: int) -> Positions:
    """Return ascending positions of the items of which most is said, as many as there is room for."""
    said = np.bincount(linked.first, linked.values, n_items) + np.bincount(linked.second, linked.values, n_items)
    if grouped is not None:
        known = grouped.rows >= 0
        of_groups = np.maximum(grouped.matrix.sum(axis=1), 0.0)
        said[known] += grouped.parts[known] * of_groups[grouped.rows[known]]
    most = np.argsort(-said, kind="stable")[:MOST_HEAD]
    return np.sort(most[said[most] > 0]).astype(np.int32)


def _shared(grouped: Grouped | None, items: Positions) -> Matrix:
    """Return what pairs of groups say of pairs of these items."""
    S = np.zeros((len(items), len(items)), np.float32)
    if grouped is None:
        return S
    inside = np.flatnonzero(grouped.rows[items] >= 0)
    rows, parts = grouped.rows[items[inside]], grouped.parts[items[inside]].astype(np.float32)
    shared = grouped.matrix[np.ix_(rows, rows)]
    shared *= np.float32(_TRUST) * parts
    shared *= parts[:, None]
    S[np.ix_(inside, inside)] = shared
    return S
