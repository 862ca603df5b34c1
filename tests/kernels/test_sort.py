"""The sorting kernels give what NumPy and plain dicts give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.sort import (
    kept_pointers,
    kept_pointers_reference,
    latest_of_each_pair,
    latest_of_each_pair_reference,
    look_up,
    look_up_reference,
    mark_present,
    mark_present_reference,
    order_pairs,
    order_pairs_reference,
    pairs_in_order,
    pairs_in_order_reference,
    row_pointers,
    row_pointers_reference,
    row_sums,
    row_sums_reference,
    rows_ascend,
    rows_ascend_reference,
)

pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)))


def columns(rows: list[tuple[int, int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    table = np.array(rows, np.int32).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


@given(rows=pairs)
def test_pairs_are_ordered_as_by_a_stable_sort(rows: list[tuple[int, int]]) -> None:
    users, items = columns(rows)
    order = order_pairs(users, items, 5, 7)
    assert order.tolist() == order_pairs_reference(users, items, 5, 7).tolist()
    assert order.tolist() == sorted(range(len(rows)), key=rows.__getitem__)


@given(rows=pairs)
def test_order_is_recognised(rows: list[tuple[int, int]]) -> None:
    assert pairs_in_order(*columns(rows)) == (rows == sorted(rows))
    assert pairs_in_order(*columns(sorted(rows)))


@given(rows=pairs)
def test_row_pointers_are_where_each_user_begins(rows: list[tuple[int, int]]) -> None:
    users, _ = columns(sorted(rows))
    assert row_pointers(users, 6).tolist() == np.searchsorted(users, np.arange(7)).tolist()


@given(rows=pairs, times=st.data(), timed=st.booleans())
def test_the_latest_of_each_pair_is_kept(rows: list[tuple[int, int]], times: st.DataObject, timed: bool) -> None:
    rows.sort()
    users, items = columns(rows)
    few = st.integers(-2, 2)
    drawn = times.draw(st.lists(few, min_size=len(rows), max_size=len(rows))) if timed else []
    timestamps = np.array(drawn, np.int64)
    keep = np.empty(len(rows), np.bool_)
    dropped = latest_of_each_pair(users, items, timestamps, keep)
    assert keep.tolist() == latest_of_each_pair_reference(users, items, timestamps).tolist()
    assert dropped == len(rows) - len(set(rows))
    assert keep.sum() == len(set(rows))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64])
def test_present_ids_are_marked_and_looked_up(kind: type[Any]) -> None:
    present = np.zeros(5, np.bool_)
    mark_present(np.array([-3, 1, -3], kind), -3, present)
    assert present.tolist() == [True, False, False, False, True]
    codes = np.empty(4, np.int32)
    look_up(np.array([-4, -3, 1, 2], kind), -3, np.array([7, -1, -1, -1, 8], np.int32), codes)
    assert codes.tolist() == [-1, 7, 8, -1]


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(0, 99))
def test_rows_are_counted_and_summed_like_the_references(lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values, keep = rng.normal(size=indptr[-1]).astype(np.float32), rng.random(indptr[-1]) < 0.5
    np.testing.assert_array_equal(row_sums(indptr, values), row_sums_reference(indptr, values))
    np.testing.assert_array_equal(kept_pointers(indptr, keep), kept_pointers_reference(indptr, keep))


@pytest.fixture(params=range(20))
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def test_order_is_recognised_like_the_reference(rng: np.random.Generator) -> None:
    users, items = rng.integers(0, 2, 3).astype(np.int32), rng.integers(0, 2, 3).astype(np.int32)
    pairs = list(zip(users.tolist(), items.tolist(), strict=True))
    assert pairs_in_order(users, items) == pairs_in_order_reference(users, items) == (pairs == sorted(pairs))


def test_row_pointers_equal_the_reference(rng: np.random.Generator) -> None:
    users = np.sort(rng.integers(0, 9, 30)).astype(np.int32)
    np.testing.assert_array_equal(row_pointers(users, 12), row_pointers_reference(users, 12))


def test_ascending_rows_are_recognised_like_the_reference(rng: np.random.Generator) -> None:
    rated = CsrPattern(np.array([0, 0, 2, 2, 4, 4]), rng.integers(0, 3, 4).astype(np.int32))
    expected = bool(rated.items[0] < rated.items[1] and rated.items[2] < rated.items[3])
    assert rows_ascend(rated) == rows_ascend_reference(rated) == expected


def test_ids_are_looked_up_like_the_reference(rng: np.random.Generator) -> None:
    ids = rng.integers(-5, 15, 40)
    present = np.zeros(20, np.bool_)
    mark_present(ids, -5, present)
    expected = np.zeros(20, np.bool_)
    mark_present_reference(ids, -5, expected)
    np.testing.assert_array_equal(present, expected)
    assert present.tolist() == [one in ids for one in range(-5, 15)]
    table, codes = rng.integers(-1, 9, 12).astype(np.int32), np.empty(40, np.int32)
    look_up(ids, -2, table, codes)
    also = np.empty(40, np.int32)
    look_up_reference(ids, -2, table, also)
    np.testing.assert_array_equal(codes, also)
    known = dict(enumerate(table.tolist(), start=-2))
    assert codes.tolist() == [known.get(one, -1) for one in ids.tolist()]
