"""One person: profile, predictions and recommendations, from a release and their own ratings alone.

Nothing here sends or stores anything; it runs where the ratings are.

>>> import numpy as np
>>> from dpmf.model.release import Release, Ridge
>>> from dpmf.privacy import Guarantee
>>> from dpmf.ratings import Items, Scale
>>> release = Release(
...     items=Items.of([1, 2, 3], ["Heat", "Alien", "Up"]), scale=Scale(1, 5), mean=3.0,
...     item_factors=np.array([[1, 0], [1, 0], [0, 1]], np.float32), item_biases=np.zeros(3, np.float32),
...     ridge=Ridge(1.0, 0.1), configuration={}, guarantee=Guarantee.none())
>>> me = release.fold_in({"Heat": 5})
>>> [one.title for one in me.recommend(k=2)]
['Alien', 'Up']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.kernels.als_implicit import solve_implicit, solve_implicit_person
from dpmf.kernels.csr import Csr
from dpmf.kernels.ridge import solve_people, solve_person
from dpmf.kernels.scores import NEVER
from dpmf.model.explanation import Explanation, explain
from dpmf.model.own import own_ratings
from dpmf.model.ranking import Ranking
from dpmf.model.recommendation import Recommendations, as_recommendation
from dpmf.model.release import Release
from dpmf.model.selection import NO_FILTERS, Filters, check_k, find_filters, position_of, select_best
from dpmf.ratings.table import MOST_COUNT

_LARGEST_COUNT = 1e300  # integers may be larger than any float


@dataclass(frozen=True, eq=False, repr=False)
class Person:
    """A person's bias and factors, with a release to predict from.

    Attributes:
        release: the release that they were fitted to.
        bias: how far above or below others this person rates.
        factors: shape (K,).
        rated: shape (n,), int32, positions of the items already rated.
        unknown: rated items that are not in the catalogue, and were left out.
        weights: shape (n,), how much each rated item counts in the ranking; None for 1 each.
        values: shape (n,), the ratings; None if they are not known any more, as those of a model's users.
    """

    release: Release
    bias: float
    factors: NDArray[np.float32]
    rated: NDArray[np.int32]
    unknown: tuple[object, ...] = ()
    weights: NDArray[np.float32] | None = None
    values: NDArray[np.float32] | None = None

    def __repr__(self) -> str:
        """Return a size only: ratings do not belong in a log."""
        return f"Person({len(self.rated)} rated items, {self.release!r})"

    def predict(self, items: Iterable[object]) -> NDArray[np.float64]:
        """Return the expected ratings of items (ids or titles), clipped to the scale; scores for implicit feedback."""
        release, places = self.release, [position_of(self.release.items, item) for item in items]
        release.check_predicts()
        scores = self._predictions()[places].astype(np.float64)
        return scores if release.is_implicit else np.clip(scores, release.scale.lo, release.scale.hi)

    def recommend(
        self,
        k: int = 10,
        *,
        only: Iterable[object] | None = None,
        exclude: Iterable[object] = (),
        only_genres: Iterable[str] | None = None,
        exclude_genres: Iterable[str] = (),
        most_per_genre: int | None = None,
        include_rated: bool = False,
    ) -> Recommendations:
        """Return the k best items, best first; fewer if fewer pass the filters.

        They are ordered by expected rating, or by the ranking part of the release if it has one.

        Args:
            k: the length of the list, at most.
            only: items (ids or titles) to choose from; all of them by default.
            exclude: items to leave out.
            only_genres: choose from items that have at least one of these genres.
            exclude_genres: leave out items that have any of these genres.
            most_per_genre: going down the ranking, skip an item once one of its genres has this many in the list. Items
                without genres are not limited.
            include_rated: whether items already rated may come up again.
        """
        filters = find_filters(
            self.release.items,
            only=only,
            exclude=exclude,
            only_genres=only_genres,
            exclude_genres=exclude_genres,
            most_per_genre=most_per_genre,
        )
        release = self.release
        chosen, scores = self.best(k, filters, include_rated=include_rated)
        beside = release.ranking is not None and release.predicts_ratings
        ratings = self._predictions()[chosen] if beside else [None] * len(chosen)
        clip = release.ranking is None and not release.is_implicit
        found = Recommendations(
            as_recommendation(release, item, scores[item], clip=clip, rating=rating)
            for item, rating in zip(chosen, ratings, strict=True)
        )
        found.ordered_by = self.ordered_by
        return found

    def explain(self, item: object) -> Explanation:
        """Return why an item (id or title) has its score: what each of the person's own items adds to it.

        Raises:
            InvalidArgument: this is a user of a model, whose ratings are not kept, and there is no ranking part.
        """
        return explain(self, item)

    def best(
        self, k: int, filters: Filters = NO_FILTERS, *, include_rated: bool = False
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the positions of the k best items, best first, and the scores of all items."""
        check_k(k)
        ranking = self.release.ranking
        scores = self._predictions() if ranking is None else ranking.scores(self.rated, self._weights)
        if not include_rated:
            scores[self.rated] = NEVER
        behind = self.release.behind
        by = scores if behind is None else np.asarray(scores - behind, np.float32)
        return select_best(by, k, filters, None if ranking is None else ranking.order), scores

    @property
    def ordered_by(self) -> str:
        """What decides the order of this person's recommendations.

        "pairs" of items and "factors" are about their own taste. "ratings", how well everybody likes items, and
        "popularity" are the same for everybody. With "nothing", the order is that of noise, or of the catalogue.
        """
        release = self.release
        if release.ranking is not None:
            if len(release.ranking.restrict(self.owned).items):
                return "pairs"
        elif (release.learnt.factors or release.learnt.beside) and self.factors.any():
            return "factors"
        elif release.predicts_ratings and np.ptp(release.item_biases) > 0:
            return "nothing" if release.learnt.rated == 0 else "ratings"
        return "nothing" if release.learnt.popular == 0 or not release.orders else "popularity"

    @property
    def owned(self) -> Csr:
        """The rated items with their weights in the ranking, as the only row."""
        return Csr(np.array([0, len(self.rated)]), self.rated, self._weights)

    @property
    def _weights(self) -> NDArray[np.float32]:
        return np.ones(len(self.rated), np.float32) if self.weights is None else self.weights

    def _predictions(self) -> NDArray[np.float32]:
        release = self.release
        scores = release.item_factors @ self.factors + release.item_biases + np.float32(release.mean + self.bias)
        return np.asarray(scores, np.float32)


def fold_in(release: Release, ratings: Mapping[Any, float] | Iterable[Any]) -> Person:
    """Return a person fitted to their own ratings: ridge regression of bias and factors, weights in the ranking.

    Args:
        release: the release to fit to.
        ratings: item (id first, then exact title) → rating on the release's scale. For implicit feedback, the items
            that the person has: a list, a set, or a mapping to how often, which is ignored unless the release weighs
            counts; then an item that comes twice counts twice. Also a table with columns item and rating, or an array
            of rows item, rating: see `dpmf.model.own.own_ratings`. Items outside the catalogue are left out and listed
            in `Person.unknown`.
    """
    ratings = own_ratings(ratings)
    if not release.is_implicit and not isinstance(ratings, Mapping):
        raise InvalidArgument("this release goes by ratings: give a mapping from items to ratings, not items alone")
    if isinstance(ratings, str | bytes) or not isinstance(ratings, Iterable):
        raise InvalidArgument(f"{ratings!r} is not a list of items: give [{ratings!r}]")
    known: dict[int, float] = {}
    unknown = []
    for item in ratings:
        value = 1.0
        if isinstance(ratings, Mapping) and (release.weighs_counts or not release.is_implicit):
            value = ratings[item]
            _check_rating(release, item, value)
        position = release.items.find(item)
        if position is None:
            unknown.append(item)
        elif position in known and not release.is_implicit:
            raise InvalidArgument(f"{item!r} is rated twice, by id and by title: keep one")
        elif release.is_implicit:
            known[position] = min(known.get(position, 0.0) + float(value), MOST_COUNT)
        else:
            known[position] = float(value)
    if unknown and not known:
        raise InvalidArgument(f"none of the rated items is in the catalogue (the first is {unknown[0]!r})")
    items = np.array(sorted(known), np.int32)
    values = np.array([known[item] for item in items.tolist()], np.float32)
    bias, factors = fit_one(release, items, values)
    return Person(release, bias, factors, items, tuple(unknown), release.weigh(values), values)


def fit_one(
    release: Release, items: NDArray[np.int32], values: NDArray[np.float32]
) -> tuple[float, NDArray[np.float32]]:
    """Return what `fold_in_many` fits to one person, up to rounding: loading its kernel takes longer than the fit."""
    if not release.predicts:
        return 0.0, np.zeros(release.n_factors, np.float32)
    of_items = release.item_factors, release.item_biases, release.mean
    with np.errstate(over="ignore", invalid="ignore"):
        if release.is_implicit:
            return 0.0, solve_implicit_person(items, values, release.implicit_items, release.confidence).astype(
                np.float32
            )
        solved = solve_person(items, values, *of_items, release.penalties).astype(np.float32)
    return float(solved[0]), solved[1:]


def fold_in_many(
    release: Release,
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    n_threads: int = 1,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return biases, shape (n,), and factors, shape (n, K), of many people given by their ratings (CSR).

    All are zero if the release has no rating model.
    """
    from dpmf.engine.threads import run_tasks

    n_people = len(indptr) - 1
    biases, factors = np.zeros(n_people, np.float32), np.zeros((n_people, release.n_factors), np.float32)
    if not release.predicts:
        return biases, factors
    chunk = 256

    rated, penalties = Csr(indptr, items, values), release.penalties
    owned_items = release.implicit_items if release.is_implicit else None  # computed once, before threads start

    def solve(task: int) -> None:
        first, last = task * chunk, min((task + 1) * chunk, n_people)
        if owned_items is not None:
            solve_implicit(rated, first, last, owned_items, release.confidence, factors)
            return
        of_items = release.item_factors, release.item_biases, release.mean
        solve_people(rated, first, last, *of_items, penalties, biases, factors)

    run_tasks(solve, -(-n_people // chunk), n_threads)
    return biases, factors


def similar_items(release: Release, item: object, k: int = 10) -> Recommendations:
    """Return the k items most similar to one item.

    By the ranking part, if there is one and it knows the item: the score that each item has for somebody who has
    nothing but this one. Else by the cosine of their factors. There are none if no more than noise is known of the
    item, and none like it of which no more is known.
    """
    check_k(k)
    place = position_of(release.items, item)
    if release.ranking is not None and release.ranking.knows(place):
        return _often_together(release, release.ranking, place, k)
    factors = release.distinctive_factors
    lengths = np.linalg.norm(factors, axis=1)
    if release.learnt.with_factors is not None:
        lengths[~release.learnt.with_factors] = 0
    if not lengths[place]:
        return Recommendations()
    unit = factors / np.maximum(lengths, np.finfo(np.float32).tiny)[:, None]
    scores = np.asarray(unit @ unit[place], np.float32)
    scores[lengths == 0] = NEVER  # nobody rated them, or too few people, so nothing is known about them
    scores[place] = NEVER
    return best_of(release, scores, k, clip=False)


def _often_together(release: Release, ranking: Ranking, place: int, k: int) -> Recommendations:
    scores = ranking.scores(np.array([place]), np.ones(1))
    scores[ranking.places < 0] = NEVER
    scores[place] = NEVER
    chosen = select_best(scores, k, order=ranking.order)
    return Recommendations(as_recommendation(release, item, scores[item], clip=False) for item in chosen)


def best_of(
    release: Release, scores: NDArray[np.float32], k: int, filters: Filters = NO_FILTERS, *, clip: bool
) -> Recommendations:
    """Return the k items with the highest scores; `clip` keeps the scores shown within the rating scale."""
    chosen = select_best(scores, k, filters)
    return Recommendations(as_recommendation(release, item, scores[item], clip=clip) for item in chosen)


def _check_rating(release: Release, item: object, value: Any) -> None:
    scale = release.scale
    if release.is_implicit:
        if not isinstance(value, int | float | np.number) or not 0 < value < np.inf or value > _LARGEST_COUNT:
            raise InvalidArgument(f"the count {value!r} of {item!r} is not a number above 0")
        return
    if not isinstance(value, int | float | np.number) or not scale.lo <= float(value) <= scale.hi:
        raise InvalidArgument(f"the rating {value!r} of {item!r} is not on the scale {scale}")
