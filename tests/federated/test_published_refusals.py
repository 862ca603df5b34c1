"""What the parties of the published protocol refuse, and that rounds survive it."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.federated.published.messages import Roster, Total, digest_of_items
from dpmf.federated.wire.channels import KeyPair
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY

from .published_world import EXACT, RATINGS, WRONG, World, answer, both_kinds, plain_sums, recommender_channel, seal_as


@both_kinds
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_message_is_refused_and_the_round_survives(shared_noise: bool, wrong: str) -> None:
    here = World(RATINGS, shared_noise=shared_noise, **EXACT)
    expected, before = plain_sums(here, [8, 9]), here.recommender.V.copy()
    here.play([3, 8, 9], silent=[3], meddle=WRONG[wrong])
    assert here.third_party.refusals.by_reason.total() == 1
    assert np.abs(here.sums_of_last_step(before, [8, 9]) * here.terms.steps - expected).max() < 1e-4


@both_kinds
def test_a_wrong_total_is_refused_and_the_round_discarded_whole(shared_noise: bool) -> None:
    here = World(RATINGS, shared_noise=shared_noise)
    before, ring = here.recommender.V.copy(), here.terms.ring
    three = np.arange(3, dtype=np.uint32)
    elements = np.zeros((3, here.terms.n_factors), np.uint32)
    wrong = [
        Total(1, np.array([3, 77], np.uint32), three, elements),  # somebody who was not asked
        Total(1, np.array([3], np.uint32), three, elements),  # items that nobody of them rated
        Total(2, np.array([8], np.uint32), three, elements),  # a round that is not open
    ]
    here.recommender.open_round([3, 8])
    for total in wrong:
        here.recommender.receive(THIRD_PARTY, here.third_party._recommender.seal(total.encoded(ring)))
    assert here.recommender.refusals.by_reason.total() == 3
    here.recommender.give_up()
    np.testing.assert_array_equal(here.recommender.V, before)
    assert here.recommender.discarded == 1


def test_too_few_answers_reveal_nothing() -> None:
    here = World(RATINGS, shared_noise=False)
    here.third_party.receive(RECOMMENDER, recommender_channel(here).seal(roster_of(here, 5)))
    here.send(3, THIRD_PARTY, seal_as(here, 3, answer(here, 5, [0, 2])))
    (total,) = here.third_party.close()
    found = Total.decoded(recommender_channel(here).open(total.message), here.recommender._sizes, here.terms.ring)
    assert len(found.users) == len(found.items) == len(found.elements) == 0
    assert here.third_party.close() == []


def roster_of(world: World, number: int) -> bytes:
    users = np.array([3, 8], np.uint32)
    digests = [digest_of_items(np.array(sorted(RATINGS[user]), np.uint32)) for user in (3, 8)]
    return Roster(number, users, np.array(digests, np.uint64), 2).encoded()


@both_kinds
def test_rounds_are_not_played_again(shared_noise: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    here = World(RATINGS, shared_noise=shared_noise)
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
    here.third_party.receive(RECOMMENDER, recommender_channel(here).seal(roster_of(here, here.recommender.round)))
    assert here.third_party.refusals.by_reason == {"the round is not a new one": 1}


@both_kinds
def test_a_number_keeps_the_key_that_it_has_first(shared_noise: bool) -> None:
    here = World(RATINGS, shared_noise=shared_noise)
    for party in (here.recommender, here.third_party):
        party.admit(3, KeyPair().public)
        assert party.refusals.by_reason == {"the user is known already": 1}


@both_kinds
def test_a_key_keeps_the_number_that_it_has_first(shared_noise: bool) -> None:
    here = World(RATINGS, shared_noise=shared_noise)
    for party, other in ((here.recommender, here.third_party), (here.third_party, here.recommender)):
        for public in (here.users[3].public, party.public, other.public):
            party.admit(77, public)
        assert party.refusals.by_reason == {"the key is known already": 3}
        party.receive(77, b"x" * 99)
        assert party.refusals.by_reason["the sender is not known"] == 1
