"""Ratings that are already in memory: pandas, polars, Arrow, scipy.sparse, plain arrays.

None of these libraries is imported here; their objects are recognised by what they can do.

>>> columns_of(["ann"], ["Heat"], [4]).values.tolist()
[4.0]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.formats.roles import find_columns


def columns_of(
    data: Any,
    item_ids: Any = None,
    values: Any = None,
    timestamps: Any = None,
    columns: Mapping[str, str | int] | None = None,
) -> Columns:
    """Return the columns of a table, a sparse matrix or three to four lists; see `Ratings.of`."""
    if hasattr(data, "tocoo"):
        matrix = data.tocoo()
        if len(matrix.shape) != 2:
            raise InvalidArgument(f"a sparse array of shape {matrix.shape} is not a table of users and items")
        rows, cols = (matrix.row, matrix.col) if hasattr(matrix, "row") else matrix.coords
        return Columns.of_raw(np.asarray(rows), np.asarray(cols), np.asarray(matrix.data), None)
    if hasattr(data, "collect"):  # a polars LazyFrame
        data = data.collect()
    if hasattr(data, "columns"):
        return _of_table(data, columns)
    if item_ids is None or values is None:
        kind = type(data).__name__
        raise InvalidArgument(
            f"cannot take ratings from {kind}: give a table, a sparse matrix, or users, items, values"
        )
    return Columns.of_raw(
        array_of(data), array_of(item_ids), array_of(values), None if timestamps is None else array_of(timestamps)
    )


def _of_table(table: Any, wanted: Mapping[str, str | int] | None) -> Columns:
    names = [str(name) for name in getattr(table, "column_names", table.columns)]
    places = find_columns(f"the {type(table).__name__}", names, len(names), wanted)
    # pandas alone needs its own column labels, which may not be strings.
    labels = list(getattr(table, "column_names", table.columns))
    columns = {role: array_of(table[labels[place]]) for role, place in places.items()}
    return Columns.of_raw(columns["user"], columns["item"], columns["rating"], columns.get("timestamp"))


def array_of(values: Any) -> NDArray[Any]:
    """Return a column of any kind as an array; strings stay Python objects, so none is padded or cut."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "to_pylist"):  # Arrow copies only if told that it may
        return np.asarray(values.to_numpy(zero_copy_only=False))
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    try:
        listed = list(values)
    except TypeError:
        raise InvalidArgument(f"{values!r} is not a column: give a list or an array") from None
    if any(isinstance(one, str) for one in listed):
        array = np.empty(len(listed), object)
        array[:] = listed
        return array
    return np.asarray(listed)
