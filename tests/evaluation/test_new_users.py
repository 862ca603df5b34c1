"""New users: who is held out, what is known of them, and what the figures are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.evaluation import new_users
from dpmf.evaluation.new_users import NewUsers, People, measure_ranker, release_ranker, split_users, tail_of
from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.model import Ranking, Release
from dpmf.ratings import Ratings
from dpmf.ratings.ids import Ids
from dpmf.ratings.subset import keep_users, select_users


def users_of(ratings: Ratings) -> set[object]:
    return set(ratings.user_ids)


def test_removing_a_person_changes_nobody_elses_side(small_ratings: Ratings) -> None:
    protocol = NewUsers(share=0.3, seed=4)
    train, people = split_users(small_ratings, protocol)
    assert train.n_users + people.n_held_out == small_ratings.n_users
    for gone in (0, 7, 119):
        others = select_users(small_ratings, np.delete(np.arange(small_ratings.n_users), gone))
        assert users_of(split_users(others, protocol)[0]) == users_of(train) - {small_ratings.user_ids[gone]}
    assert users_of(split_users(small_ratings, NewUsers(share=0.3, seed=5))[0]) != users_of(train)
    assert users_of(split_users(small_ratings, NewUsers(share=0.2, seed=4))[0]) > users_of(train)


def test_training_has_all_ratings_of_all_others(small_ratings: Ratings) -> None:
    train, _ = split_users(small_ratings, NewUsers(share=0.3, seed=4))
    for place, user in enumerate(train.user_ids):
        was = small_ratings.user_ids.position(user)
        assert was is not None
        for ours, theirs in zip(train.of_user(place), small_ratings.of_user(was), strict=True):
            assert (ours == theirs).all()


def test_positives_are_split_and_nothing_else_is_known(small_ratings: Ratings) -> None:
    protocol = NewUsers(share=0.3, fold_in=0.5, seed=4)
    _, people = split_users(small_ratings, protocol)
    held_out = keep_users(small_ratings, protocol.choose(small_ratings.user_ids))
    likes = [held_out.items[held_out.users == user] for user in range(held_out.n_users)]
    values = [held_out.values[held_out.users == user] for user in range(held_out.n_users)]
    likes = [items[rated >= 4] for items, rated in zip(likes, values, strict=True)]
    enough = [items for items in likes if len(items) >= protocol.least]
    assert (len(people), people.n_left_out) == (len(enough), len(likes) - len(enough))
    for row, items in enumerate(enough):
        known = people.known.items[people.known.indptr[row] : people.known.indptr[row + 1]]
        sought = people.sought.items[people.sought.indptr[row] : people.sought.indptr[row + 1]]
        assert len(known) == min(max(round(0.5 * len(items)), 1), len(items) - 1)
        assert sorted([*known, *sought]) == sorted(items)
    assert people.known.values.min() >= 4
    everything = split_users(small_ratings, replace(protocol, positive=-math.inf))[1]
    assert len(everything.known.items) + len(everything.sought.items) == len(held_out)


def test_what_is_folded_in_depends_on_nobody_else(small_ratings: Ratings) -> None:
    protocol = NewUsers(share=0.5, seed=4)
    _, people = split_users(small_ratings, protocol)
    (first, *_) = np.flatnonzero(protocol.choose(small_ratings.user_ids))
    others = select_users(small_ratings, np.delete(np.arange(small_ratings.n_users), first))
    _, fewer = split_users(others, protocol)
    assert (fewer.known.items == people.known.items[people.known.indptr[1] :]).all()


def test_lists_are_made_for_so_many_people_at_most(small_ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = NewUsers(share=0.5, seed=4)
    train, people = split_users(small_ratings, protocol)
    monkeypatch.setattr(new_users, "MOST_PEOPLE", 10)
    same, fewer = split_users(small_ratings, protocol)
    assert len(fewer) + fewer.n_left_out == 10 < len(people)
    assert fewer.n_held_out == people.n_held_out
    assert same.user_ids == train.user_ids


def test_figures_of_a_hand_computed_example() -> None:
    known = Csr(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.array([5, 5], np.float32))
    sought = CsrPattern(np.array([0, 1, 4]), np.array([2, 0, 3, 4], np.int32))
    lists = np.array([[1, 2, 3, 4, -1], [0, 2, 3, -1, -1]], np.int32)
    figures = measure_ranker(lambda *_: lists, People(known, sought, 5, 2, 0, 2), np.array([9, 8, 7, 6, 5]))
    first, second = 1 / math.log2(3), (1 + 1 / math.log2(4)) / (1 + 1 / math.log2(3) + 1 / math.log2(4))
    assert figures["recall@20"] == pytest.approx((1 + 2 / 3) / 2)
    assert figures["recall@50"] == figures["recall@20"]
    assert figures["ndcg@10"] == figures["ndcg@100"] == pytest.approx((first + second) / 2)
    half = 1.96 * math.sqrt(2 * ((first - second) / 2) ** 2) / math.sqrt(2)
    mean = (first + second) / 2
    assert figures["ndcg@10_interval"] == pytest.approx([max(mean - half, 0), min(mean + half, 1)], abs=1e-4)
    assert figures["coverage@20"] == 1.0
    assert figures["tail@20"] == pytest.approx(6 / 7)  # only item 0 is in the head


def test_figures_are_those_of_a_slow_reference() -> None:
    chance = np.random.default_rng(5)
    n_people, n_items = 40, 300
    lists = np.array([chance.permutation(n_items)[:100] for _ in range(n_people)], np.int32)
    sought = [np.sort(chance.permutation(n_items)[: chance.integers(1, 60)]) for _ in range(n_people)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in sought])])
    popularity = chance.integers(0, 50, n_items)
    none = Csr(np.zeros(n_people + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    people = People(none, CsrPattern(indptr, np.concatenate(sought).astype(np.int32)), n_items, n_people, 0, 2)
    figures = measure_ranker(lambda *_: lists, people, popularity)
    recalls, gains = [], []
    for row, items in zip(lists.tolist(), sought, strict=True):
        recalls.append(len(set(row[:20]) & set(items.tolist())) / min(20, len(items)))
        got = sum(1 / math.log2(rank + 2) for rank, item in enumerate(row) if item in items)
        gains.append(got / sum(1 / math.log2(rank + 2) for rank in range(min(100, len(items)))))
    assert figures["recall@20"] == pytest.approx(np.mean(recalls))
    assert figures["ndcg@100"] == pytest.approx(np.mean(gains))
    tail = set(sorted(range(n_items), key=lambda item: (-popularity[item], item))[60:])
    assert set(np.flatnonzero(tail_of(popularity)).tolist()) == tail
    assert figures["tail@20"] == pytest.approx(
        np.mean([item in tail for row in lists[:, :20].tolist() for item in row])
    )


@pytest.mark.parametrize("ranks", [False, True])
def test_a_release_ranks_as_it_recommends(release: Release, ranking_of: Callable[..., Ranking], ranks: bool) -> None:
    release = replace(release, ranking=ranking_of(6) if ranks else None)
    indptr, items = np.array([0, 2, 3]), np.array([0, 4, 2], np.int32)
    values = np.array([5, 1, 4], np.float32)
    lists = release_ranker(release, 1)(indptr, items, values, 6)
    for row, mine in enumerate(({10: 5, 50: 1}, {30: 4})):
        expected = [release.items.ids.position(one.item) for one in release.fold_in(mine).recommend(k=6)]
        assert [place for place in lists[row].tolist() if place >= 0] == expected


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"share": 0.0}, "share=0 should be between 0 and 1"),
        ({"fold_in": 1.0}, "fold_in=1 should be between 0 and 1"),
        ({"positive": math.nan}, "positive=nan"),
    ],
)
def test_what_is_no_protocol_is_refused(how: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        NewUsers(**how)


def test_too_few_people_are_refused(small_ratings: Ratings) -> None:
    with pytest.raises(InvalidArgument, match="above the scale 1:5"):
        split_users(small_ratings, NewUsers(positive=6.0))
    with pytest.raises(InvalidArgument, match="hold out more"):
        split_users(small_ratings, NewUsers(share=1e-9))
    with pytest.raises(InvalidArgument, match="leaves nobody to learn from"):
        split_users(small_ratings, NewUsers(share=1 - 1e-12))


def test_the_share_of_people_is_what_was_asked_for() -> None:
    people: NDArray[np.int64] = np.arange(20_000)
    assert np.mean(NewUsers(share=0.1).choose(Ids(people))) == pytest.approx(0.1, abs=0.01)
