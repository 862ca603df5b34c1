"""`Ratings.of` takes what people have in memory: pandas, polars, Arrow, scipy.sparse, arrays and lists."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from dpmf.ratings import Ratings

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

USERS, ITEMS, VALUES = [7, 7, 9], ["a", "b", "a"], [1.0, 2.5, 4.0]
EXPECTED = {(7, "a"): 1.0, (7, "b"): 2.5, (9, "a"): 4.0}
COLUMNS = {"user": USERS, "item": ITEMS, "rating": VALUES}


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS, index=[5, 5, 5]),
        pd.DataFrame(COLUMNS).astype({"user": "float64", "item": "category", "rating": "Float64"}),
        pd.DataFrame(COLUMNS).astype({"user": "Int64", "item": "string", "rating": object}),
        pd.DataFrame(COLUMNS).astype({"user": "category", "item": object}),
        pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS).lazy(),
        pl.DataFrame(COLUMNS, schema={"user": pl.UInt64, "item": pl.Enum(["b", "a"]), "rating": pl.Decimal(4, 2)}),
        pl.DataFrame(COLUMNS, schema={"user": pl.Int8, "item": pl.Categorical(), "rating": pl.Float32}),
        pa.table(COLUMNS),
        pa.table(COLUMNS).to_batches()[0],
        pa.table({**COLUMNS, "item": pa.array(ITEMS).dictionary_encode()}),
        pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)]),
    ],
)
def test_frames_of_all_kinds_are_taken(frame: Any, table: Table) -> None:
    assert table(Ratings.of(frame)) == EXPECTED


@pytest.mark.parametrize(
    "kind",
    [list, tuple, iter, np.array, pd.Series, pl.Series, pa.array, lambda column: pa.chunked_array([column])],
)
def test_columns_of_all_kinds_are_taken(kind: Callable[[Any], Any], table: Table) -> None:
    assert table(Ratings.of(kind(USERS), kind(ITEMS), kind(VALUES))) == EXPECTED


def test_columns_have_any_name_and_case(table: Table) -> None:
    frame = pd.DataFrame({"MovieID": ITEMS, "User Id": USERS, "Stars": VALUES})
    assert table(Ratings.of(frame)) == EXPECTED
    odd = pl.DataFrame({"who": USERS, "what": ITEMS, "how": VALUES})
    assert table(Ratings.of(odd, columns={"user": "who", "item": "what", "rating": "how"})) == EXPECTED
    unnamed = pd.DataFrame(list(zip(USERS, ITEMS, VALUES, strict=True)))
    assert table(Ratings.of(unnamed, columns={"user": 0, "item": 1, "rating": 2})) == EXPECTED


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("family", ["matrix", "array"])
def test_sparse_matrices_are_taken_and_all_their_columns_are_items(layout: str, family: str, table: Table) -> None:
    dense = np.array([[0, 5, 0], [0, 0, 0], [3, 0, 0]])
    ratings = Ratings.of(getattr(scipy.sparse, f"{layout}_{family}")(dense))
    assert table(ratings) == {(0, 1): 5, (2, 0): 3}
    assert list(ratings.catalogue.ids) == [0, 1, 2]
    assert not ratings.catalogue.declared


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["007", "7"], ["007", "7"]),
        ([2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
        (np.array([2**64 - 1, 5], np.uint64), ["18446744073709551615", "5"]),
        ([2**80, 5], [str(2**80), "5"]),
        ([uuid.UUID(int=1), uuid.UUID(int=2)], [str(uuid.UUID(int=1)), str(uuid.UUID(int=2))]),
        ([1, "a"], ["1", "a"]),
        (["a", 1], ["a", "1"]),
        (np.array([np.int32(4), 5], object), [4, 5]),
        (["tail\0", "tail"], ["tail\0", "tail"]),
        (np.array([3, 200], np.uint8), [3, 200]),
        (['q"u,o\nte', "七"], ['q"u,o\nte', "七"]),
    ],
)
def test_ids_survive(ids: Any, expected: list[object], table: Table) -> None:
    assert table(Ratings.of(ids, ids, [1, 2])) == {(expected[0], expected[0]): 1, (expected[1], expected[1]): 2}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"user": [7.0, np.nan, 9.0]}, ["user ids", "row 2"]),
        ({"user": [7.0, 1e300, 9.0]}, ["user ids", "row 2"]),
        ({"user": [7.0, 7.5, 9.0]}, ["user ids", "row 2", "7.5"]),
        ({"user": pd.array([7, None, 9], "Int64")}, ["user ids", "row 2"]),
        ({"item": pd.array(["a", None, "b"], "string")}, ["item ids", "row 2"]),
        ({"item": pd.array(["a", None, "b"], pd.ArrowDtype(pa.string()))}, ["item ids", "row 2"]),
        ({"item": pd.Categorical(["a", None, "b"])}, ["item ids", "row 2"]),
        ({"item": pd.Series(["a", None, "b"], dtype=object)}, ["item ids", "row 2"]),
        ({"rating": [1, np.nan, 2]}, ["rating in row 2"]),
        ({"rating": [1, -np.inf, 2]}, ["rating in row 2"]),
        ({"rating": [1, 1e200, 2]}, ["rating in row 2"]),
        ({"rating": pd.array([1, None, 2], "Int64")}, ["rating"]),
        ({"rating": ["1", "good", "2"]}, ["rating column", "good"]),
        ({"rating": [1j, 2, 3]}, ["rating column", "complex"]),
        ({"rating": pd.to_datetime(["2020-01-01"] * 3)}, ["rating column", "datetime"]),
    ],
)
def test_bad_frames_are_refused_in_one_line(changed: dict[str, Any], words: list[str], refused: Refused) -> None:
    with refused(*words):
        Ratings.of(pd.DataFrame({**COLUMNS, **changed}), scale=(1, 5))


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"user": [1], "rating": [1]}), ["DataFrame", "column for the item", "user, rating"]),
        (pl.DataFrame({"user": [1], "rating": [1]}), ["DataFrame", "column for the item"]),
        (pa.table({"user": [1], "rating": [1]}), ["Table", "column for the item"]),
        (pd.DataFrame({"user": [], "item": [], "rating": []}), ["no ratings"]),
        (pl.DataFrame({"user": [1, None], "item": [1, 2], "rating": [1, 2]}), ["user ids", "row 2"]),
        (pa.table({"user": ["a", None], "item": [1, 2], "rating": [1, 2]}), ["user ids", "row 2"]),
        (pd.DataFrame([[1, 2, 3, 4]], columns=["user", "item", "rating", "rating"]), ["rating column"]),
        (pd.DataFrame([[1, 2, 3, 4]], columns=["user", "item", "rating", "user"]), ["user ids"]),
        (scipy.sparse.csr_array((3, 3)), ["no ratings"]),
        (scipy.sparse.coo_array(np.ones(3)), ["shape (3,)"]),
        (np.ones((3, 3)), ["ndarray"]),
        ({"user": [1], "item": [1], "rating": [1]}, ["dict"]),
    ],
)
def test_what_is_no_table_of_ratings_is_refused_in_one_line(frame: Any, words: list[str], refused: Refused) -> None:
    with refused(*words):
        Ratings.of(frame)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (([1, 2], [1], [1, 2]), ["lengths", "[1, 2]"]),
        (([1, 2], [1, 2], [1, 2], [1]), ["lengths"]),
        (([], [], []), ["no ratings"]),
        (([1, None], ["x", "y"], [1, 2]), ["user ids", "row 2"]),
        (([(1, 2)], ["x"], [1]), ["user ids", "shape (1, 2)"]),
        (([1], ["x"], np.ones((1, 1))), ["rating column", "(1, 1)"]),
        ((1, 2, 3), ["1 is not a column"]),
    ],
)
def test_bad_columns_are_refused_in_one_line(columns: tuple[Any, ...], words: list[str], refused: Refused) -> None:
    with refused(*words):
        Ratings.of(*columns)
