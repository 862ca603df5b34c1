"""Times of every kind become integers that grow with time, or are left out as a whole with a message."""

from __future__ import annotations

import datetime
import logging
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

from dpmf.ratings import Ratings
from dpmf.ratings.formats.columns import Columns

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
    times = np.array([2**60 + 1, 2**60], np.uint64)
    assert Columns.of_raw(np.arange(2), np.arange(2), np.ones(2), times).timestamps == pytest.approx(times, abs=0)


@pytest.mark.parametrize(
    "times",
    [
        [5, None],
        [5.0, np.nan],
        ["2020-01-01", "soon"],
        ["5", ""],
        pd.to_datetime(["2020-01-01", None]),
        pd.Series([ZONED, None]),
        pd.array([5, None], "Int64"),
        pl.Series([MIDNIGHT, None]),
    ],
)
def test_times_are_left_out_with_a_message_if_one_is_missing_or_unreadable(
    times: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert Ratings.of([1, 2], [1, 2], [1, 2], times).timestamps is None
    assert "row 2" in caplog.text


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
