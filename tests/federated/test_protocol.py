"""Rounds of the published protocol: right sums whoever leaves, and nothing wrong is ever counted."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmf.errors import InvalidArgument
from dpmf.federated.published.laplace import drawn_spread, pieces, whole_noise
from dpmf.federated.published.randomness import Draws
from dpmf.federated.published.terms import Terms
from dpmf.federated.published.user import User
from dpmf.federated.wire.channels import KeyPair
from dpmf.federated.wire.messages import Answer, Roster, Total, digest_of_items
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY
from dpmf.kernels.protocol import Pace, answer_round_reference, spread_roots

RATINGS = {3: {0: 5.0, 2: 1.0}, 8: {0: 4.0, 1: 2.0, 2: 3.0}, 9: {1: 5.0, 2: 2.0}, 40: {0: 1.0, 2: 5.0}}
both_kinds = pytest.mark.parametrize("dealt", [False, True], ids=["s2", "s3"])
EXACT = {"epsilon": math.inf, "item_penalty": 0.0, "user_penalty": 0.0}


def plain_sums(world: Any, users: list[int]) -> np.ndarray[Any, Any]:
    """Return what the users' gradients add up to on the grid, without masks; noise is 0."""
    terms = world.terms
    pace = Pace(terms.rate, terms.user_penalty, terms.radius, 0.0, terms.steps, terms.limit)
    sums = np.zeros((terms.n_items, terms.n_factors), np.int64)
    for user in users:
        items = np.array(sorted(world.ratings[user]))
        values = np.array([world.ratings[user][item] for item in items.tolist()], np.float32)
        rows, n = world.recommender.V[items].astype(np.float32), len(items)
        codes, nothing = np.zeros(rows.shape, np.uint16), np.zeros(rows.size)
        numbers, _ = answer_round_reference(
            rows, values, np.ones(n), codes, spread_roots(), nothing, pace, world.users[user].profile
        )
        sums[items] += numbers
    return sums


@both_kinds
@pytest.mark.parametrize("silent", [[], [8], [3, 40], [8, 9, 40]])
def test_the_masked_sum_is_the_plain_sum_bit_for_bit(world: Any, dealt: bool, silent: list[int]) -> None:
    here = world(RATINGS, dealt=dealt, **EXACT)
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
def test_a_round_in_which_nobody_answers_is_discarded(world: Any, dealt: bool) -> None:
    here = world(RATINGS, dealt=dealt)
    before = here.recommender.V.copy()
    here.play(silent=RATINGS)
    np.testing.assert_array_equal(here.recommender.V, before)
    assert here.recommender.discarded == 1
    here.play()
    assert (before != here.recommender.V).all()


def test_an_item_of_which_all_raters_leave_does_not_move(world: Any) -> None:
    here = world(RATINGS, dealt=True)
    before = here.recommender.V.copy()
    here.play(silent=[8, 9])
    moved = (before != here.recommender.V).all(axis=1)
    assert moved.tolist() == [True, False, True]


@both_kinds
def test_who_comes_takes_part_from_the_next_round_on(world: Any, dealt: bool) -> None:
    here = world(RATINGS, dealt=dealt, **EXACT, most_users=9)
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


def noise_of(world: Any, silent: list[int], n_items: int = 400, K: int = 30) -> tuple[Any, np.ndarray[Any, Any]]:
    """Return a world of people without a taste, and the sums that they made: noise alone."""
    ratings = {user: dict.fromkeys(range(n_items), 3.0) for user in range(6)}
    here = world(ratings, dealt=True, seed=11, n_items=n_items, n_factors=K, item_penalty=0.0)
    for user in here.users.values():
        user.profile[:] = 0.0
    before = here.recommender.V.copy()
    here.play(silent=silent)
    return here, here.sums_of_last_step(before, [user for user in ratings if user not in silent])


@pytest.mark.parametrize("silent", [[], [2, 5]])
def test_pieces_add_up_to_the_stated_noise_also_if_users_leave(world: Any, silent: list[int]) -> None:
    here, sums = noise_of(world, silent)
    ring, b = here.terms.ring, here.terms.amplitude
    fixed = ring.signed(here.recommender.kept()["fixed"] - here.third_party.kept()["secret"]) / here.terms.steps
    assert stats.kstest(fixed.ravel() / b, "laplace").pvalue > 1e-4
    of_round = (sums - fixed).ravel() / b
    thinned = math.sqrt((6 - len(silent)) / 6)  # who leaves takes their part along
    assert stats.kstest(of_round / thinned, "laplace").pvalue > 1e-4
    if silent:
        assert stats.kstest(of_round, "laplace").pvalue < 1e-4
    assert abs(np.corrcoef(fixed.ravel(), of_round)[0, 1]) < 0.05


def test_noise_of_a_round_is_another_one_in_every_round(world: Any) -> None:
    here, first = noise_of(world, [], n_items=100)
    before = here.recommender.V.copy()
    for user in here.users.values():
        user.profile[:] = 0.0
    here.play()
    second = here.sums_of_last_step(before, here.ratings)
    fixed = here.terms.ring.signed(here.recommender.kept()["fixed"] - here.third_party.kept()["secret"])
    first, second = first - fixed / here.terms.steps, second - fixed / here.terms.steps
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.1


def test_noise_that_users_draw_for_good_is_the_same_in_every_round(world: Any) -> None:
    ratings = {user: dict.fromkeys(range(300), 3.0) for user in range(5)}
    here = world(ratings, dealt=False, seed=11, n_factors=20, item_penalty=0.0)
    here.play()
    fixed = sum(user.fixed for user in here.users.values()) / here.terms.steps
    assert stats.kstest(fixed.ravel() / here.terms.amplitude, "laplace").pvalue > 1e-4
    for user in here.users.values():
        user.profile[:] = 0.0
    before = here.recommender.V.copy()
    here.play()
    of_round = here.sums_of_last_step(before, ratings) - fixed  # it is in the answers, and fresh noise besides
    assert stats.kstest(of_round.ravel() / here.terms.amplitude, "laplace").pvalue > 1e-4
    again = {number: user.fixed.copy() for number, user in here.users.items()}
    here.play()
    for number, user in here.users.items():
        np.testing.assert_array_equal(user.fixed, again[number])


@pytest.mark.parametrize("k", [1, 7, 300])
def test_pieces_of_k_users_are_laplace_together(k: int) -> None:
    draws, counts = Draws(11), np.full(150, k, np.uint32)
    codes = drawn_spread(draws, (150, 40))
    total = sum(pieces(draws, codes, counts, 10.0, 4096.0) for _ in range(k))
    assert stats.kstest(np.ravel(total) / 4096.0 / 10.0, "laplace").pvalue > 1e-4


def test_noise_of_a_single_user_has_a_gamma_length_and_any_direction() -> None:
    noise = whole_noise(Draws(11), 4000, 10, 3.0, 1e6) / 1e6
    lengths = np.linalg.norm(noise, axis=1)
    assert stats.kstest(lengths / 3.0, "gamma", args=(10,)).pvalue > 1e-4
    directions = noise / lengths[:, None]
    assert stats.kstest(directions[:, 0] ** 2, "beta", args=(0.5, 4.5)).pvalue > 1e-4
    assert np.abs(directions.mean(axis=0)).max() < 5 / math.sqrt(10 * 4000)


def test_without_a_third_party_noise_is_far_larger(world: Any) -> None:
    moved = {}
    for third_party in (True, False):
        ratings = {user: dict.fromkeys(range(40), 3.0) for user in range(60)}
        here = world(ratings, dealt=False, seed=11, third_party=third_party, n_factors=8, item_penalty=0.0)
        for user in here.users.values():
            user.profile[:] = 0.0
        before = here.recommender.V.copy()
        here.play()
        moved[third_party] = float(np.abs(here.sums_of_last_step(before, ratings)).mean())
    # A sum of 60 users' own noise, against one fixed and one fresh draw for all of them together.
    assert moved[False] > 2.5 * moved[True]


def test_a_recommender_that_draws_small_spreads_is_caught(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = {user: dict.fromkeys(range(20), 3.0) for user in range(3)}
    here = world(ratings, dealt=True, seed=11, n_factors=20)
    import dpmf.federated.published.recommender as module

    def little(draws: Draws, shape: tuple[int, int]) -> Any:
        return np.maximum(drawn_spread(draws, shape), np.uint16(50000))  # code 0 is the largest H

    monkeypatch.setattr(module, "drawn_spread", little)
    here.play()
    assert here.recommender.discarded == 1
    for user in here.users.values():
        assert user.refusals.by_reason == {"the spread of the noise is not drawn as it should be": 1}


@both_kinds
def test_small_spreads_of_the_fixed_noise_are_caught_too(
    world: Any, dealt: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dpmf.federated.published.recommender as module

    ratings = {user: dict.fromkeys(range(20), 3.0) for user in range(3)}
    honest, calls = drawn_spread, itertools.count()

    def little_at_first(draws: Draws, shape: tuple[int, int]) -> Any:
        drawn = honest(draws, shape)
        return drawn if next(calls) else np.maximum(drawn, np.uint16(50000))

    monkeypatch.setattr(module, "drawn_spread", little_at_first)
    here = world(ratings, dealt=dealt, seed=11, n_factors=20)
    if not dealt:
        here.play()
    assert here.recommender.discarded == 1
    for user in here.users.values():
        assert user.refusals.by_reason == {"the spread of the noise is not drawn as it should be": 1}


def test_the_recommender_does_not_know_the_fixed_noise(world: Any) -> None:
    """What it keeps is uniform: the third party's secret is on top."""
    ratings = {user: dict.fromkeys(range(400), 3.0) for user in range(3)}
    kept = world(ratings, dealt=True, n_factors=20).recommender.kept()["fixed"].ravel()
    for shift in (0, 8, 16, 24):
        counts = np.bincount(kept >> np.uint32(shift) & np.uint32(255), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-9


def seal_as(world: Any, sender: int, content: bytes) -> bytes:
    """Seal a message as a user would that does not keep to the protocol."""
    sealed: bytes = world.users[sender]._third_party.seal(content)
    return sealed


def answer(world: Any, later: int, items: list[int]) -> bytes:
    """Return an answer to the present round, or to one so much later."""
    words = np.full((len(items), world.terms.n_factors), 12345, np.uint32)
    return Answer(world.recommender.round + later, np.array(items, np.uint32), words).encoded(world.terms.ring)


WRONG = {
    "garbage": lambda here: here.send(3, THIRD_PARTY, b"x" * 80),
    "nothing": lambda here: here.send(3, THIRD_PARTY, b""),
    "twice": lambda here: here.send(8, THIRD_PARTY, here.transcript[-1][2]),
    "answered already": lambda here: here.send(8, THIRD_PARTY, seal_as(here, 8, answer(here, 0, [0, 1, 2]))),
    "wrong round": lambda here: here.send(3, THIRD_PARTY, seal_as(here, 3, answer(here, 1, [0, 2]))),
    "round long ago": lambda here: here.send(3, THIRD_PARTY, seal_as(here, 3, answer(here, -1, [0, 2]))),
    "wrong items": lambda here: here.send(3, THIRD_PARTY, seal_as(here, 3, answer(here, 0, [0, 1]))),
    "no such item": lambda here: here.send(3, THIRD_PARTY, seal_as(here, 3, answer(here, 0, [0, 3]))),
    "wrong length": lambda here: here.send(3, THIRD_PARTY, seal_as(here, 3, answer(here, 0, [0, 2])[:-1])),
    "unknown sender": lambda here: here.send(77, THIRD_PARTY, seal_as(here, 3, answer(here, 0, [0, 2]))),
    "not asked": lambda here: here.send(40, THIRD_PARTY, seal_as(here, 40, answer(here, 0, [0, 2]))),
    "in another's name": lambda here: here.send(9, THIRD_PARTY, seal_as(here, 3, answer(here, 0, [1, 2]))),
}  # fmt: skip


@both_kinds
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_message_is_refused_and_the_round_survives(world: Any, dealt: bool, wrong: str) -> None:
    here = world(RATINGS, dealt=dealt, **EXACT)
    expected, before = plain_sums(here, [8, 9]), here.recommender.V.copy()
    here.play([3, 8, 9], silent=[3], meddle=WRONG[wrong])
    assert here.third_party.refusals.by_reason.total() == 1
    assert np.abs(here.sums_of_last_step(before, [8, 9]) * here.terms.steps - expected).max() < 1e-4


@both_kinds
def test_a_wrong_total_is_refused_and_the_round_discarded_whole(world: Any, dealt: bool) -> None:
    here = world(RATINGS, dealt=dealt)
    before, ring = here.recommender.V.copy(), here.terms.ring
    three = np.arange(3, dtype=np.uint32)
    words = np.zeros((3, here.terms.n_factors), np.uint32)
    wrong = [
        Total(1, np.array([3, 77], np.uint32), three, words),  # somebody who was not asked
        Total(1, np.array([3], np.uint32), three, words),  # items that nobody of them rated
        Total(2, np.array([8], np.uint32), three, words),  # a round that is not open
    ]
    here.recommender.deal([3, 8])
    for total in wrong:
        here.recommender.receive(THIRD_PARTY, here.third_party._recommender.seal(total.encoded(ring)))
    assert here.recommender.refusals.by_reason.total() == 3
    here.recommender.give_up()
    np.testing.assert_array_equal(here.recommender.V, before)
    assert here.recommender.discarded == 1


def test_too_few_answers_reveal_nothing(world: Any) -> None:
    here = world(RATINGS, dealt=False)
    here.third_party.receive(RECOMMENDER, here.recommender._third_party.seal(roster_of(here, 5)))
    here.send(3, THIRD_PARTY, seal_as(here, 3, answer(here, 5, [0, 2])))
    (total,) = here.third_party.close()
    found = Total.decoded(here.recommender._third_party.open(total.message), here.recommender._sizes, here.terms.ring)
    assert len(found.users) == len(found.items) == len(found.words) == 0
    assert here.third_party.close() == []


def test_a_set_up_without_all_of_its_users_is_discarded(world: Any) -> None:
    here = world(RATINGS, dealt=True, set_up_without=[8])
    assert here.recommender.discarded == 1
    assert not here.recommender.kept()["fixed"].any()
    with pytest.raises(InvalidArgument, match="before the fixed noise is set up"):
        here.play()


@both_kinds
def test_the_set_up_is_made_once_if_at_all(world: Any, dealt: bool) -> None:
    here = world(RATINGS, dealt=dealt)
    with pytest.raises(InvalidArgument, match="set-up is made once"):
        here.recommender.set_up([3])


def roster_of(world: Any, number: int) -> bytes:
    users = np.array([3, 8], np.uint32)
    digests = [digest_of_items(np.array(sorted(RATINGS[user]), np.uint32)) for user in (3, 8)]
    return Roster(number, users, np.array(digests, np.uint64), 2).encoded()


@both_kinds
def test_rounds_are_not_played_again(world: Any, dealt: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    here = world(RATINGS, dealt=dealt)
    here.play()
    tasks: list[bytes] = []
    seal = here.recommender._users.seal

    def note(user: int, content: bytes) -> bytes:
        if user == 3:
            tasks.append(content)
        return bytes(seal(user, content))

    monkeypatch.setattr(here.recommender._users, "seal", note)
    here.play()
    profile = here.users[3].profile.copy()
    assert here.users[3].receive(seal(3, tasks[-1])) == []  # sealed anew, so that no counter gives it away
    assert here.users[3].refusals.by_reason == {"the round is not a new one": 1}
    assert here.users[3].receive(seal(3, b"\1\7\0\0\0\0")) == []
    assert here.users[3].refusals.by_reason["the message is of another kind"] == 1
    np.testing.assert_array_equal(here.users[3].profile, profile)
    here.third_party.receive(RECOMMENDER, here.recommender._third_party.seal(roster_of(here, here.recommender.round)))
    assert here.third_party.refusals.by_reason == {"the round is not a new one": 1}


@both_kinds
def test_a_number_keeps_the_key_that_it_has_first(world: Any, dealt: bool) -> None:
    here = world(RATINGS, dealt=dealt)
    for party in (here.recommender, here.third_party):
        party.admit(3, KeyPair().public)
        assert party.refusals.by_reason == {"the user is known already": 1}


@both_kinds
def test_a_key_keeps_the_number_that_it_has_first(world: Any, dealt: bool) -> None:
    here = world(RATINGS, dealt=dealt)
    for party, other in ((here.recommender, here.third_party), (here.third_party, here.recommender)):
        for public in (here.users[3].public, party.public, other.public):
            party.admit(77, public)
        assert party.refusals.by_reason == {"the key is known already": 3}
        party.receive(77, b"x" * 99)
        assert party.refusals.by_reason["the sender is not known"] == 1


def test_what_cannot_be_is_said_in_one_line(world: Any) -> None:
    terms, key = Terms(3, (1.0, 5.0), 1.0, 4), KeyPair().public
    for items, values in (([], []), ([2, 1], [3, 3]), ([0, 3], [3, 3]), ([0], [3, 3])):
        with pytest.raises(InvalidArgument, match="ascending"):
            User(np.array(items), np.array(values), terms, key, KeyPair().public)
    with pytest.raises(InvalidArgument, match="off the scale"):
        User(np.array([0]), np.array([6.0]), terms, key, KeyPair().public)
    with pytest.raises(InvalidArgument, match="third party"):
        User(np.array([0]), np.array([3.0]), terms, key, None)
    here = world(RATINGS, dealt=False, most_users=2)
    with pytest.raises(InvalidArgument, match="more than the 2"):
        here.play()
    here.play([3, 8], silent=[3, 8])
    here.recommender.deal([3])
    with pytest.raises(InvalidArgument, match="open already"):
        here.recommender.deal([3])


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
)  # fmt: skip


@both_kinds
@given(schedule=actions)
@settings(max_examples=40, deadline=None)
def test_whatever_happens_sums_are_right_or_the_round_is_discarded(
    world: Any, dealt: bool, schedule: list[tuple[Any, ...]]
) -> None:
    here = world(RATINGS, dealt=dealt, **EXACT)
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
