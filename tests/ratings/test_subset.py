"""A part of the catalogue: exactly its ratings, and nobody without any."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.errors import InvalidArgument
from dpmf.ratings import Ratings
from dpmf.ratings.subset import keep_users, random_items, select_users
from dpmf.ratings.synthetic import make


def triples(ratings: Ratings) -> set[tuple[object, object, float]]:
    users, items = list(ratings.user_ids), list(ratings.catalogue.ids)
    return {
        (users[user], items[item], float(value))
        for user, item, value in zip(ratings.users, ratings.items, ratings.values, strict=True)
    }


@pytest.mark.parametrize("count", [1, 7, 40])
def test_exactly_the_ratings_of_the_chosen_items_are_kept(count: int) -> None:
    whole = make(60, 40)
    part = random_items(whole, count, seed=3)
    chosen = set(part.catalogue.ids)
    assert len(chosen) == part.n_items == count
    assert triples(part) == {one for one in triples(whole) if one[1] in chosen}
    assert {user for user, _, _ in triples(part)} == set(part.user_ids)
    titles = dict(zip(whole.catalogue.ids, whole.catalogue.titles, strict=True))
    assert list(part.catalogue.titles) == [titles[item] for item in part.catalogue.ids]


def test_people_without_ratings_may_stay() -> None:
    whole = make(60, 40)
    part = random_items(whole, 1, seed=3, keep_people=True)
    assert list(part.user_ids) == list(whole.user_ids)
    assert triples(part) == triples(random_items(whole, 1, seed=3))


def test_users_can_be_marked_or_named() -> None:
    whole = make(60, 40)
    kept = np.arange(60) % 3 == 1
    marked, named = keep_users(whole, kept), select_users(whole, np.flatnonzero(kept))
    assert triples(marked) == triples(named)
    assert marked.user_ids == named.user_ids
    assert (marked.indptr == named.indptr).all()


def test_the_seed_chooses() -> None:
    whole = make(60, 40)
    first, again, other = (random_items(whole, 10, seed=seed) for seed in (1, 1, 2))
    assert list(first.catalogue.ids) == list(again.catalogue.ids)
    assert list(first.catalogue.ids) != list(other.catalogue.ids)


@pytest.mark.parametrize("count", [0, 41])
def test_more_than_there_are_cannot_be_drawn(count: int) -> None:
    with pytest.raises(InvalidArgument, match="cannot be drawn"):
        random_items(make(60, 40), count, seed=1)
