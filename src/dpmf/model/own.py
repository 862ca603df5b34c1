"""One person's own ratings from a table or an array; and many people's, as a release takes them.

>>> own_ratings(np.array([[10, 5], [20, 4]]))
{10: 5.0, 20: 4.0}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.ratings import Ratings
from dpmf.ratings.formats.roles import usual_place
from dpmf.ratings.given import as_ratings
from dpmf.ratings.item_tables import table_columns
from dpmf.ratings.kinds import array_of, ids_of, numbers_of

if TYPE_CHECKING:
    from dpmf.model.release import Release


def own_ratings(data: Any) -> Mapping[Any, float] | Iterable[Any]:
    """Return one person's ratings, by item, of a table or an array; anything else as it is.

    A table has columns with the usual names, of the item (or the title) and of the rating or count, if there is one; an
    array has rows item, rating, or user, item, rating. Its users, if it has any, are one and the same.
    """
    if isinstance(data, Mapping):
        return data
    if isinstance(data, Ratings):
        return _of_columns({name: np.asarray(column) for name, column in data.to_columns().items()})
    if (table := table_columns(data)) is not None:
        return _of_columns(_roles_of_table(type(data).__name__, table))
    if isinstance(data, np.ndarray) and data.ndim == 2:
        if data.shape[1] not in (2, 3):
            raise InvalidRatings(f"the array has {data.shape[1]} columns: one person's rows are item, rating")
        return _of_columns(dict(zip(("user", "item", "rating")[3 - data.shape[1] :], data.T, strict=True)))
    return data  # type: ignore[no-any-return]


def _roles_of_table(kind: str, table: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    names = list(table)
    places = {role: usual_place(role, names) for role in ("user", "item", "rating", "count")}
    if places["item"] is None and "title" in names:
        places["item"] = names.index("title")
    if places["item"] is None:
        raise InvalidRatings(f"the {kind} has no column for the item: it has {', '.join(names)}; call that one item")
    return {role: array_of(table[names[place]]) for role, place in places.items() if place is not None}


def _of_columns(columns: Mapping[str, NDArray[Any]]) -> Mapping[Any, float] | Iterable[Any]:
    if "user" in columns and len(set(ids_of(columns["user"]).tolist())) > 1:
        raise InvalidRatings("these are ratings of several people: fold in one of them, or use recommend_batch")
    items: list[Any] = ids_of(columns["item"]).tolist()
    values = columns.get("rating", columns.get("count"))
    if values is None:
        return items
    numbers_of(values)  # refuses what is no column of numbers
    given: dict[Any, float] = {}
    for item, value in zip(items, values.astype(np.float64).tolist(), strict=True):
        if item in given:
            raise InvalidArgument(f"{item!r} is rated twice: keep one")
        given[item] = value
    return given


def ratings_for(release: Release, data: Any, columns: Mapping[str, str | int | None] | None = None) -> Ratings:
    """Return many people's ratings for a release: of a table or an array, or as they are if the catalogue is that one.

    A table or an array is read with the catalogue of the release, and with its scale; items that are not in it are left
    out, which a warning tells.
    """
    if not isinstance(data, Ratings):
        scale = None if release.is_implicit else release.scale
        data = as_ratings(data, scale=scale, items=release.items, columns=columns, unrated=release.is_implicit)
    elif data.catalogue.ids != release.items.ids:
        raise InvalidArgument("the ratings are of another catalogue: make them with items=release.items")
    return as_weighed(release, "the table", data)


def as_weighed(release: Release, data: str, ratings: Ratings) -> Ratings:
    """Return ratings with the values that a release goes by, or refuse them; `data` is what they are called."""
    if not release.is_implicit and ratings.scale.counts:
        raise InvalidArgument(f"{data} has counts, not ratings, and this release goes by ratings")
    if release.weighs_counts and not ratings.scale.counts:  # ratings say nothing about counts
        return replace(ratings, values=np.ones_like(ratings.values))
    return ratings
