"""Trimming keeps a bounded number of ratings per user, whoever else is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.errors import InvalidArgument
from dpmf.ratings import Ratings
from dpmf.ratings.trim import trimmed

N_ITEMS = 12
Crowd = dict[int | str, list[int]]
rated = st.lists(st.integers(0, N_ITEMS - 1), min_size=1, max_size=20)
crowds: st.SearchStrategy[Crowd] = st.dictionaries(st.integers(0, 50), rated, min_size=1, max_size=4)


def ratings_of(crowd: Crowd) -> Ratings:
    users: list[Any] = [user for user, items in crowd.items() for _ in items]
    if any(isinstance(user, str) for user in users):  # a column has one type
        users = list(map(str, users))
    items = [item for items in crowd.values() for item in items]
    return Ratings.of(users, items, np.arange(len(items)) % 5 + 1, scale=(1, 5), items=range(N_ITEMS))


def kept_of(ratings: Ratings, user: int | str) -> list[int]:
    place = ratings.user_ids.position(user)
    assert place is not None
    return list(ratings.of_user(place)[0].tolist())


@given(crowd=crowds, most=st.integers(1, 15), seed=st.integers(0, 2**62))
def test_nobody_keeps_more_than_the_most_and_nobody_less_than_they_may(crowd: Crowd, most: int, seed: int) -> None:
    before = ratings_of(crowd)
    after = trimmed(before, most, seed=seed)
    np.testing.assert_array_equal(np.diff(after.indptr), np.minimum(np.diff(before.indptr), most))
    for user in range(before.n_users):
        had = dict(zip(*(one.tolist() for one in before.of_user(user)), strict=True))
        has = dict(zip(*(one.tolist() for one in after.of_user(user)), strict=True))
        assert has.items() <= had.items()
    assert (after.user_ids, after.catalogue) == (before.user_ids, before.catalogue)


@given(
    crowd=crowds,
    newcomer=st.one_of(st.integers(-9, 99), st.sampled_from(["ann", "7", "zoe"])),
    theirs=rated,
    most=st.integers(1, 6),
)
@settings(max_examples=150)
def test_whoever_joins_or_changes_does_not_change_what_others_keep(
    crowd: Crowd, newcomer: int | str, theirs: list[int], most: int
) -> None:
    before = trimmed(ratings_of(crowd), most, seed=4)
    joined = {user: items for user, items in crowd.items() if str(user) != str(newcomer)} | {newcomer: theirs}
    after = trimmed(ratings_of(joined), most, seed=4)
    for user in crowd:
        if str(user) != str(newcomer):
            assert kept_of(after, user) == kept_of(before, user)


def test_what_is_kept_depends_on_the_seed_alone() -> None:
    ratings = ratings_of({user: list(range(N_ITEMS)) for user in range(50)})
    one, same, other = (trimmed(ratings, 3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.items, same.items)
    assert (one.items != other.items).any()


def test_every_rating_has_the_same_chance() -> None:
    ratings = ratings_of({user: list(range(N_ITEMS)) for user in range(3000)})
    kept = np.bincount(trimmed(ratings, 3, seed=0).items, minlength=N_ITEMS)
    assert np.abs(kept - 750).max() < 6.5 * np.sqrt(3000 * 0.25 * 0.75)


def test_nothing_is_done_where_nobody_has_too_many() -> None:
    ratings = ratings_of({1: [1, 2], 2: [3]})
    assert trimmed(ratings, 2, seed=0) is ratings


@pytest.mark.parametrize("most", [0, -1])
def test_at_least_one_rating_is_kept(most: int) -> None:
    with pytest.raises(InvalidArgument, match=f"most={most}"):
        trimmed(ratings_of({1: [1]}), most, seed=0)
