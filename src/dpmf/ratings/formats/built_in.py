"""The built-in synthetic ratings, which are generated rather than read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmf.errors import InvalidArgument
from dpmf.ratings.assembly import assemble
from dpmf.ratings.formats import Format
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.options import FILE_OPTIONS

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.table import Ratings


def _read(location: Location) -> Ratings:
    """Return the synthetic ratings, on another scale or for another catalogue of items if one is given."""
    from dpmf.ratings.synthetic import make

    if location.options.first_given(FILE_OPTIONS) is not None:
        raise InvalidArgument("synthetic ratings are generated, not read: leave out options about files")
    ratings, items = make(), location.read_items()
    if location.options.scale is None and items is None:
        return ratings
    users, rated = ratings.user_ids.array[ratings.users], ratings.catalogue.ids.array[ratings.items]
    return assemble(
        Columns.of_raw(users, rated, ratings.values, None),
        scale=location.options.scale or ratings.scale,
        items=items or ratings.catalogue,
        name=ratings.name,
    )


FORMAT = Format(name="synthetic", recognises=lambda path: False, read=_read)
