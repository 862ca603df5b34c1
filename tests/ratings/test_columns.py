"""Times of every kind become integers that grow with time, or are refused, or are left out if there are none."""

from __future__ import annotations

import datetime
import decimal
import logging
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.ratings import Ratings
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.formats.roles import find_columns
from dpmf.ratings.kinds import array_of
from dpmf.ratings.times import UNKNOWN, times_of

if TYPE_CHECKING:
    from ratings.conftest import Refused

MIDNIGHT = datetime.datetime(2020, 1, 1)
ZONED = datetime.datetime(2020, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
SECONDS = 1577836800


@pytest.mark.parametrize(
    "times",
    [
        [SECONDS] * 2,
        [float(SECONDS)] * 2,
        [str(SECONDS)] * 2,
        np.array([SECONDS] * 2, np.uint64),
        np.array([SECONDS * 1000] * 2).astype("datetime64[ms]"),
        [MIDNIGHT, ZONED],
        [MIDNIGHT.date()] * 2,
        ["2020-01-01", "2020-01-01T02:00:00+02:00"],
        ["2020-01-01T00:00:00Z", "2020-01-01 00:00:00"],
        pd.Series([MIDNIGHT] * 2),
        pd.Series([ZONED] * 2),
        pl.Series([MIDNIGHT] * 2),
        pl.Series([MIDNIGHT.date()] * 2),
    ],
)
def test_numbers_dates_and_their_texts_are_times(times: Any) -> None:
    ratings = Ratings.of([1, 2], [1, 2], [1, 2], times)
    assert ratings.timestamps is not None
    assert ratings.timestamps.tolist() == [SECONDS] * 2


def test_large_integers_keep_their_order() -> None:
    """Nanoseconds do not fit into a float."""
    times = Columns.of_raw(np.arange(2), np.arange(2), np.ones(2), np.array([2**60 + 1, 2**60], np.uint64)).times
    assert times is not None
    assert times.whole.tolist() == [2**60 + 1, 2**60]


@pytest.mark.parametrize(
    "times",
    [
        [5, None],
        [5.0, np.nan],
        ["5", ""],
        pd.to_datetime(["2020-01-01", None]),
        pd.Series([ZONED, None]),
        pd.array([5, None], "Int64"),
        pl.Series([MIDNIGHT, None]),
    ],
)
def test_missing_times_are_known_to_be_missing(times: Any) -> None:
    found = Ratings.of([1, 2], [1, 2], [1, 2], times).timestamps
    assert found is not None
    assert (found == UNKNOWN).tolist() == [False, True]


@pytest.mark.parametrize(
    "times",
    [
        ["2020-01-01", "soon"],
        [5.0, np.inf],
        np.array([5, 2**63], np.uint64),
        [5, 2**70],
        ["5", "1e19"],
        ["5", "inf"],
        np.array([0, 2**62], "datetime64[h]"),
    ],
)
def test_times_are_refused_if_only_some_can_be_read(times: Any, refused: Refused) -> None:
    with refused("time in row 2", "read no times"):
        Ratings.of([1, 2], [1, 2], [1, 2], times)


@pytest.mark.parametrize("times", [[None, None], ["", "soon"], [np.nan, np.inf]])
def test_times_are_left_out_with_a_message_if_none_can_be_read(times: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert Ratings.of([1, 2], [1, 2], [1, 2], times).timestamps is None
    assert "row 1" in caplog.text


@pytest.mark.parametrize("times", [[5.0, 2.0**53], [-(2.0**60), np.nan], np.array([2**24, 5], np.float32)])
def test_times_that_a_fraction_may_have_rounded_are_refused_even_if_all_are(times: Any, refused: Refused) -> None:
    with refused("not exact", "whole numbers"):
        Ratings.of([1, 2], [1, 2], [1, 2], times)


@pytest.mark.parametrize(
    "times", [[5, 6.0], [5, "6"], [5, MIDNIGHT], ["5", 6.5], [True, 5], [5, b"6"], [1j, 2], np.array([1, 2], "m8[s]")]
)
def test_times_of_several_types_or_of_others_are_refused(times: Any, refused: Refused) -> None:
    with refused("times"):
        Ratings.of([1, 2], [1, 2], [1, 2], times)


@given(numbers=st.lists(st.integers(-(10**12), 10**12), min_size=1), digits=st.integers(0, 9))
def test_whole_and_fraction_are_those_of_the_decimal(numbers: list[int], digits: int) -> None:
    exact = [Fraction(number, 10**digits) for number in numbers]
    times = times_of(array_of([str(decimal.Decimal(number).scaleb(-digits)) for number in numbers]))
    assert times is not None
    fraction = np.zeros(len(numbers), np.int32) if times.fraction is None else times.fraction
    assert times.whole.tolist() == [math.floor(one) for one in exact]
    assert fraction.tolist() == [(one - math.floor(one)) * 10**9 for one in exact]
    ranks = times.ranks()
    assert [[a < b for a in ranks] for b in ranks] == [[a < b for a in exact] for b in exact]


@pytest.mark.parametrize(
    "times",
    [
        np.array([100.9, 100.1]),
        np.array(["2020-01-01T00:00:00.9", "2020-01-01T00:00:00.1"], "datetime64[ms]"),
        np.array(["2020-01-01 00:00:00.9", "2020-01-01 00:00:00.1"], object),
    ],
)
def test_fractions_of_a_second_count(times: NDArray[Any]) -> None:
    ratings = Ratings.of([1, 1], [2, 2], [3, 5], times, scale=(1, 5))
    assert ratings.values.tolist() == [3.0]


def test_a_message_about_a_matrix_does_not_list_all_of_its_columns(refused: Refused) -> None:
    with refused("no column for the user", "it has joke 0, joke 1", "joke 11, … (100 columns)"):
        find_columns("the DataFrame", [f"joke {number}" for number in range(100)], 100, None)
