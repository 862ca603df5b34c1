"""Items as vectors, and people as queries, such that inner products order items as a release does.

An expected rating is mean + b + c_j + u·v_j. Mean and b are the same for all items of a person, so the query (u, 1)
and the vectors (v_j, c_j) have inner products in the same order.

Of a ranking part, items of the head have the vectors right_h, and a person the query Σ_j w_j left_j. What single pairs
contribute is in no vector of this length; `agreement` tells how much of the lists is left without them.

>>> import dpmf
>>> ratings = dpmf.Ratings.of(["ann", "ann", "bob"], ["Heat", "Up", "Up"], [5, 4, 2], scale=(1, 5))
>>> release = dpmf.SGD(n_factors=2, n_epochs=3).fit(ratings, n_threads=1).release
>>> vectors, me = vectors_of(release), release.fold_in({"Heat": 5})
>>> query, offset = query_of(me)
>>> bool(np.allclose(vectors.items @ query + offset, me.predict(release.items.ids), atol=1e-5))
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.model import Person, Ranking, Release

Part: TypeAlias = Literal["ratings", "ranking"]
_ASKED, _LISTED = 200, 10  # items of which lists are compared, and how much of each


@dataclass(frozen=True, eq=False, repr=False)
class Vectors:
    """Items as vectors.

    Attributes:
        part: what of the release orders them.
        positions: shape (n,), int32, where in the catalogue they are, ascending: all of it, or the head of a ranking.
        items: shape (n, D), float32.
        agreement: which part of lists of ten the vectors alone find, as they are in dpmf for people who have one item;
            1.0 if the vectors say all there is.
    """

    part: Part
    positions: NDArray[np.int32]
    items: NDArray[np.float32]
    agreement: float

    def __repr__(self) -> str:
        return f"Vectors({len(self.items):,} items, {self.items.shape[1]} dimensions, {self.part})"


def part_of(release: Release, part: str | None = None) -> Part:
    """Return which part of a release is meant, the rating model if it has one; refuse one that it does not have."""
    if part is None:
        return "ratings" if release.predicts else "ranking"
    if part not in ("ratings", "ranking"):
        raise InvalidArgument(f"part={part!r} is not known: choose ratings or ranking")
    if part == "ratings" and not release.predicts:
        raise InvalidArgument("part='ratings': this release only ranks, choose part='ranking'")
    if part == "ranking" and not release.ranks:
        raise InvalidArgument("part='ranking': this release has no ranking part, choose part='ratings'")
    return "ratings" if part == "ratings" else "ranking"


def vectors_of(release: Release, part: str | None = None) -> Vectors:
    """Return the items of a release as vectors."""
    chosen = part_of(release, part)
    if chosen == "ratings":
        items = np.column_stack([release.item_factors, release.item_biases])
        return Vectors(chosen, np.arange(len(items), dtype=np.int32), np.ascontiguousarray(items, np.float32), 1.0)
    ranking = release.ranking
    assert ranking is not None
    if not ranking.right.shape[1]:
        raise InvalidArgument(
            "the ranking of this release has no factors, so that there is nothing to search by: its lists are by "
            "popularity and single pairs, which to='numpy' and to='onnx' have"
        )
    return Vectors(chosen, ranking.items, np.ascontiguousarray(ranking.right), _agreement(ranking))


def query_of(person: Person, part: str | None = None) -> tuple[NDArray[np.float32], float]:
    """Return a person as a query, and what to add to inner products to have the score that dpmf would give."""
    release = person.release
    if part_of(release, part) == "ratings":
        return np.append(person.factors, np.float32(1)), float(release.mean + person.bias)
    ranking = release.ranking
    assert ranking is not None
    owned = ranking.restrict(person.owned)
    return np.asarray(owned.values @ ranking.left[owned.items], np.float32), 0.0


def _agreement(ranking: Ranking) -> float:
    """Return how much of dpmf's lists inner products find for people with one item: from the release alone."""
    if not len(ranking.pairs):
        return 1.0
    head = len(ranking.items)
    asked = np.unique(np.linspace(0, head - 1, min(_ASKED, head)).astype(np.int64))
    found = []
    for place in asked:
        whole = ranking.scores(ranking.items[[place]], np.ones(1))[ranking.items]
        alone = ranking.right @ ranking.left[place]
        lists = [{*np.argsort(-np.delete(scores, place), kind="stable")[:_LISTED]} for scores in (whole, alone)]
        found.append(len(lists[0] & lists[1]) / max(len(lists[0]), 1))
    return float(np.mean(found))
