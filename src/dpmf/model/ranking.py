"""The ranking part of a release: scores of items from a person's own items, by an item-item matrix.

The matrix is known for some items, the head: its rows are what an owned item contributes to the score of each item, as
a product of two narrow matrices plus contributions of single pairs. All other items follow the head, most popular
first. Which of a person's items count, and how much, depends on their ratings alone: see `Ranking.weigh`.

>>> ranking = Ranking(
...     items=np.array([0, 2], np.int32), left=np.eye(2, dtype=np.float32), right=np.eye(2, dtype=np.float32)[::-1],
...     indptr=np.zeros(3, np.int64), pairs=np.zeros(0, np.int32), values=np.zeros(0, np.float32),
...     popularity=np.array([1, 9, 3, 2], np.float32), threshold=4.0, lowest_weight=0.5)
>>> weights = ranking.weigh(np.array([5], np.float32), highest=5.0)
>>> scores = ranking.scores(np.array([0]), weights)  # of somebody who gave 5 to the first item
>>> ranking.order[np.argsort(-scores[ranking.order], kind="stable")].tolist()
[2, 0, 1, 3]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.pair_scores import score_head, score_head_of_one
from dpmf.kernels.sort import rows_ascend_reference

if TYPE_CHECKING:
    from dpmf.kernels.best_ranked import RankedItems

LARGEST_FACTOR = 1e12  # in magnitude; no training gives more, and products of more would not be numbers


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """How a release ranks: scores of items from a person's own items.

    The score of item h of the head, for a person with items j of weights w_j > 0 in the head, is
    Σ_j w_j (left_j · right_h + pairs[j, h]).

    Attributes:
        items: shape (M,), int32, the head: ascending catalogue positions of the items that pairs are known of.
        left: shape (M, K), float32, what an owned item contributes.
        right: shape (M, K), float32, what it is multiplied with to score an item.
        indptr, pairs, values: further contributions of single pairs, sparse rows over the head: a row is an owned item,
            a column a scored one; columns ascend within a row. There may be none.
        popularity: shape (n_items,), float32, orders all other items, and those of equal score.
        threshold: the lowest rating that counts. For implicit feedback, the count from which on items weigh most; 0 if
            it does not matter how often a person had an item.
        lowest_weight: the weight of that rating, from 0 to 1; the highest rating on the scale weighs 1. For implicit
            feedback, what a count of one weighs beside the most.
    """

    items: NDArray[np.int32]
    left: NDArray[np.float32]
    right: NDArray[np.float32]
    indptr: NDArray[np.int64]
    pairs: NDArray[np.int32]
    values: NDArray[np.float32]
    popularity: NDArray[np.float32]
    threshold: float
    lowest_weight: float

    @classmethod
    def by_popularity(cls, popularity: NDArray[Any], threshold: float = 0.0, lowest_weight: float = 1.0) -> Ranking:
        """Return the ranking that is the same for everybody: the most popular items first."""
        nothing, no_items = np.zeros((0, 0), np.float32), np.zeros(0, np.int32)
        return cls(
            items=no_items,
            left=nothing,
            right=nothing,
            indptr=np.zeros(1, np.int64),
            pairs=no_items,
            values=np.zeros(0, np.float32),
            popularity=np.asarray(popularity, np.float32),
            threshold=threshold,
            lowest_weight=lowest_weight,
        )

    def for_catalogue(self, places: NDArray[np.int32]) -> Ranking:
        """Return the ranking of another catalogue, with what is known of items that are in both.

        Args:
            places: shape (n_items,), where in this catalogue each of its items is; -1 for one that is new, and then as
                popular as the least popular here.
        """
        from scipy.sparse import csr_array

        known = places >= 0
        items = np.flatnonzero(known & (self.places[places] >= 0)).astype(np.int32)
        rows, head = self.places[places[items]], len(self.items)
        pairs = csr_array((self.values, self.pairs, self.indptr), (head, head))[rows][:, rows]
        pairs.sort_indices()
        return replace(
            self,
            items=items,
            left=self.left[rows],
            right=self.right[rows],
            indptr=pairs.indptr.astype(np.int64),
            pairs=pairs.indices.astype(np.int32),
            values=pairs.data.astype(np.float32),
            popularity=np.where(known, self.popularity[places], self.popularity.min()).astype(np.float32),
        )

    def __repr__(self) -> str:
        factors, pairs = self.left.shape[1], len(self.pairs)
        return (
            f"Ranking({len(self.items):,} of {len(self.popularity):,} items, {factors} factor"
            f"{'s' if factors != 1 else ''}, {pairs:,} pair{'s' if pairs != 1 else ''})"
        )

    @cached_property
    def places(self) -> NDArray[np.int32]:
        """Where in the head each item of the catalogue is, shape (n_items,); -1 if it is not."""
        places = np.full(len(self.popularity), -1, np.int32)
        places[self.items] = np.arange(len(self.items))
        return places

    @cached_property
    def order(self) -> NDArray[np.int32]:
        """The catalogue positions of all items, most popular first, then in catalogue order: the order of ties."""
        return np.argsort(-self.popularity, kind="stable").astype(np.int32)

    @cached_property
    def columns(self) -> NDArray[np.float32]:
        """The right factors transposed, shape (K, M), for scoring many items at once."""
        return np.ascontiguousarray(self.right.T)

    @cached_property
    def in_order(self) -> RankedItems:
        """The catalogue in the order of ties, for finding the best items of many people."""
        from dpmf.kernels.best_ranked import RankedItems
        from dpmf.kernels.tiles import pack_items

        places = self.places[self.order]
        by_popularity = places[places >= 0]
        turns = np.empty(len(self.items), np.int32)
        turns[by_popularity] = np.arange(len(self.items), dtype=np.int32)
        return RankedItems(
            left=self.left,
            tiles=pack_items(self.right[by_popularity]),
            pairs=Csr(self.indptr, turns[self.pairs], self.values),
            head=self.items[by_popularity],
            others=self.order[places < 0],
            order=self.order,
            popularity=self.popularity,
        )

    def weigh(self, ratings: NDArray[np.floating[Any]], highest: float) -> NDArray[np.float32]:
        """Return how much the items with these ratings count.

        It is 0 below the threshold, and rises from the lowest weight at the threshold to 1 at the highest rating on the
        scale; 1 if they coincide.
        """
        given = np.asarray(ratings, np.float32)
        span = highest - self.threshold
        share = (given.astype(np.float64) - self.threshold) / span if span > 0 else np.ones(given.shape)
        weights = self.lowest_weight + (1 - self.lowest_weight) * np.clip(share, 0.0, 1.0)
        return np.where(given >= np.float32(self.threshold), weights, 0.0).astype(np.float32)

    @property
    def weighs_counts(self) -> bool:
        """Whether, for implicit feedback, it matters how often a person had an item."""
        return self.threshold > 1 and self.lowest_weight > 0

    def weigh_counts(self, counts: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Return how much items weigh that somebody had this often; see `dpmf.kernels.item_pairs.preference`.

        It is 1 for a count of one, and rises with the logarithm of the count; it is 1 for all if counts do not matter.
        """
        weights = np.ones(len(counts))
        if self.weighs_counts:
            share = np.log2(np.clip(np.asarray(counts, np.float64), 1.0, self.threshold)) / np.log2(self.threshold)
            weights += (1 / self.lowest_weight - 1) * share
        return weights.astype(np.float32)

    def restrict(self, rated: Csr) -> Csr:
        """Return the part of people's weighted items that scores depend on: places in the head of weight above 0."""
        places = self.places[rated.items]
        counts = (places >= 0) & (rated.values > 0)
        before = np.concatenate([[0], np.cumsum(counts)])
        return Csr(before[rated.indptr], places[counts], rated.values[counts])

    def scores_of_people(self, owned: Csr, start: int, stop: int) -> NDArray[np.float32]:
        """Return the scores of all items for people start..stop-1, given what `restrict` returned.

        Items of the head have the scores defined above. All others have the same score, just below the lowest of the
        head. A person with no weighted item in the head gets the popularity of every item. Sorting by score,
        and by `order` among equals, is the ranking.
        """
        of_head = np.empty((stop - start, len(self.items)), np.float32)
        score_head(owned, self.left, self.columns, self._pairs, start, stop, of_head)
        return self._beside_others(of_head, np.diff(owned.indptr[start : stop + 1]) > 0)

    def _beside_others(self, of_head: NDArray[np.float32], known: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return scores of all items from those of the head; `known` are the people with a weighted item in it."""
        lowest = of_head.min(axis=1, initial=np.float32(np.finfo(np.float32).max))
        scores = np.repeat(np.nextafter(lowest, np.float32(-np.inf))[:, None], len(self.popularity), axis=1)
        scores[:, self.items] = of_head
        scores[~known] = self.popularity
        return scores

    def scores(self, positions: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float32]:
        """Return the scores of all items for one person; see `scores_of_people`.

        Args:
            positions: catalogue positions of the items that they have.
            weights: how much each counts, from `weigh`.
        """
        rated = Csr(np.array([0, len(positions)]), np.asarray(positions, np.int32), np.asarray(weights, np.float32))
        owned = self.restrict(rated)
        of_head = score_head_of_one(owned.items, owned.values, self.left, self.right, self._pairs)
        return np.asarray(self._beside_others(of_head[None], np.array([len(owned.items) > 0]))[0])

    def pair_scores(self, owned: NDArray[Any], place: int) -> NDArray[np.float64]:
        """Return what each owned item adds to the score of one; all are places in the head."""
        adds: NDArray[np.float64] = self.left[owned].astype(np.float64) @ self.right[place].astype(np.float64)
        for number, row in enumerate(owned):
            pairs = slice(self.indptr[row], self.indptr[row + 1])
            adds[number] += float(self.values[pairs][self.pairs[pairs] == place].sum())
        return adds

    def knows(self, position: int) -> bool:
        """Tell whether an item contributes to any score."""
        place = self.places[position]
        return bool(place >= 0 and (self.left[place].any() or self.indptr[place] < self.indptr[place + 1]))

    @property
    def _pairs(self) -> Csr:
        return Csr(self.indptr, self.pairs, self.values)

    def check(self, n_items: int) -> None:
        """Raise ValueError unless all parts are valid and consistent: kernels rely on it."""
        floats, head = (self.left, self.right, self.values, self.popularity), self.items
        if any(one.dtype != np.float32 for one in floats):
            raise ValueError("ranking factors, values and popularity should be float32")
        if head.dtype != np.int32 or self.pairs.dtype != np.int32 or self.indptr.dtype != np.int64:
            raise ValueError("ranking items and pairs should be int32, and their row pointers int64")
        if any(one.ndim != 1 for one in (head, self.indptr, self.pairs, self.values, self.popularity)):
            raise ValueError("ranking items, pairs, values and popularity should be vectors")
        if self.left.ndim != 2 or self.left.shape != self.right.shape or len(self.left) != len(head):
            raise ValueError(
                f"{len(head)} ranked items, but ranking factors of shapes {self.left.shape} and {self.right.shape}"
            )
        if self.popularity.shape != (n_items,):
            raise ValueError(f"{n_items} items, but a popularity of shape {self.popularity.shape}")
        if not _ascends(np.array([0, len(head)]), head, n_items):
            raise ValueError("the ranked items should be ascending positions in the catalogue")
        if self.indptr.shape != (len(head) + 1,) or not _ascends(self.indptr, self.pairs, len(head)):
            raise ValueError("the pairs of the ranking should be ascending rows over the ranked items")
        if self.values.shape != self.pairs.shape:
            raise ValueError(f"{len(self.pairs)} pairs, but {len(self.values)} values of them")
        if not all(np.isfinite(one).all() for one in floats):
            raise ValueError("ranking factors, values and popularity should be finite")
        if any(np.abs(one).max(initial=0) > LARGEST_FACTOR for one in (self.left, self.right, self.values)):
            raise ValueError(f"ranking factors and values should be at most {LARGEST_FACTOR:g} in magnitude")
        if not (math.isfinite(self.threshold) and 0 <= self.lowest_weight <= 1):
            raise ValueError("the threshold should be a number, and the lowest weight one from 0 to 1")


def _ascends(indptr: NDArray[np.int64], columns: NDArray[np.int32], n_columns: int) -> bool:
    """Tell whether rows are well formed, and their columns ascending and in range."""
    if indptr[0] != 0 or indptr[-1] != len(columns) or (np.diff(indptr) < 0).any():
        return False
    if len(columns) and not 0 <= columns.min() <= columns.max() < n_columns:
        return False
    return rows_ascend_reference(CsrPattern(indptr, columns))  # few enough to do without the compiler
