"""Ratings that are already in memory: pandas, polars, Arrow, scipy.sparse, plain arrays.

None of these libraries is imported here; their objects are recognised by what they can do.

>>> columns_of(["ann"], ["Heat"], [4]).values.tolist()
[4.0]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpmf.errors import InvalidArgument
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.formats.roles import find_columns
from dpmf.ratings.kinds import array_of


def columns_of(
    data: Any,
    item_ids: Any = None,
    values: Any = None,
    timestamps: Any = None,
    columns: Mapping[str, str | int | None] | None = None,
    *,
    counts: bool = False,
) -> Columns:
    """Return the columns of a table, a sparse matrix or lists; see `Ratings.of`."""
    if hasattr(data, "tocoo"):
        matrix = data.tocoo()
        if len(matrix.shape) != 2:
            raise InvalidArgument(f"a sparse array of shape {matrix.shape} is not a table of users and items")
        rows, cols = (matrix.row, matrix.col) if hasattr(matrix, "row") else matrix.coords
        return Columns.of_raw(np.asarray(rows), np.asarray(cols), np.asarray(matrix.data), None, counts=counts)
    if hasattr(data, "collect"):  # a polars LazyFrame
        data = data.collect()
    if hasattr(data, "columns"):
        return _of_table(data, columns, counts)
    if item_ids is not None and values is None and counts:
        item_ids = array_of(item_ids)
        values = np.ones(len(item_ids))
    if item_ids is None or values is None:
        kind = type(data).__name__
        raise InvalidArgument(
            f"cannot take ratings from {kind}: give a table, a sparse matrix, or users, items, values"
        )
    times = None if timestamps is None else array_of(timestamps)
    return Columns.of_raw(array_of(data), array_of(item_ids), array_of(values), times, counts=counts)


def _of_table(table: Any, wanted: Mapping[str, str | int | None] | None, counts: bool) -> Columns:
    names = [str(name) for name in getattr(table, "column_names", table.columns)]
    places = find_columns(f"the {type(table).__name__}", names, len(names), wanted, unrated=counts)
    # pandas alone needs its own column labels, which may not be strings.
    labels = list(getattr(table, "column_names", table.columns))
    columns = {role: array_of(table[labels[place]]) for role, place in places.items()}
    each_once = np.ones(len(columns["user"]))
    values = columns.get("rating", columns.get("count", each_once))
    counts = counts or "rating" not in columns
    return Columns.of_raw(columns["user"], columns["item"], values, columns.get("timestamp"), counts=counts)
