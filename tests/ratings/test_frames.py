"""`Ratings.of` takes what people have in memory: pandas, polars, Arrow, scipy.sparse, arrays and lists."""

from __future__ import annotations

import datetime
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


@pytest.mark.parametrize(
    "other",
    [
        pd.Timestamp("2021-01-01", tz="UTC"),
        datetime.datetime(9999, 1, 1),
        datetime.datetime(2021, 1, 1, tzinfo=datetime.UTC),
        datetime.date(2021, 1, 1),
    ],
)
def test_nanoseconds_of_others_count_whatever_kind_of_date_somebody_has(other: Any) -> None:
    times = [pd.Timestamp(10**18 + 900), pd.Timestamp(10**18 + 100), other]
    joined = pd.DataFrame({"user": ["ann", "ann", "eve"], "item": ["a"] * 3, "rating": [1, 5, 3]})
    alone = joined[:2].assign(timestamp=pd.Series(times[:2]))
    joined["timestamp"] = pd.Series(times)
    assert (alone["timestamp"].dtype, joined["timestamp"].dtype) == ("datetime64[ns]", object)
    assert Ratings.of(alone, scale=(1, 5)).values[0] == Ratings.of(joined, scale=(1, 5)).values[0] == 1


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
        ([uuid.UUID(int=1), uuid.UUID(int=2)], [str(uuid.UUID(int=1)), str(uuid.UUID(int=2))]),
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
        (
            pl.DataFrame([pl.Series("user", [1], pl.Int128)]).with_columns(item=1, rating=1),
            ["Int128", "cannot be read"],
        ),
        (scipy.sparse.csr_array((3, 3)), ["no ratings"]),
        (scipy.sparse.coo_array(np.ones(3)), ["shape (3,)"]),
        (np.ones((3, 5)), ["5 columns", "user, item, rating", "csr_array"]),
        (np.ones((3, 2)), ["the array has no column for the rating", "2 unnamed columns"]),
        (np.ones((3, 3, 3)), ["ndarray"]),
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
        (([(1, 2)], ["x"], [1]), ["user ids", "row 1", "tuple"]),
        (([1, 2**64], ["x", "y"], [1, 2]), ["user ids", "row 2", "64 bits"]),
        ((np.array([1, 2**63], np.uint64), ["x", "y"], [1, 2]), ["user ids", "row 2", "64 bits"]),
        (([1, "a"], ["x", "y"], [1, 2]), ["user ids", "row 1 is of type int", "row 2 of type str"]),
        ((["x", "y"], [1, 2.0], [1, 2]), ["item ids", "row 2 of type float"]),
        (([np.ones(2)], ["x"], [1]), ["user ids", "row 1", "ndarray"]),
        ((np.array([1, 2**53], np.longdouble), ["x", "y"], [1, 2]), ["user ids", "row 2", "9007199254740992"]),
        (([1, True], ["x", "y"], [1, 2]), ["user ids", "row 2 is of type bool"]),
        ((np.array([1, 0], bool), ["x", "y"], [1, 2]), ["user ids", "bool"]),
        (([1.0, 2.0**53], ["x", "y"], [1, 2]), ["user ids", "row 2", "9007199254740992"]),
        ((np.array([1, 2**24], np.float32), ["x", "y"], [1, 2]), ["user ids", "row 2", "16777216"]),
        ((np.array(["2020-01-01"], "M8[ns]"), ["x"], [1]), ["user ids", "datetime64"]),
        (([datetime.date(2020, 1, 1)], ["x"], [1]), ["user ids", "date"]),
        (([1], ["x"], [10**400]), ["rating column"]),
        (([1], ["x"], np.ones((1, 1))), ["rating column", "(1, 1)"]),
        ((1, 2, 3), ["1 is not a column"]),
    ],
)
def test_bad_columns_are_refused_in_one_line(columns: tuple[Any, ...], words: list[str], refused: Refused) -> None:
    with refused(*words):
        Ratings.of(*columns)


def test_a_column_of_counts_is_found_and_makes_counts_of_values(table: Table, refused: Refused) -> None:
    plays = pl.DataFrame({"user": USERS, "item": ITEMS, "Play_Count": [3, 2, 9]})
    assert table(Ratings.of(plays)) == {(7, "a"): 3, (7, "b"): 2, (9, "a"): 9}
    assert Ratings.of(plays).scale.counts
    both = plays.with_columns(rating=pl.Series(VALUES))
    assert table(Ratings.of(both)) == EXPECTED
    assert not Ratings.of(both).scale.counts
    named = Ratings.of(both, columns={"count": "Play_Count"})
    assert (named.scale.counts, named.values.tolist()) == (True, [3, 2, 9])
    assert Ratings.of(both, counts=True).values.tolist() == [3, 2, 9]
    events = Ratings.of(plays.drop("Play_Count"), counts=True)
    assert (events.scale.counts, events.values.tolist()) == (True, [1, 1, 1])
    with refused("columns has a rating and a count"):
        Ratings.of(both, columns={"count": "Play_Count", "rating": "rating"})
    matrix = Ratings.of(scipy.sparse.coo_matrix(([5, 2], ([0, 1], [1, 0]))), counts=True)
    assert (matrix.scale.counts, matrix.values.tolist()) == (True, [5, 2])
