"""Why an item has its score for a person: what the score starts from, and what each of their own items adds.

A ranking part scores an item by a sum over what the person has, which is the explanation. A rating model is a ridge
regression, so a score is linear in the person's ratings: with z an item's factors and a 1 for the bias, and A the
matrix of the person's regression,

    score of item j = mean + c_j + Σ_r (z_j' A⁻¹ z_r)(rating_r - mean - c_r).

For implicit feedback each item r that they have adds (1 + α(1 - c_r)) v_j' A⁻¹ v_r, and what they do not have is part
of where the sum starts. The page shows the same numbers: see serve/page/js/foldin.js and pairs.js.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.frames import Columnar
from dpmf.html import show_table
from dpmf.kernels.als_implicit import extra_weights
from dpmf.kernels.dense import solve_plainly
from dpmf.kernels.ridge import equations_of_person
from dpmf.model.selection import position_of
from dpmf.ratings.ids import Id

if TYPE_CHECKING:
    from dpmf.model.person import Person
    from dpmf.model.ranking import Ranking


class Share(NamedTuple):
    """What one of a person's own items adds to a score.

    Attributes:
        item, title: the item that the person has.
        adds: what it adds; below 0 if it takes something away.
    """

    item: Id
    title: str
    adds: float


@dataclass(frozen=True)
class Explanation(Columnar):
    """Why an item has its score.

    Attributes:
        item, title: the item.
        score: what recommendations are ordered by, before it is kept within the scale.
        start: what the score would be without the person's own items; None for a ranking part, which starts from 0.
        shares: what each of their items adds, the most first. Together with `start` they add up to the score. There are
            none if a ranking part places the item by popularity alone.
        known: whether it is known how the item is rated; see `Recommendation.known`.
    """

    item: Id
    title: str
    score: float
    start: float | None
    shares: tuple[Share, ...]
    known: bool = True

    @property
    def because(self) -> Share | None:
        """The item that adds most, if any adds something."""
        return self.shares[0] if self.shares and self.shares[0].adds > 0 else None

    def to_columns(self) -> dict[str, Any]:
        """Return item, title and what it adds; what the score starts from is not in it."""
        return {name: [getattr(one, name) for one in self.shares] for name in Share._fields}

    def _repr_html_(self) -> str:
        return show_table(self.to_columns())


def explain(person: Person, item: object) -> Explanation:
    """Return why an item (id or title) has its score for a person; see `Person.explain`."""
    release = person.release
    place = position_of(release.items, item)
    if release.ranking is not None:
        start, (items, adds) = None, _of_ranking(release.ranking, person.owned, place)
        score = float(release.ranking.scores(person.rated, person.owned.values)[place])
    elif person.values is None:
        raise InvalidArgument(
            "a model keeps no ratings, which an explanation needs: fold the person in with model.release.fold_in(…)"
        )
    else:
        items = person.rated
        start, adds = _of_implicit(person, place) if release.is_implicit else _of_ratings(person, place)
        score = start + float(adds.sum())
    ids, titles = release.items.ids, release.items.titles
    shares = (Share(ids[int(one)], titles[one], float(part)) for one, part in zip(items, adds, strict=True))
    most_first = tuple(sorted(shares, key=lambda one: -one.adds))
    return Explanation(ids[place], titles[place], score, start, most_first, release.learnt.knows(place))


def _of_ranking(ranking: Ranking, owned: Any, place: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the items that count, and what each adds; none if the item is not in the head."""
    counted = ranking.restrict(owned)
    if ranking.places[place] < 0:
        return np.zeros(0, np.int32), np.zeros(0)
    adds = counted.values.astype(np.float64) * ranking.pair_scores(counted.items, int(ranking.places[place]))
    return ranking.items[counted.items], adds


def _of_ratings(person: Person, place: int) -> tuple[float, NDArray[np.float64]]:
    release = person.release
    start = release.mean + float(release.item_biases[place])
    if not len(person.rated):
        return start, np.zeros(0)
    assert person.values is not None
    Z, A = equations_of_person(person.rated, release.item_factors, release.penalties)
    z = np.concatenate([[1.0], release.item_factors[place].astype(np.float64)])
    rest = person.values.astype(np.float64) - release.mean - release.item_biases[person.rated].astype(np.float64)
    return start, (Z @ solve_plainly(A, z)) * rest


def _of_implicit(person: Person, place: int) -> tuple[float, NDArray[np.float64]]:
    release = person.release
    start = release.mean + float(release.item_biases[place])
    if not len(person.rated):
        return start, np.zeros(0)
    assert person.values is not None
    common, own = release.implicit_items, release.item_factors[person.rated].astype(np.float64)
    extra = extra_weights(person.values, release.confidence)
    A = common.gramian + own.T @ (extra[:, None] * own)
    w = solve_plainly(A, release.item_factors[place].astype(np.float64))
    pulls = 1.0 + extra * (1.0 - release.item_biases[person.rated].astype(np.float64))
    return start - float(w @ common.bias_sum), (own @ w) * pulls
