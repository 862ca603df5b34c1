"""What is recommended: items with titles and scores.

>>> list(Recommendations([Recommendation(7, "Heat", 4.5)]).to_columns())
['item', 'title', 'score']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dpmf.frames import Columnar
from dpmf.html import show_table
from dpmf.ratings.ids import Id

if TYPE_CHECKING:
    from dpmf.model.release import Release


_FOR_EVERYBODY = {
    "ratings": "Nothing personal: by how well everybody likes items",
    "popularity": "Nothing personal: by popularity",
    "nothing": "In no particular order: nothing is known of any item beyond noise",
}


class Recommendation(NamedTuple):
    """A recommended item.

    Attributes:
        item, title: the item.
        score: what it is ordered by: the expected rating, or the score of the ranking part if the release has one.
        rating: the expected rating, if the release has a rating model beside a ranking part; else None.
        known: whether it is known how the item is rated. If not, its expected rating comes from what the list of items
            says about it, such as genres, or is that of any item.
    """

    item: Id
    title: str
    score: float
    rating: float | None = None
    known: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the fields, without a rating if there is none, and `known` if it is false."""
        usual = {"rating": None, "known": True}
        return {name: value for name, value in self._asdict().items() if name not in usual or value != usual[name]}


class Recommendations(list[Recommendation], Columnar):
    """A list of recommended items, best first; also a table of them.

    Attributes:
        ordered_by: what decides the order of somebody's list, see `Person.ordered_by`; None for other lists.
    """

    ordered_by: str | None = None

    def to_columns(self) -> dict[str, Any]:
        """Return item, title and score, rating if there is one beside the score, and known if any is not."""
        rated = ["rating"] if any(one.rating is not None for one in self) else []
        marked = [] if all(one.known for one in self) else ["known"]
        names = ["item", "title", "score", *rated, *marked]
        return {name: [getattr(one, name) for one in self] for name in names}

    def _repr_html_(self) -> str:
        return show_table(self.to_columns(), _FOR_EVERYBODY.get(self.ordered_by or ""))


def as_recommendation(
    release: Release, item: Any, score: Any, *, clip: bool, rating: Any | None = None
) -> Recommendation:
    """Return the recommendation for an item position and a score; ratings are kept within the scale."""
    shown = _clipped(release, score) if clip else float(score)
    stars = None if rating is None else round(_clipped(release, rating), 4)
    place = int(item)
    known = release.learnt.knows(place)
    return Recommendation(release.items.ids[place], release.items.titles[place], round(shown, 4), stars, known)


def _clipped(release: Release, rating: Any) -> float:
    return min(max(float(rating), release.scale.lo), release.scale.hi)
