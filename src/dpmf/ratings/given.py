"""What `fit` and `evaluate` are given: `Ratings`, or a table or an array that becomes some.

>>> import numpy as np
>>> as_ratings(np.array([[7, 1, 5], [7, 2, 4], [8, 1, 3]]), scale=(1, 5))
Ratings(3 ratings, 2 users, 2 items, scale 1:5)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmf.errors import InvalidArgument
from dpmf.ratings.assembly import assemble
from dpmf.ratings.formats.frames import columns_of
from dpmf.ratings.table import Ratings, Scale, catalogue_of


def as_ratings(
    data: Any,
    *,
    scale: Scale | tuple[float, float] | None = None,
    items: Any = None,
    columns: Mapping[str, str | int | None] | None = None,
    unrated: bool = False,
) -> Ratings:
    """Return ratings of a table, a sparse matrix or an array of rows; see `Ratings.of`.

    How a value is read depends on the type of its column, as everywhere: see docs/proofs/reading.md.

    Args:
        data: the ratings.
        scale, items, columns: as in `Ratings.of`.
        unrated: whether a table may do without ratings, which is enough for implicit feedback.
    """
    if isinstance(data, list | tuple | str | bytes | Path):
        kind = type(data).__name__
        raise InvalidArgument(
            f"cannot take ratings from a {kind}: give a table, an array of rows, or Ratings, which Ratings.read reads"
        )
    found = columns_of(data, columns=columns, unrated=unrated)
    return assemble(found, scale=scale, items=catalogue_of(data, items))


def refuse_beside(ratings: object, **given: object) -> None:
    """Refuse what describes a table beside ratings that are described already."""
    name = next((name for name, value in given.items() if value is not None), None)
    if name is not None:
        raise InvalidArgument(f"{name}=… describes a table, and these are {type(ratings).__name__}: make them with it")
