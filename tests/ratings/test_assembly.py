"""From columns to ratings: order, duplicates, missing values, the scale and the catalogue."""

from __future__ import annotations

import logging
from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.ratings import Items, Ratings, Scale
from dpmf.ratings.times import UNKNOWN

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

Row = tuple[int, int, int, int]

rows_with_times = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5), st.integers(-2, 2)), min_size=1
)


def merged(rows: list[Row], duplicates: str, timed: bool) -> dict[tuple[int, int], float]:
    """Model of the merging of duplicates."""
    result = {}
    for pair, group in groupby(sorted(rows, key=lambda row: row[:2]), key=lambda row: row[:2]):
        history = list(group)
        if timed:
            history.sort(key=lambda row: row[3])  # stable: equal times stay in the order of the rows
        values = [row[2] for row in history]
        result[pair] = {"last": values[-1], "first": values[0], "mean": fmean(values)}[duplicates]
    return result


@pytest.mark.parametrize("duplicates", ["last", "first", "mean"])
@given(rows=rows_with_times, timed=st.booleans())
def test_one_rating_per_pair_is_left(duplicates: str, table: Table, rows: list[Row], timed: bool) -> None:
    users, items, values, times = (list(column) for column in zip(*rows, strict=True))
    ratings = Ratings.of(users, items, values, times if timed else None, scale=(1, 5), duplicates=duplicates)
    assert table(ratings) == pytest.approx(merged(rows, duplicates, timed))
    pairs = list(zip(ratings.users.tolist(), ratings.items.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert ratings.indptr.tolist() == np.searchsorted(ratings.users, np.arange(ratings.n_users + 1)).tolist()


def test_the_time_kept_is_that_of_the_rating_kept() -> None:
    for duplicates, expected in (("last", 30), ("first", 10)):
        ratings = Ratings.of(["a"] * 3, ["x"] * 3, [1, 2, 3], [20, 30, 10], duplicates=duplicates)
        assert ratings.timestamps is not None
        assert ratings.timestamps.tolist() == [expected]


def test_merging_is_logged_without_ids_or_ratings(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Ratings.of(["ann"] * 3, ["Heat"] * 3, [4.25] * 3)
    assert "2 repeated (user, item) pairs: kept the last" in caplog.text
    assert not [secret for secret in ("ann", "Heat", "4.25") if secret in caplog.text]


def test_nothing_is_logged_when_there_is_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "dpmf"):
        Ratings.of(["ann", "bob"], ["Heat", "Heat"], [4, 5], [1, 2], scale=(1, 5), items=["Heat"])
    assert not caplog.text


def test_duplicates_can_be_an_error_that_names_the_pair(refused: Refused) -> None:
    with refused("'ann'", "'Heat'", "more than once"):
        Ratings.of(["bob", "ann", "ann"], ["Heat"] * 3, [1, 2, 3], duplicates="error")
    assert len(Ratings.of(["bob", "ann"], ["Heat"] * 2, [1, 2], duplicates="error")) == 2


@pytest.mark.parametrize("missing", [-1.0, 0.1, float("nan")])
def test_missing_values_are_no_ratings_and_may_be_off_the_scale(missing: float, table: Table) -> None:
    ratings = Ratings.of(["a", "a", "b"], ["x", "y", "x"], [3, missing, 5], scale=(1, 5), missing=missing)
    assert table(ratings) == {("a", "x"): 3, ("b", "x"): 5}


def test_a_missing_value_says_nothing_about_the_scale_or_a_duplicate(table: Table) -> None:
    ratings = Ratings.of(["a", "a", "b"], ["x", "x", "x"], [3, 99, 5], missing=99)
    assert table(ratings) == {("a", "x"): 3, ("b", "x"): 5}
    assert ratings.scale == Scale(3, 5, declared=False)


def test_other_values_are_still_checked_beside_missing_ones(refused: Refused) -> None:
    with refused("rating 7 in row 2"):
        Ratings.of([1, 2], [1, 2], [-1, 7], scale=(1, 5), missing=-1)
    with refused("rating in row 2"):
        Ratings.of([1, 2], [1, 2], [-1, np.nan], scale=(1, 5), missing=-1)
    with refused("no ratings"):
        Ratings.of([1, 2], [1, 2], [-1, -1], missing=-1)


def test_a_given_scale_is_declared_and_a_found_one_is_not() -> None:
    assert Ratings.of([1, 2], [1, 2], [2, 4], scale=(1, 5)).scale == Scale(1, 5, declared=True)
    assert Ratings.of([1, 2], [1, 2], [2, 4]).scale == Scale(2, 4, declared=False)
    assert Ratings.of([1, 2], [1, 2], [3, 3]).scale == Scale(3, 4, declared=False)


def test_the_ends_of_the_scale_are_on_it() -> None:
    assert len(Ratings.of([1, 2], [1, 2], [0.1, 4.9], scale=(0.1, 4.9))) == 2


def test_items_outside_the_catalogue_are_left_out_with_a_message(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        ratings = Ratings.of(["a", "a", "b"], ["x", "Alien", "Alien"], [3, 4, 5], items=["y", "x"])
    assert table(ratings) == {("a", "x"): 3}
    assert list(ratings.catalogue.ids) == ["y", "x"]
    assert ratings.catalogue.declared
    assert "2 ratings of items outside the catalogue" in caplog.text
    assert "Alien" not in caplog.text


def test_a_catalogue_met_in_the_data_is_not_declared() -> None:
    catalogue = Ratings.of(["a"], ["x"], [3]).catalogue
    assert list(catalogue.ids) == ["x"]
    assert not catalogue.declared
    assert not Ratings.of(["a"], ["x"], [3], items=Items.of(["x"], declared=False)).catalogue.declared


def test_a_catalogue_of_integers_fits_texts_and_the_other_way_round(table: Table) -> None:
    assert table(Ratings.of(["a", "a"], ["1", "x"], [3, 4], items=[1, 2])) == {("a", 1): 3}
    assert table(Ratings.of(["a", "a"], [1, 2], [3, 4], items=["2", "01"])) == {("a", "2"): 4}


def test_an_unknown_way_to_treat_duplicates_is_refused(refused: Refused) -> None:
    with refused("duplicates='newest'", "last, first, mean, sum, error"):
        Ratings.of([1], [1], [1], duplicates="newest")


def test_times_that_one_person_lacks_do_not_decide_what_others_said() -> None:
    """Left out for one person's sake, they would turn the latest rating of everybody else into another."""
    crowd = [(user, 1, value, year) for user in (1, 2) for value, year in ((5, "2020"), (1, "1990"))]
    users, items, values, times = (list(column) for column in zip(*crowd, (9, 1, 3, "soon"), strict=True))
    for duplicates in ("last", "first"):
        with pytest.raises(InvalidRatings, match="time in row 5 is neither"):
            Ratings.of(users, items, values, times, duplicates=duplicates)
    assert Ratings.of(users, items, values, duplicates="mean").values.tolist() == [3, 3, 3]
    for missing in ("", None):
        assert Ratings.of(users, items, values, [*times[:4], missing]).values.tolist() == [5, 5, 3]
        assert Ratings.of(users, items, values, [*times[:4], missing], duplicates="first").values.tolist() == [1, 1, 3]
    users, items, values, times = (list(column) for column in zip(*crowd, strict=True))
    assert Ratings.of(users, items, values, ["soon"] * 4).values.tolist() == [1, 1]  # nobody has any: by row


def test_a_missing_time_is_earlier_than_any_other() -> None:
    ratings = Ratings.of([1, 1, 2, 2], [1, 1, 1, 1], [5, 1, 2, 3], [-7, None, None, None])
    assert ratings.values.tolist() == [5, 3]  # of two without a time the last
    assert ratings.timestamps is not None
    assert ratings.timestamps.tolist() == [-7, UNKNOWN]
    with pytest.raises(InvalidArgument, match="needs a timestamp for every rating"):
        ratings.split(1, how="last")


def test_counts_of_one_pair_add_up_and_ratings_do_not(table: Table, refused: Refused) -> None:
    rows = ["ann", "ann", "bob", "ann"], ["Heat", "Up", "Up", "Heat"]
    assert table(Ratings.of(*rows, counts=True)) == {("ann", "Heat"): 2, ("ann", "Up"): 1, ("bob", "Up"): 1}
    counted = Ratings.of(*rows, [3, 1, 7, 0.5], [9, 5, 1, 4], counts=True)
    assert table(counted) == {("ann", "Heat"): 3.5, ("ann", "Up"): 1, ("bob", "Up"): 7}
    assert counted.timestamps is not None
    assert counted.timestamps.tolist() == [9, 5, 1]  # of the last event
    assert counted.scale == Scale.of_counts()
    assert str(counted) == "Ratings(3 ratings, 2 users, 2 items, scale counts)"
    assert table(Ratings.of(*rows, [3, 1, 7, 2], counts=True, duplicates="last"))["ann", "Heat"] == 2
    with refused("duplicates='sum' is for counts"):
        Ratings.of(*rows, [3, 1, 5, 2], duplicates="sum")


def test_counts_are_above_nothing_and_are_cut_at_the_top(table: Table, refused: Refused) -> None:
    for bad, what in ((0, "the count 0 in row 2 is not above 0"), (-3, "the count -3 in row 2 is not above 0")):
        with refused(what):
            Ratings.of([1, 1], [1, 2], [1, bad], counts=True)
    for odd in (np.nan, np.inf, 1e39):
        with refused("row 2 is missing, infinite or not a number"):
            Ratings.of([1, 1], [1, 2], [1, odd], counts=True)
    assert table(Ratings.of([1, 1], [1, 2], [1, 0], counts=True, missing=0)) == {(1, 1): 1}
    huge = Ratings.of([1] * 4, [1, 1, 2, 3], [3e38, 3e38, 1e30, 0.25], counts=True)
    assert huge.values.tolist() == [2.0**24, 2.0**24, 0.25]


def test_a_declared_scale_limits_counts(table: Table, refused: Refused) -> None:
    with refused("the rating 7 in row 1 is off the scale 1:5"):
        Ratings.of([1], [1], [7], counts=True, scale=(1, 5))
    assert table(Ratings.of([1, 1], [1, 1], [4, 3], counts=True, scale=(1, 5))) == {(1, 1): 5}
