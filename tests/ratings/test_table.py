"""The scale, the plain views of ratings, and a few figures about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dpmf.ratings import Ratings, Scale
from dpmf.ratings.summary import describe

if TYPE_CHECKING:
    from ratings.conftest import Refused

RATINGS = Ratings.of(
    ["bob", "ann", "ann"], ["x", "y", "x"], [3, 5, 4], [30, 20, 10], scale=(1, 5), items=["x", "y", "unrated"]
)


def test_a_scale_is_read_from_text_and_written_back() -> None:
    assert Scale.parse("0.5:5") == Scale(0.5, 5.0, declared=True)
    assert str(Scale.parse("-10:10")) == "-10:10"
    assert Scale(1, 5).middle == 3
    assert Scale(1, 5).liked == 4


@pytest.mark.parametrize("text", ["", "5", "a:b", "5:1", "1:1", "1:", "1:inf", "nan:5", "1:2:3"])
def test_a_text_that_is_no_scale_is_refused(text: str, refused: Refused) -> None:
    with refused("scale", "1:5"):
        Scale.parse(text)


@pytest.mark.parametrize("ends", [None, 5, (1,), (1, 2, 3), ("a", "b"), (1, 10**400), "15"])
def test_what_is_no_pair_of_numbers_is_no_scale(ends: Any, refused: Refused) -> None:
    with refused("scale"):
        Scale.of(ends)


def test_a_scale_stays_as_declared_as_it_was() -> None:
    seen = Scale(1, 5, declared=False)
    assert Scale.of(seen) is seen
    assert Scale.of([1, 5]) == Scale.of("1:5") == Scale(1.0, 5.0)


def test_ratings_stand_by_user_and_item() -> None:
    assert list(RATINGS.user_ids) == ["ann", "bob"]
    assert RATINGS.users.tolist() == [0, 0, 1]
    assert RATINGS.items.tolist() == [0, 1, 0]
    assert RATINGS.values.tolist() == [4, 5, 3]
    items, values = RATINGS.of_user(0)
    assert (items.tolist(), values.tolist()) == ([0, 1], [4, 5])
    assert (RATINGS.n_users, RATINGS.n_items, len(RATINGS)) == (2, 3, 3)
    assert repr(RATINGS) == "Ratings(3 ratings, 2 users, 3 items, scale 1:5)"


def test_selecting_keeps_all_users_and_items() -> None:
    part = RATINGS.select(np.array([False, False, True]))
    assert part.indptr.tolist() == [0, 0, 1]
    assert (part.n_users, part.n_items, len(part)) == (2, 3, 1)
    assert part.timestamps is not None
    assert part.timestamps.tolist() == [30]


def test_a_description_says_what_is_declared() -> None:
    figures = describe(RATINGS)
    assert (figures["ratings"], figures["users"], figures["items"], figures["rated_items"]) == (3, 2, 3, 2)
    assert (figures["scale"], figures["catalogue"], figures["timestamps"]) == ("1:5", "declared", True)
    assert figures["mean_rating"] == 4
    assert figures["density"] == 0.5
    assert (figures["ratings_per_user_median"], figures["ratings_per_user_most"]) == (1.5, 2)
    assert (figures["ratings_per_item_median"], figures["ratings_per_item_most"]) == (1, 2)
    seen = describe(Ratings.of([1], [1], [3]))
    assert "not declared" in seen["scale"]
    assert "not declared" in seen["catalogue"]
