"""Selection against a search through all items, and what filters refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf.errors import InvalidArgument, UnknownId
from dpmf.kernels.scores import NEVER
from dpmf.model.selection import NO_FILTERS, find_filters, select_best
from dpmf.ratings import Items

GENRES = ("Crime", "Drama", "Horror", "Space")
CATALOGUE = Items.of(
    [10, 20, 30, 40], ["Heat", "Alien", "Up", "Up"], ["Crime|Drama", "Horror|Space", "", "(no genres listed)"]
)


def choose_slowly(scores: list[int | None], genres: list[list[str]], k: int, choice: dict[str, Any]) -> list[int]:
    """Return what the filters let through, item by item down the whole ranking; None is the score of no candidate."""
    chosen: list[int] = []
    ranking = sorted((-score, place) for place, score in enumerate(scores) if score is not None)
    for _, place in ranking:
        own = genres[place]
        listed = [genre for one in chosen for genre in genres[one]]
        if (
            len(chosen) < k
            and ("only" not in choice or place in choice["only"])
            and ("only_genres" not in choice or set(own) & set(choice["only_genres"]))
            and place not in choice.get("exclude", ())
            and not set(own) & set(choice.get("exclude_genres", ()))
            and all(listed.count(genre) < choice.get("most_per_genre", 999) for genre in own)
        ):
            chosen.append(place)
    return chosen


@given(st.data())
def test_the_selection_is_that_of_a_search_through_all_items(data: st.DataObject) -> None:
    n_items = data.draw(st.integers(4, 60))
    places, genres = st.integers(0, n_items - 1), st.sampled_from(GENRES)
    scores = data.draw(st.lists(st.none() | st.integers(0, 9), min_size=n_items, max_size=n_items))
    of_items = [[genre] for genre in GENRES] + data.draw(
        st.lists(st.lists(genres, unique=True, max_size=3), min_size=n_items - 4, max_size=n_items - 4)
    )
    choice: Any = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "only": st.lists(places),
                "exclude": st.lists(places, max_size=5),
                "only_genres": st.lists(genres, max_size=3),
                "exclude_genres": st.lists(genres, max_size=2),
                "most_per_genre": st.integers(1, 3),
            },
        )
    )
    k = data.draw(st.integers(1, 8) | st.integers(1, 80))
    items = Items.of(np.arange(n_items), genres=["|".join(own) for own in of_items])
    given_scores = np.array([NEVER if score is None else score for score in scores], np.float32)
    before = given_scores.copy()
    found = select_best(given_scores, k, find_filters(items, **choice))
    assert found.tolist() == choose_slowly(scores, of_items, k, choice)
    np.testing.assert_array_equal(given_scores, before)


def test_no_filters_let_everything_through() -> None:
    assert find_filters(CATALOGUE) == find_filters(CATALOGUE, only=[10, 20, 30, 40]) == NO_FILTERS
    assert select_best(np.array([1, 3, 2], np.float32), 2).tolist() == [1, 2]


def test_items_and_genres_can_come_from_any_iterable() -> None:
    allowed = find_filters(CATALOGUE, only=np.array([10, 20, 30]), exclude=iter(["Alien"])).allowed
    assert allowed is not None
    assert allowed.tolist() == [True, False, True, False]
    assert find_filters(CATALOGUE, only_genres=(name for name in ("Drama", "Space"))).allowed is not None


@pytest.mark.parametrize(
    ("choice", "kind", "message"),
    [
        ({"only": ["hea"]}, UnknownId, "item 'hea' is not in the catalogue: did you mean 'Heat'?"),
        ({"exclude": ["Up"]}, InvalidArgument, "'Up' is the title of several items: use the id instead"),
        ({"only": "Heat"}, InvalidArgument, "only='Heat' is not a list: give ['Heat']"),
        ({"exclude_genres": "Crime"}, InvalidArgument, "exclude_genres='Crime' is not a list: give ['Crime']"),
        ({"only_genres": ["crime"]}, UnknownId, "no item has the genre 'crime': did you mean 'Crime'?"),
        ({"only_genres": [7]}, UnknownId, "no item has the genre 7: there are Crime, Drama, Horror, Space"),
        ({"exclude_genres": ["(no genres listed)"]}, UnknownId, "no item has the genre '(no genres listed)': there"),
        ({"most_per_genre": 0}, InvalidArgument, "most_per_genre=0: allow at least 1 item of a genre"),
    ],
)
def test_filters_that_cannot_be_applied_are_refused(choice: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        find_filters(CATALOGUE, **choice)
    assert str(caught.value).startswith(message)


def test_without_genres_there_is_nothing_to_limit() -> None:
    plain = Items.of([1, 2])
    with pytest.raises(InvalidArgument, match="most_per_genre=3 needs genres, and this catalogue has none: train with"):
        find_filters(plain, most_per_genre=3)
    with pytest.raises(UnknownId, match="no item has the genre 'Crime': this catalogue has no genres"):
        find_filters(plain, only_genres=["Crime"])
