"""Rounds of the published protocol: sums are right whoever leaves, and nobody is counted twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf.errors import InvalidArgument
from dpmf.federated.published import Terms, User
from dpmf.federated.wire.channels import KeyPair
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY

from .published_world import EXACT, RATINGS, WRONG, World, both_kinds, plain_sums


@both_kinds
@pytest.mark.parametrize("silent", [[], [8], [3, 40], [8, 9, 40]])
def test_the_masked_sum_is_the_plain_sum_bit_for_bit(shared_noise: bool, silent: list[int]) -> None:
    here = World(RATINGS, shared_noise=shared_noise, **EXACT)
    present = [user for user in RATINGS if user not in silent]
    counts = np.bincount([item for user in present for item in RATINGS[user]], minlength=3)
    items = np.flatnonzero(counts)
    for _ in range(3):
        expected, after = plain_sums(here, present), here.recommender.V.copy()
        here.play(silent=silent)
        mean = expected[items] / (here.terms.steps * counts[items, None])
        after[items] -= here.terms.rate * (mean + 2 * 0.0 * after[items])
        np.testing.assert_array_equal(here.recommender.V, after)
    assert here.recommender.discarded == 0


@both_kinds
def test_a_round_in_which_nobody_answers_is_discarded(shared_noise: bool) -> None:
    here = World(RATINGS, shared_noise=shared_noise)
    before = here.recommender.V.copy()
    here.play(silent=RATINGS)
    np.testing.assert_array_equal(here.recommender.V, before)
    assert here.recommender.discarded == 1
    here.play()
    assert (before != here.recommender.V).all()


def test_an_item_of_which_all_raters_leave_does_not_move() -> None:
    here = World(RATINGS, shared_noise=True)
    before = here.recommender.V.copy()
    here.play(silent=[8, 9])
    moved = (before != here.recommender.V).all(axis=1)
    assert moved.tolist() == [True, False, True]


@both_kinds
def test_newcomers_take_part_from_the_next_round_on(shared_noise: bool) -> None:
    here = World(RATINGS, shared_noise=shared_noise, **EXACT, most_users=9)
    own = {0: 5.0, 1: 1.0}
    user = User(np.array([0, 1]), np.array([5.0, 1.0]), here.terms, here.recommender.public, here.third_party.public)

    def come(_: Any) -> None:
        here.users[50], here.ratings = user, {**RATINGS, 50: own}
        here.recommender.admit(50, user.public)
        here.third_party.admit(50, user.public)
        here.send(50, RECOMMENDER, user.join().message)

    expected, before = plain_sums(here, list(RATINGS)), here.recommender.V.copy()
    here.play(list(RATINGS), meddle=come)
    assert np.abs(here.sums_of_last_step(before, RATINGS) * here.terms.steps - expected).max() < 1e-4
    everybody = [*RATINGS, 50]
    expected, before = plain_sums(here, everybody), here.recommender.V.copy()
    here.play()
    assert np.abs(here.sums_of_last_step(before, everybody) * here.terms.steps - expected).max() < 1e-4


def test_a_set_up_without_all_of_its_users_is_discarded() -> None:
    here = World(RATINGS, shared_noise=True, set_up_without=[8])
    assert here.recommender.discarded == 1
    assert not here.recommender.snapshot()["fixed"].any()
    with pytest.raises(InvalidArgument, match="before the fixed noise is set up"):
        here.play()


@both_kinds
def test_the_set_up_happens_once_if_at_all(shared_noise: bool) -> None:
    here = World(RATINGS, shared_noise=shared_noise)
    with pytest.raises(InvalidArgument, match="set-up happens once"):
        here.recommender.set_up([3])


def test_impossible_arguments_are_refused() -> None:
    terms, key = Terms(3, (1.0, 5.0), 1.0, 4), KeyPair().public
    for items, values in (([], []), ([2, 1], [3, 3]), ([0, 3], [3, 3]), ([0], [3, 3])):
        with pytest.raises(InvalidArgument, match="ascending"):
            User(np.array(items), np.array(values), terms, key, KeyPair().public)
    with pytest.raises(InvalidArgument, match="off the scale"):
        User(np.array([0]), np.array([6.0]), terms, key, KeyPair().public)
    with pytest.raises(InvalidArgument, match="third party"):
        User(np.array([0]), np.array([3.0]), terms, key, None)
    here = World(RATINGS, shared_noise=False, most_users=2)
    with pytest.raises(InvalidArgument, match="more than the 2"):
        here.play()
    here.play([3, 8], silent=[3, 8])
    here.recommender.open_round([3])
    with pytest.raises(InvalidArgument, match="already open"):
        here.recommender.open_round([3])


anybody = st.sampled_from(sorted(RATINGS))
actions = st.lists(
    st.one_of(
        st.tuples(st.just("play"), st.sets(anybody), st.sets(anybody)),
        st.tuples(st.just("meddle"), st.sampled_from(sorted(WRONG)), st.none()),
        st.tuples(st.just("join"), anybody, st.none()),
        st.tuples(st.just("replay"), st.integers(0, 200), st.none()),
        st.tuples(st.just("garbage"), st.binary(max_size=60), st.sampled_from([RECOMMENDER, THIRD_PARTY, 3, 8])),
    ),
    max_size=8,
)


@both_kinds
@given(schedule=actions)
@settings(max_examples=40, deadline=None)
def test_whatever_happens_sums_are_right_or_the_round_is_discarded(
    shared_noise: bool, schedule: list[tuple[Any, ...]]
) -> None:
    here = World(RATINGS, shared_noise=shared_noise, **EXACT)
    for what, first, second in schedule:
        if what == "join":
            here.send(first, RECOMMENDER, here.users[first].join().message)
        elif what == "replay":
            sender, to, message = here.transcript[first % len(here.transcript)]
            here.send(sender, to, message)
        elif what == "garbage":
            here.send(RECOMMENDER if second == 8 else 9, second, first)
        else:
            chosen, silent = (first, second) if what == "play" else ({3, 8, 9}, {3})
            present = sorted(chosen - silent)
            expected, before = plain_sums(here, present), here.recommender.V.copy()
            discarded = here.recommender.discarded
            here.play(sorted(chosen), silent=silent, meddle=WRONG[first] if what == "meddle" else None)
            if here.recommender.discarded > discarded:
                assert not present
                np.testing.assert_array_equal(here.recommender.V, before)
            else:
                found = here.sums_of_last_step(before, present) * here.terms.steps
                assert np.abs(found - expected).max() < 1e-4
    for user in here.users.values():
        assert np.linalg.norm(user.profile) <= here.terms.radius * (1 + 1e-12)
