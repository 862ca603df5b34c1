"""Splits have the documented sizes, repeat with the seed, and nobody's split depends on anybody else."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf.ratings import Ratings

if TYPE_CHECKING:
    from ratings.conftest import Refused, Table

WAYS = [("random", 0.5), ("per-user", 0.4), ("last", 2), ("time", 2)]

histories = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(0, 8)), st.integers(0, 3), min_size=1, max_size=30
)  # (user, item) → time, with many equal times
extra_history = st.dictionaries(st.one_of(st.integers(0, 20), st.sampled_from(["a", "007"])), st.integers(0, 3))


def of_one_type(ids: list[Any]) -> list[Any]:
    """Return ids as texts if any of them is one: a column has one type."""
    return list(map(str, ids)) if any(isinstance(one, str) for one in ids) else ids


def ratings_of(history: dict[tuple[Any, Any], int]) -> Ratings:
    users, items = of_one_type([user for user, _ in history]), of_one_type([item for _, item in history])
    return Ratings.of(users, items, [3.0] * len(history), list(history.values()), scale=(1, 5))


def held_pairs(ratings: Ratings, test: float, how: str, seed: int = 0) -> set[tuple[str, str]]:
    _, held = ratings.split(test, seed=seed, how=how)
    users, items = ratings.user_ids, ratings.catalogue.ids
    pairs = zip(held.users.tolist(), held.items.tolist(), strict=True)
    return {(str(users[user]), str(items[item])) for user, item in pairs}


@pytest.mark.parametrize(("how", "test"), WAYS)
@given(history=histories, newcomer=extra_history, name=st.sampled_from([99, -1, "zoë"]), shuffle=st.randoms())
def test_a_newcomer_and_the_order_of_rows_change_nobody_elses_split(
    how: str, test: float, history: dict[tuple[int, int], int], newcomer: dict[Any, int], name: int | str, shuffle: Any
) -> None:
    rows = [*history.items(), *(((name, item), time) for item, time in newcomer.items())]
    shuffle.shuffle(rows)
    with_newcomer = held_pairs(ratings_of(dict(rows)), test, how)
    assert {pair for pair in with_newcomer if pair[0] != str(name)} == held_pairs(ratings_of(history), test, how)


@pytest.mark.parametrize(("how", "test"), WAYS)
@given(history=histories, seed=st.integers(0, 2**70))
def test_both_parts_together_are_the_whole(
    how: str, test: float, table: Table, history: dict[tuple[int, int], int], seed: int
) -> None:
    ratings = ratings_of(history)
    train, held = ratings.split(test, seed=seed, how=how)
    assert not table(train).keys() & table(held).keys()
    assert table(train) | table(held) == table(ratings)
    assert train.user_ids is held.user_ids is ratings.user_ids
    assert train.catalogue is held.catalogue is ratings.catalogue
    assert train.timestamps is not None
    assert held.timestamps is not None
    assert sorted([*train.timestamps, *held.timestamps]) == sorted(history.values())


@given(history=histories, test=st.floats(0.01, 0.99))
def test_per_user_holds_out_the_rounded_share_of_everybody(history: dict[tuple[int, int], int], test: float) -> None:
    ratings = ratings_of(history)
    _, held = ratings.split(test, how="per-user")
    assert np.diff(held.indptr).tolist() == np.rint(test * np.diff(ratings.indptr)).tolist()


@given(history=histories, count=st.integers(1, 5))
def test_last_holds_out_the_latest_of_everybody(history: dict[tuple[int, int], int], count: int) -> None:
    train, held = ratings_of(history).split(count, how="last")
    assert train.timestamps is not None
    assert held.timestamps is not None
    times = defaultdict(list)
    for (user, _), time in history.items():
        times[user].append(time)
    for place, user in enumerate(sorted(times)):
        latest = held.timestamps[held.indptr[place] : held.indptr[place + 1]]
        earlier = train.timestamps[train.indptr[place] : train.indptr[place + 1]]
        assert sorted(latest) == sorted(times[user])[-count:]
        assert not len(earlier) or earlier.max() <= latest.min()


@pytest.mark.parametrize(("how", "test"), [("random", 0.3), ("per-user", 0.3), ("last", 30)])
def test_the_seed_fixes_the_split_and_another_seed_gives_another(how: str, test: float) -> None:
    """With equal times everywhere, "last" is a choice at random too."""
    ratings = ratings_of({(user, item): 1 for user in range(20) for item in range(100)})
    first = held_pairs(ratings, test, how, seed=1)
    assert first == held_pairs(ratings, test, how, seed=1)
    assert len(first ^ held_pairs(ratings, test, how, seed=2)) > 400


def test_random_holds_out_about_the_share_asked_for_whatever_the_user_or_the_item() -> None:
    ratings = ratings_of({(user, item): 1 for user in range(100) for item in range(100)})
    _, held = ratings.split(0.3)
    deviation = np.sqrt(0.3 * 0.7 / 100)  # of a share of 100
    assert abs(len(held) / 10_000 - 0.3) < 4 * deviation / 10
    for counts in (np.diff(held.indptr), np.bincount(held.items, minlength=100)):
        shares = counts / 100
        assert abs(shares - 0.3).max() < 5 * deviation
        assert 0.7 * deviation < shares.std() < 1.3 * deviation


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"test": 0}, ["test=0", "between 0 and 1"]),
        ({"test": 1}, ["test=1"]),
        ({"test": float("nan")}, ["test=nan"]),
        ({"test": 0.2, "how": "per-user "}, ["how='per-user '", "random, per-user, last, time"]),
        ({"test": 1, "how": "per-user"}, ["test=1"]),
        ({"test": 0, "how": "last"}, ["test=0", "number of ratings"]),
        ({"test": 1.5, "how": "last"}, ["test=1.5"]),
        ({"test": float("nan"), "how": "last"}, ["test=nan"]),
        ({"test": float("inf"), "how": "last"}, ["test=inf"]),
    ],
)
def test_a_split_that_makes_no_sense_is_refused(arguments: dict[str, Any], words: list[str], refused: Refused) -> None:
    with refused(*words):
        ratings_of({(1, 1): 1, (1, 2): 2}).split(**arguments)


@given(history=histories, cut=st.integers(-1, 4))
def test_time_holds_out_everything_from_a_time_on(history: dict[tuple[int, int], int], cut: int) -> None:
    late = {(str(user), str(item)) for (user, item), time in history.items() if time >= cut}
    assert held_pairs(ratings_of(history), cut, "time") == late


@pytest.mark.parametrize("how", ["last", "time"])
def test_the_last_ones_and_a_time_need_times(how: str, refused: Refused) -> None:
    with refused("timestamp", how):
        Ratings.of([1], [1], [1]).split(1, how=how)
