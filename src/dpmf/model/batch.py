"""The best items of many people at once, without a people × items matrix.

>>> import dpmf
>>> ratings = dpmf.Ratings.of(["ann", "ann", "bob"], ["Heat", "Up", "Up"], [5, 4, 2], scale=(1, 5))
>>> model = dpmf.SGD(n_factors=2, n_epochs=3).fit(ratings, n_threads=1)
>>> [[one.title for one in items] for items in model.recommend_batch(k=1)]
[[], ['Heat']]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.threads import run_tasks, thread_count
from dpmf.errors import InvalidArgument
from dpmf.frames import Columnar
from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.scores import NEVER, predict_pairs, score_tile
from dpmf.kernels.sort import rows_ascend
from dpmf.model.person import fold_in_many
from dpmf.model.ranking import Ranking
from dpmf.model.recommendation import Recommendations, as_recommendation
from dpmf.model.release import Release
from dpmf.model.selection import NO_FILTERS, Choice, Filters, Wanted, check_k, find_filters, select_best
from dpmf.ratings import Ratings

_PEOPLE_PER_TASK = 96  # a multiple of the people that are scored at a time


@dataclass(frozen=True, eq=False, repr=False)
class Batch(Columnar):
    """Recommendations for many people, as arrays; iterate for a list of `Recommendation` each.

    Attributes:
        release: the release that the items belong to.
        positions: shape (n, k), int32, catalogue positions, best first; -1 where there were too few candidates.
        scores: shape (n, k), float32, expected ratings, not clipped to the scale; or scores of the ranking part.
        ratings: shape (n, k), float32, likewise expected ratings, beside scores of the ranking part; else None.
        users: shape (n,), the ids of the people; None if they have none.
    """

    release: Release
    positions: NDArray[np.int32]
    scores: NDArray[np.float32]
    ratings: NDArray[np.float32] | None = None
    users: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        """Return sizes only: recommendations reveal a lot about people."""
        return f"Batch({len(self):,} people, {self.positions.shape[1]} items each)"

    @property
    def item_ids(self) -> NDArray[Any]:
        """The ids of the items, an array of objects of shape (n, k); None where there were too few candidates."""
        ids = np.array([*self.release.items.ids, None], object)
        return np.asarray(ids[self.positions])  # -1 is the last

    def to_columns(self, *, titles: bool = True) -> dict[str, Any]:
        """Return a row per recommendation: user, item, title, rank (from 1) and score, and rating if there is one.

        Rows are in the order of the people, then by rank; scores are as in `Person.recommend`. Without ids of users,
        they are numbers from 0.
        """
        there, release, scale = self.positions >= 0, self.release, self.release.scale
        people, places = np.nonzero(there)
        items, scores = self.positions[there], self.scores[there]
        if self._clips:
            scores = np.clip(scores, scale.lo, scale.hi)
        columns = {"user": people if self.users is None else self.users[people], "item": release.items.ids.array[items]}
        if titles:
            columns["title"] = np.array([*release.items.titles, ""], object)[items]
        columns |= {"rank": (places + 1).astype(np.int32), "score": scores}
        if self.ratings is not None:
            columns["rating"] = np.clip(self.ratings[there], scale.lo, scale.hi)
        return columns

    @property
    def _clips(self) -> bool:
        return not (self.release.is_implicit or self.release.ranks)

    def __getitem__(self, place: int) -> Recommendations:
        ratings = [None] * self.positions.shape[1] if self.ratings is None else self.ratings[place]
        listed = zip(self.positions[place], self.scores[place], ratings, strict=True)
        return Recommendations(
            as_recommendation(self.release, item, score, clip=self._clips, rating=rating)
            for item, score, rating in listed
            if item >= 0
        )

    def __iter__(self) -> Iterator[Recommendations]:
        return (self[place] for place in range(len(self)))


def recommend_many(
    release: Release,
    factors: NDArray[np.float32],
    biases: NDArray[np.float32],
    seen_indptr: NDArray[np.int64],
    seen_items: NDArray[np.int32],
    k: int,
    *,
    rated: Csr | None = None,
    filters: Filters = NO_FILTERS,
    users: NDArray[Any] | None = None,
    n_threads: int | None = None,
) -> Batch:
    """Return the k best items of each person, ordered by the ranking part of the release if it has one.

    Args:
        release: item factors and biases.
        factors, biases: of the people, shapes (n, K) and (n,).
        seen_indptr, seen_items: the items that are not recommended to each person (CSR).
        k: the length of a list, at most.
        rated: the items that each person has, with their weights in the ranking; needed for a ranking part.
        filters: what may be in a list.
        users: the ids of the people, if they have any.
        n_threads: all CPUs by default.
    """
    check_k(k)
    seen = CsrPattern(seen_indptr, seen_items)
    if not rows_ascend(seen):
        raise InvalidArgument("the items that people have seen must be in ascending order, each once per person")
    if len(seen_items) and not 0 <= seen_items.min() <= seen_items.max() < len(release.items):
        raise InvalidArgument("the items that people have seen must be in the catalogue")
    n_people = len(factors)
    best_items = np.full((n_people, min(k, len(release.items))), -1, np.int32)
    best_scores = np.zeros(best_items.shape, np.float32)
    if release.ranking is not None:
        if rated is None:
            raise InvalidArgument("this release ranks by what people have: give it as rated=…")
        _rank_many(release.ranking, rated, seen, filters, thread_count(n_threads), best_items, best_scores)
        best_scores[best_items < 0] = 0.0
        ratings = _predict_listed(release, factors, biases, best_items) if release.predicts_ratings else None
        return Batch(release, best_items, best_scores, ratings, users)
    behind = release.behind
    offsets = release.item_biases - (0 if behind is None else behind)
    if filters.allowed is not None:
        offsets[~filters.allowed] = 2 * NEVER
    of_lists = Filters(limit=filters.limit)  # what the offsets do not express

    release.tiles if filters.limit is None else release.columns  # noqa: B018  (computed once, before threads start)

    def work(task: int) -> None:
        from dpmf.kernels.best_items import find_best_items  # the compiler's own types: not needed for one person

        first = task * _PEOPLE_PER_TASK
        last = min(first + _PEOPLE_PER_TASK, n_people)
        if filters.limit is None:
            find_best_items(factors, release.tiles, offsets, seen, first, last, best_items, best_scores)
            return
        scores = np.empty(len(offsets), np.float32)
        for person in range(first, last):  # how far down its ranking a list reaches is not known beforehand
            score_tile(factors[person], release.columns, offsets, 0, scores)
            scores[seen_items[seen_indptr[person] : seen_indptr[person + 1]]] = NEVER
            chosen = select_best(scores, k, of_lists)
            best_items[person, : len(chosen)] = chosen
            best_scores[person, : len(chosen)] = scores[chosen]

    run_tasks(work, -(-n_people // _PEOPLE_PER_TASK), thread_count(n_threads))
    best_scores += (release.mean + biases)[:, None]
    if behind is not None:
        best_scores += behind[best_items]
    best_scores[best_items < 0] = 0.0
    return Batch(release, best_items, best_scores, users=users)


def recommend_people(
    release: Release,
    people: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[Any]],
    rated: Csr,
    k: int,
    *,
    n_threads: int | None = None,
    include_rated: bool = False,
    **filters: Unpack[Wanted],
) -> Batch:
    """Return the best items of people, with what they have left out unless `include_rated`.

    Args:
        release: item factors and biases.
        people: their factors, biases and ids.
        rated: the items that each has, with their weights in the ranking.
        k: the length of a list, at most.
        n_threads: all CPUs by default.
        include_rated, filters: as in `Person.recommend`.
    """
    factors, biases, users = people
    seen = rated.pattern
    if include_rated:
        seen = CsrPattern(np.zeros(len(users) + 1, np.int64), np.zeros(0, np.int32))
    found = find_filters(release.items, **filters)
    return recommend_many(
        release, factors, biases, *seen, k, rated=rated, filters=found, users=users, n_threads=n_threads
    )


def recommend_to_raters(
    release: Release, ratings: Ratings, k: int, *, n_threads: int | None = None, **choice: Unpack[Choice]
) -> Batch:
    """Return the best items of everybody in ratings, who are folded in; arguments as of `recommend_people`."""
    n_threads = thread_count(n_threads)
    biases, factors = fold_in_many(release, *ratings.csr, n_threads)
    weights = release.weigh(ratings.values)
    rated = Csr(ratings.indptr, ratings.items, np.ones_like(ratings.values) if weights is None else weights)
    people = factors, biases, ratings.user_ids.array
    return recommend_people(release, people, rated, k, n_threads=n_threads, **choice)


def _rank_many(
    ranking: Ranking,
    rated: Csr,
    seen: CsrPattern,
    filters: Filters,
    n_threads: int,
    best_items: NDArray[np.int32],  # out
    best_scores: NDArray[np.float32],  # out
) -> None:
    """Write the best items of each person by the ranking part."""
    from dpmf.kernels.best_ranked import find_best_ranked

    owned = ranking.restrict(rated)
    n_people, k = best_items.shape
    allowed = np.ones(len(ranking.popularity), np.bool_) if filters.allowed is None else filters.allowed
    ranking.in_order, ranking.columns  # noqa: B018  (computed once, before threads start)

    def work(task: int) -> None:
        first = task * _PEOPLE_PER_TASK
        last = min(first + _PEOPLE_PER_TASK, n_people)
        if filters.limit is None:
            find_best_ranked(owned, ranking.in_order, allowed, seen, first, last, best_items, best_scores)
            return
        for person, scores in enumerate(ranking.scores_of_people(owned, first, last), start=first):
            scores[seen.items[seen.indptr[person] : seen.indptr[person + 1]]] = NEVER
            chosen = select_best(scores, k, filters, ranking.order)
            best_items[person, : len(chosen)] = chosen
            best_scores[person, : len(chosen)] = scores[chosen]

    run_tasks(work, -(-n_people // _PEOPLE_PER_TASK), n_threads)


def _predict_listed(
    release: Release, factors: NDArray[np.float32], biases: NDArray[np.float32], listed: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Return the expected ratings of listed items, shape of `listed`; 0 where a list is short."""
    people, places = np.nonzero(listed >= 0)
    ratings, predicted = np.zeros(listed.shape, np.float32), np.empty(len(people), np.float32)
    of_items = release.item_factors, biases, release.item_biases, release.mean
    predict_pairs(people.astype(np.int32), listed[people, places], factors, *of_items, predicted)
    ratings[people, places] = predicted
    return ratings
