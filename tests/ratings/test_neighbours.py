"""Whoever joins, with whatever values, changes nothing that is read of others from memory; at most it is refused."""

from __future__ import annotations

import datetime
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dpmf.ratings import Ratings
from dpmf.ratings.given import as_ratings
from ratings.neighbours import (
    NAMES,
    NUMBERS,
    SCALE,
    TIMES,
    USERS,
    Joined,
    Row,
    built,
    check,
    columns_of,
    crowd_of,
    hostile_values,
    neighbours,
)


@pytest.fixture(autouse=True, scope="module")
def _silent() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def array(column: list[Any]) -> Any:
    """Return a NumPy array; what NumPy makes of True, b"7" and "7\\0", which are 1 and "7" to it, is not dpmf's."""
    odd = (isinstance(one, bool | np.bool_ | tuple | bytes) or str(one).endswith("\0") for one in column)
    if any(odd):
        raise TypeError("not what NumPy makes of it")
    return np.array(column)


def without_bools(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return columns without a True, of which some libraries make 1 before dpmf sees it."""
    if any(isinstance(one, bool | np.bool_) for column in columns.values() for one in column):
        raise TypeError("not what the library makes of it")
    return columns


def kind_of(column: list[Any]) -> type:
    """Return the type of most values, which is that of the crowd's."""
    return Counter(map(type, column)).most_common(1)[0][0]


def strict(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return columns of one type each: some libraries make 7 of 7.5 or 1 of True before dpmf sees it."""
    if any(type(one) not in (kind_of(column), type(None)) for column in columns.values() for one in column):
        raise TypeError("not what the library makes of it")
    return columns


def typed(columns: dict[str, list[Any]], kinds: dict[type, Any]) -> pd.DataFrame:
    """Return a table whose columns have types beforehand."""
    return pd.DataFrame({name: pd.Series(one, dtype=kinds.get(kind_of(one))) for name, one in strict(columns).items()})


ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string(), datetime.datetime: pa.timestamp("us")}
IN_MEMORY: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas objects": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas nullable": lambda columns: typed(columns, {int: "Int64", float: "Float64", str: "string"}),
    "pandas arrow": lambda columns: typed(columns, {kind: pd.ArrowDtype(one) for kind, one in ARROW.items()}),
    "pandas category": lambda columns: pd.DataFrame(without_bools(columns)).astype(
        {"user": "category", "item": "category"}
    ),
    "pandas concatenated": lambda columns: pd.concat(
        [pd.DataFrame([row], columns=NAMES) for row in zip(*without_bools(columns).values(), strict=True)]
    ),
    "polars": lambda columns: pl.DataFrame(strict(columns)),
    "polars lazy": lambda columns: pl.LazyFrame(strict(columns)),
    "polars objects": lambda columns: pl.DataFrame(
        {name: pl.Series(one, dtype=pl.Object) for name, one in columns.items()}
    ),
    "arrow": lambda columns: pa.table(without_bools(columns)),
    "arrow typed": lambda columns: pa.table(
        {name: pa.array(one, ARROW[kind_of(one)]) for name, one in strict(columns).items()}
    ),
}


def of_lists(rows: list[Row]) -> Ratings:
    return Ratings.of(*columns_of(rows).values(), scale=SCALE)


@given(worlds=neighbours(hostile_values))
@example(Joined(crowd_of("small", "large"), (99, 3, 4, 12.5), 0))
@example(Joined(crowd_of("large", "large"), (7.0, 3, 4, 5), 20))
@example(Joined(crowd_of("small", "small"), (99, 3, 2.5, 5), 1))
@example(Joined(crowd_of("small", "small"), (True, 3, 4, 500), 1))
@settings(max_examples=700)
def test_lists(worlds: Joined) -> None:
    check(of_lists, worlds, "lists")


@given(worlds=neighbours(hostile_values))
@example(Joined(crowd_of("small", "large"), (99, 3, 1e300, 12.5), 0))
@example(Joined(crowd_of("small", "small"), (99, 3, 2**80, 5), 1))
@settings(max_examples=200)
def test_counts_that_add_up(worlds: Joined) -> None:
    check(lambda rows: Ratings.of(*columns_of(rows).values(), counts=True), worlds, "counts")


@given(worlds=neighbours(hostile_values))
@example(Joined(crowd_of("small", "large"), (99, 3, 4, 12.5), 0))
@example(Joined(crowd_of("large", "large"), (7.0, 3, 4, 5), 20))
@settings(max_examples=400)
def test_arrays(worlds: Joined) -> None:
    def read(rows: list[Row]) -> Ratings:
        return Ratings.of(*built(lambda columns: [array(one) for one in columns.values()], rows), scale=SCALE)

    check(read, worlds, "arrays")


@given(worlds=neighbours(hostile_values, users=["small", "text"], times=["small"]))
@example(Joined(crowd_of("small", "small"), ("x", 3, 4, 5), 0))
@example(Joined(crowd_of("small", "small"), (2**53, 3, 4, 5), 20))
@settings(max_examples=200)
def test_rows_of_an_array(worlds: Joined) -> None:
    def matrix(columns: dict[str, list[Any]]) -> Any:
        for one in columns.values():
            array(one)
        strict(columns)  # NumPy makes "7.0" of 7.0 beside a text
        return np.array(list(zip(*columns.values(), strict=True)))

    check(lambda rows: Ratings.of(built(matrix, rows), scale=SCALE), worlds, "rows")


@given(worlds=neighbours(hostile_values))
@settings(max_examples=100)
def test_rows_of_an_array_of_objects(worlds: Joined) -> None:
    def matrix(columns: dict[str, list[Any]]) -> Any:
        return np.array(list(zip(*columns.values(), strict=True)), object)

    check(lambda rows: Ratings.of(built(matrix, rows), scale=SCALE), worlds, "rows of objects")


@pytest.mark.parametrize("kind", sorted(IN_MEMORY))
@given(worlds=neighbours(hostile_values))
@example(Joined(crowd_of("small", "large"), (99, 3, 4, 12.5), 0))
@example(Joined(crowd_of("large", "large"), (7.0, 3, 4, 5), 20))
@example(Joined(crowd_of("small", "small"), (99, 3, 2.5, 5), 1))
@settings(max_examples=100)
def test_tables(kind: str, worlds: Joined) -> None:
    check(lambda rows: Ratings.of(built(IN_MEMORY[kind], rows), scale=SCALE), worlds, kind)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
@given(worlds=neighbours(hostile_values))
@example(Joined(crowd_of("small", "large"), (99, 3, 4, 12.5), 0))
@settings(max_examples=25)
def test_tables_that_a_method_is_given(kind: str, worlds: Joined) -> None:
    check(lambda rows: as_ratings(built(IN_MEMORY[kind], rows), scale=SCALE, unrated=True), worlds, f"given {kind}")


hostile_numbers = st.one_of(st.sampled_from(NUMBERS), st.floats(), st.integers(0, 9))


@given(
    worlds=neighbours(hostile_numbers, users=["small"], times=["small"]), layout=st.sampled_from(["coo", "csr", "csc"])
)
@settings(max_examples=300)
def test_sparse_matrices(worlds: Joined, layout: str) -> None:
    assume(all(isinstance(one, int) for one in worlds.row[:2]))  # SciPy makes 7 of 7.5

    def read(rows: list[Row]) -> Ratings:
        matrix = built(
            lambda columns: scipy.sparse.coo_array(
                (np.array(columns["rating"]), (columns["user"], columns["item"])), shape=(2000, 9)
            ).asformat(layout),
            rows,
        )
        return Ratings.of(matrix, scale=SCALE)

    check(read, worlds, layout)


@pytest.mark.parametrize("users", sorted(USERS))
@pytest.mark.parametrize("times", sorted(TIMES))
def test_an_ordinary_newcomer_is_read_from_memory(users: str, times: str) -> None:
    """Else the tests above could pass by refusing everything."""
    worlds = Joined(crowd_of(users, times), ("newcomer" if users == "text" else 99, 3, 4, TIMES[times](2)), 3)
    assert check(of_lists, worlds, "lists")
    for kind, make in IN_MEMORY.items():
        assert check(lambda rows, make=make: Ratings.of(make(columns_of(rows)), scale=SCALE), worlds, kind)  # type: ignore[misc]
