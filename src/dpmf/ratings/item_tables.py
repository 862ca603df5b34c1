"""Catalogues that are in memory already: columns of pandas, polars and Arrow tables, by their usual names.

>>> import pandas as pd
>>> frame = pd.DataFrame({"movieId": [7, 8], "title": ["Heat (1995)", None]})
>>> pick_columns("the DataFrame", table_columns(frame))
(array([7, 8]), ['Heat (1995)', '8'], ['', ''])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.ratings.item_files import ROLES, usual_place
from dpmf.ratings.kinds import array_of, ids_of, is_missing


def table_columns(data: Any) -> dict[str, Any] | None:
    """Return the columns of a table by their names, or None if this is no table."""
    if hasattr(data, "collect"):  # a polars LazyFrame
        data = data.collect()
    if not hasattr(data, "columns"):
        return None
    labels = list(getattr(data, "column_names", data.columns))
    return {str(label): data[label] for label in labels}


def pick_columns(what: str, table: Mapping[str, Any]) -> tuple[NDArray[Any], list[str], list[str]]:
    """Return ids, titles and genres; a title that is missing is the id.

    Args:
        what: the table is called in messages.
        table: its columns.
    """
    names = list(table)
    item, title, genres = (usual_place(role, names) for role in ROLES)
    if item is None:
        raise InvalidRatings(f"{what} has no column of item ids: it has {', '.join(names)}; call that one item")
    try:
        ids = ids_of(array_of(table[names[item]]))
    except InvalidRatings as error:
        raise InvalidRatings(f"item {error}") from None
    titles = [text or str(one) for text, one in zip(_texts(table, names, title), ids.tolist(), strict=True)]
    return ids, titles, _texts(table, names, genres)


def _texts(table: Mapping[str, Any], names: list[str], place: int | None) -> list[str]:
    if place is None:
        return [""] * len(array_of(table[names[0]]))
    return [_text(one) for one in array_of(table[names[place]]).tolist()]


def _text(value: Any) -> str:
    """Return the text of a cell; genres may be a list."""
    if isinstance(value, list | tuple | np.ndarray):
        return "|".join(map(str, value))
    return "" if is_missing(value) else str(value)
