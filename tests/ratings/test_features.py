"""What a list of items says about them, as numbers."""

from __future__ import annotations

import numpy as np

from dpmf.ratings import Items
from dpmf.ratings.features import features_of

TITLES = [f"Film {number} ({1950 + number})" for number in range(40)]
GENRES = ["Drama" if number % 2 else "Comedy|Music" for number in range(40)]


def test_genres_and_years_are_columns_of_one_size() -> None:
    found = features_of(Items.of(range(40), TITLES, GENRES))
    assert found.shape == (40, 3 + 3)  # Comedy, Drama and Music; three powers of the year
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found.std(axis=0), 1)


def test_what_few_items_or_all_have_says_nothing() -> None:
    assert features_of(Items.of(range(40), genres=["Rare"] * 4 + [""] * 36)).shape == (40, 0)
    assert features_of(Items.of(range(40), genres=["Always"] * 40)).shape == (40, 0)
    assert features_of(Items.of(range(40), genres=["", " | "] * 20)).shape == (40, 0)


def test_years_count_where_most_titles_have_one() -> None:
    some = [title if number < 15 else "Untitled" for number, title in enumerate(TITLES)]
    assert features_of(Items.of(range(40), some)).shape == (40, 0)
    most = [title if number < 30 else "Untitled" for number, title in enumerate(TITLES)]
    found = features_of(Items.of(range(40), most))
    assert found.shape == (40, 3)
    assert np.abs(found).max() < 10
    assert features_of(Items.of(range(3), ["A (1999)"] * 3)).shape == (3, 0)
    assert features_of(Items.of([])).shape == (0, 0)
