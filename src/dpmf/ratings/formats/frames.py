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
from dpmf.ratings.kinds import array_of

_MOST_COLUMNS = 4  # without names


def columns_of(
    data: Any,
    item_ids: Any = None,
    values: Any = None,
    timestamps: Any = None,
    columns: Mapping[str, str | int | None] | None = None,
    *,
    counts: bool = False,
    unrated: bool = False,
) -> Columns:
    """Return the columns of a table, a sparse matrix, an array of rows or lists; see `Ratings.of`.

    With `unrated`, a table may do without ratings: its rows are events then, or it has counts.
    """
    if hasattr(data, "tocoo"):
        matrix = data.tocoo()
        if len(matrix.shape) != 2:
            raise InvalidArgument(f"a sparse array of shape {matrix.shape} is not a table of users and items")
        rows, cols = (matrix.row, matrix.col) if hasattr(matrix, "row") else matrix.coords
        return Columns.of_raw(np.asarray(rows), np.asarray(cols), np.asarray(matrix.data), None, counts=counts)
    if hasattr(data, "collect"):  # a polars LazyFrame
        data = data.collect()
    if hasattr(data, "columns"):
        return _of_table(data, columns, counts, unrated)
    if isinstance(data, np.ndarray) and data.ndim == 2 and item_ids is None:
        return _of_rows(data, columns, counts, unrated)
    if item_ids is not None and values is None and counts:
        item_ids = array_of(item_ids)
        values = np.ones(len(item_ids))
    if item_ids is None or values is None:
        kind = type(data).__name__
        raise InvalidArgument(
            f"cannot take ratings from {kind}: give a table, a sparse matrix, an array of rows user, item, rating, or "
            "users, items, values"
        )
    times = None if timestamps is None else array_of(timestamps)
    return Columns.of_raw(array_of(data), array_of(item_ids), array_of(values), times, counts=counts)


def pairs_of(data: Any, columns: Mapping[str, str | int | None] | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return users and items, as they are, of a table or an array of rows that need no ratings."""
    if isinstance(data, np.ndarray) and data.ndim == 2:
        places = find_columns("the array", None, data.shape[1], columns, unrated=True)
        return data[:, places["user"]], data[:, places["item"]]
    if hasattr(data, "collect"):  # a polars LazyFrame
        data = data.collect()
    if not hasattr(data, "columns"):
        raise InvalidArgument(
            f"cannot take users and items from {type(data).__name__}: give a table or an array of rows"
        )
    labels = list(getattr(data, "column_names", data.columns))
    names = [str(label) for label in labels]
    places = find_columns(f"the {type(data).__name__}", names, len(names), columns, unrated=True)
    return array_of(data[labels[places["user"]]]), array_of(data[labels[places["item"]]])


def _of_table(table: Any, wanted: Mapping[str, str | int | None] | None, counts: bool, unrated: bool) -> Columns:
    names = [str(name) for name in getattr(table, "column_names", table.columns)]
    places = find_columns(f"the {type(table).__name__}", names, len(names), wanted, unrated=counts or unrated)
    # pandas alone needs its own column labels, which may not be strings.
    labels = list(getattr(table, "column_names", table.columns))
    return _of_roles({role: array_of(table[labels[place]]) for role, place in places.items()}, counts)


def _of_rows(rows: NDArray[Any], wanted: Mapping[str, str | int | None] | None, counts: bool, unrated: bool) -> Columns:
    """Return the columns of an array; all have its type, whatever their roles."""
    if not wanted and rows.shape[1] > _MOST_COLUMNS:
        raise InvalidArgument(
            f"the array has {rows.shape[1]} columns, and rows of ratings are user, item, rating and perhaps timestamp: "
            "name others with columns={'user': …}, or make a matrix of users and items a scipy.sparse.csr_array"
        )
    places = find_columns("the array", None, rows.shape[1], wanted, unrated=counts or unrated)
    return _of_roles({role: rows[:, place] for role, place in places.items()}, counts)


def _of_roles(columns: dict[str, NDArray[Any]], counts: bool) -> Columns:
    each_once = np.ones(len(columns["user"]))
    values = columns.get("rating", columns.get("count", each_once))
    counts = counts or "rating" not in columns
    return Columns.of_raw(columns["user"], columns["item"], values, columns.get("timestamp"), counts=counts)
