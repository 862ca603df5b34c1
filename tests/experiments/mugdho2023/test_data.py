"""A dense part of a large set: who is in it, and what is left of the items."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiments.figure import Run
from experiments.mugdho2023.data import dense_part, ratings_of, shape_of

from dpmf import Ratings
from experiments.mugdho2023 import data


def _ratings() -> Ratings:
    """Users 0, 10, 20, … rate 1, 2, 3, … of the items 0, 7, 14, …, always the first ones."""
    pairs = [(10 * user, 7 * item) for user in range(12) for item in range(user + 1)]
    users, items = zip(*pairs, strict=True)
    return Ratings.of(users, items, [1 + (user + item) % 5 for user, item in pairs], scale=(1, 5))


def test_users_are_counted_among_all_and_items_among_those_taken() -> None:
    part = dense_part(_ratings(), every=2, users=(4, 11), more_than=2)
    # users with 4 … 11 ratings are 30 … 100; every second of them is 30, 50, 70, 90, with 4, 6, 8, 10 ratings
    assert part.user_ids.array.tolist() == [30, 50, 70, 90]
    # items 0 … 3 have 4 of them, 4 and 5 have 3, the others fewer
    assert part.catalogue.ids.array.tolist() == [0, 7, 14, 21, 28, 35]
    assert np.diff(part.indptr).tolist() == [4, 6, 6, 6]
    whole = _ratings()
    for user in (30, 90):
        items, values = part.of_user(part.user_ids.position(user) or 0)
        _, all_values = whole.of_user(user // 10)
        assert values.tolist() == all_values[: len(items)].tolist()


def test_the_shape_counts_what_has_ratings() -> None:
    ratings = _ratings()
    few = ratings.select(ratings.users < 2)
    assert shape_of(few) == {"users": 2, "items": 2, "ratings": 3, "density": 0.75}


@pytest.mark.parametrize(("many", "users"), [(100, 12), (5, 1)])
def test_only_a_large_set_is_thinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, many: int, users: int) -> None:
    ratings = _ratings()
    monkeypatch.setattr(data, "_MANY_USERS", many)
    monkeypatch.setattr(data, "dense_part", lambda one: dense_part(one, every=12, users=(1, 12), more_than=0))
    monkeypatch.setattr(Run, "ratings", lambda run: ratings)
    assert ratings_of(Run("made", tmp_path / "f")).n_users == users
