"""The certified protocol: what each party answers, sees and refuses, and what is agreed."""

from __future__ import annotations

import logging
import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dpmf.errors import BudgetExceeded, InvalidArgument
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.messages import Answer, Expected, Inquiry, Total
from dpmf.federated.certified.simulation import noise_of
from dpmf.federated.certified.user import User
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.codec import encode_header
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY, Outgoing
from dpmf.federated.wire.refusals import Refused
from dpmf.methods import ALS
from dpmf.methods.als.plan import USERS
from dpmf.methods.als.traits import N_LEANINGS
from dpmf.methods.certified.conversation import StageLost
from dpmf.privacy import Budget
from dpmf.privacy.verify import verify
from dpmf.ratings import Items, Scale

from .certified_world import (
    LEARNERS,
    LEAST_P,
    METHODS,
    N_ITEMS,
    SEED,
    World,
    agreement_of,
    inquiry_of,
    questions_of,
    some_ratings,
)

WIDTH = 2 + N_LEANINGS  # of what people are told about an item


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"c": np.full(N_ITEMS, np.nan, np.float32)}, "c is out of range"),
        ({"V": np.full((N_ITEMS, WIDTH), np.inf, np.float32)}, "V is out of range"),
        ({"V": np.full((N_ITEMS, WIDTH), 1e7, np.float32)}, "V is out of range"),
        ({"ridges": np.array([3.0, 0.0])}, "ridges is out of range"),
        ({"ridges": np.array([np.nan, 1.0])}, "ridges is out of range"),
        ({"length": np.array([-1.0])}, "length is out of range"),
        ({"weights": np.full(N_ITEMS, -1.0)}, "weights is out of range"),
        ({"weights": np.full(N_ITEMS, np.nan)}, "weights is out of range"),
        ({"V": np.ones((N_ITEMS - 1, WIDTH), np.float32)}, "the message has the wrong length"),
        ({"V": np.ones((N_ITEMS + 1, WIDTH), np.float32)}, "the message has the wrong length"),
    ],
)
def test_a_user_refuses_numbers_that_were_not_agreed_to(changed: dict[str, Any], reason: str) -> None:
    agreement = agreement_of()
    assert refusals_of(agreement, inquiry_of(agreement, 3, **changed).encoded(agreement)) == {reason: 1}


@pytest.mark.parametrize("method", LEARNERS)
def test_a_user_refuses_questions_of_another_agreement_or_round(method: str) -> None:
    agreement, last = agreement_of(method), len(agreement_of(method).rounds) - 1
    inquiry = inquiry_of(agreement, last)
    other = replace(inquiry, digest=bytes(16)).encoded(agreement)
    assert refusals_of(agreement, other) == {"the question is of another agreement": 1}
    beyond = encode_header(Inquiry.kind, 99) + inquiry.encoded(agreement)[6:]
    assert refusals_of(agreement, beyond) == {"the round is not in the agreement": 1}
    for one in (one for one in agreement.told(last) if math.prod(one.shape)):
        nothing = {one.name: np.full(one.shape, np.nan if "f" in one.dtype else -1)}
        found = refusals_of(agreement, inquiry_of(agreement, last, **nothing).encoded(agreement))
        assert found == {f"{one.name} is out of range": 1}


def refusals_of(agreement: Agreement, content: bytes) -> dict[str, int]:
    """Return why a user refused a message, who then answers one as agreed: nothing was spent on it."""
    asking = KeyPair()
    user = User(*some_ratings(1), agreement, asking.public, KeyPair().public, place=1)
    channel = Channel(asking, user.public)
    assert user.receive(channel.seal(content)) == []
    last = inquiry_of(agreement, len(agreement.rounds) - 1).encoded(agreement)
    assert len(user.receive(channel.seal(last))) == 1
    return dict(user.refusals.by_reason)


def test_another_agreement_is_told_by_its_digest() -> None:
    agreement, method = agreement_of(), METHODS["als"]
    other: dict[str, Any] = {"budget": Budget(5.0, delta=1e-7), "n_epochs": 3, "regularization": 0.4, "seed": 9}
    changes: list[dict[str, Any]] = [
        *({name: getattr(agreement, name) + 1} for name in ("n_users", "dropouts", "colluders")),
        {"scale": Scale(1, 4)},
        {"catalogue": Items.of(list(range(1, N_ITEMS + 1)))},
        *({"method": one} for name, one in LEARNERS.items() if name != "als"),
        *({"method": replace(method, **{name: value})} for name, value in other.items()),
    ]
    digests = {replace(agreement, **one).digest for one in changes}
    assert len(digests | {agreement.digest}) == len(changes) + 1


def test_a_user_answers_every_round_once_and_in_order() -> None:
    agreement, asking, adding = agreement_of(), KeyPair(), KeyPair()
    user = User(*some_ratings(1), agreement, asking.public, adding.public, noise=noise_of(SEED, 1))
    channel = Channel(asking, user.public)
    answered = []
    for number in (0, 0, 2, 1, 2, 4, 3, 4):
        answered += [number] * len(user.receive(channel.seal(inquiry_of(agreement, number).encoded(agreement))))
    assert answered == [0, 2, 4]
    assert user.refusals.by_reason == {"the round is not a new one": 5}
    with pytest.raises(BudgetExceeded):  # nothing of it is left over, for rounds that were passed over are given up
        user._mechanism.forfeit("item factors")


def test_a_user_that_is_made_again_does_not_answer_again() -> None:
    agreement, asking = agreement_of(), KeyPair()
    user = User(*some_ratings(1), agreement, asking.public, KeyPair().public, after=3)
    channel = Channel(asking, user.public)
    answers = [user.receive(channel.seal(inquiry_of(agreement, number).encoded(agreement))) for number in (2, 3, 4)]
    assert [len(one) for one in answers] == [0, 0, 1]
    assert user.round == 4


# What parties see


def test_what_the_third_party_sees_of_different_ratings_cannot_be_told_apart() -> None:
    def opened(ratings: Callable[[int], tuple[Any, Any]]) -> NDArray[np.int64]:
        """Return how often each byte occurs in what the third party can read."""
        world = World(agreement_of(n_items=400, n_users=30), ratings)
        counts = np.zeros(256, np.int64)
        for number in range(5):
            world.play()
            ring = world.agreement.ring(number)
            for user, message in world.seen.items():
                channel = world.third_party._users._channels[user]
                channel._opened -= 1  # let it be read once more
                words = Answer.decoded(channel.open(message), world.agreement).elements
                counts += np.bincount(np.frombuffer(ring.packed(words), np.uint8), minlength=256)
        return counts

    everything = np.arange(400)
    fans = opened(lambda _: (everything, np.full(400, 5.0)))
    nobody = opened(lambda _: (everything[:0], np.zeros(0)))
    assert min(fans.sum(), nobody.sum()) > 400_000
    for counts in (fans, nobody):
        assert stats.chisquare(counts).pvalue > LEAST_P
    assert stats.chi2_contingency(np.stack([fans, nobody])).pvalue > LEAST_P


def test_one_persons_answer_counts_once_whatever_others_say_of_their_keys() -> None:
    """Somebody claims another's key, so that the other's answer would open under both numbers and count twice."""
    world = World(agreement_of(), strangers=1)
    world.third_party.admit(20, world.users[0].public)
    world.recommender.admit(20, world.users[0].public)
    for party in (world.third_party, world.recommender):
        assert party.refusals.by_reason == {"the key is known already": 1}

    def pass_on_again(here: World) -> None:
        here.third_party.receive(20, here.seen[0])

    honest = world.play(meddle=pass_on_again)
    assert world.third_party.refusals.by_reason["the sender is not known"] == 1
    np.testing.assert_array_equal(honest[0].values, World(agreement_of(), strangers=1).play()[0].values)


def test_nobody_may_have_the_key_of_another_party() -> None:
    world = World(agreement_of())
    world.third_party.admit(20, world.recommender.public)
    world.recommender.admit(20, world.third_party.public)
    assert 20 not in world.third_party._users
    assert 20 not in world.recommender._users


def test_a_discarded_sum_is_nowhere_any_more() -> None:
    world = World(agreement_of())
    with pytest.raises(StageLost):
        world.play(silent=range(5))
    assert world.third_party._sum.size == 0
    assert world.third_party._sum.base is None


def test_ratings_are_not_a_unit_of_this_protocol() -> None:
    with pytest.raises(InvalidArgument, match="protects users"):
        agreement_of(ALS(budget=Budget(5.0, 1e-6, "rating", "replace")))


@pytest.mark.parametrize(("neighbours", "what"), [("add-remove", "replaced by zero"), ("replace", "by another one")])
def test_what_neighbours_are_is_recorded(neighbours: str, what: str) -> None:
    promise = agreement_of(ALS(n_factors=2, budget=Budget(5.0, neighbours=neighbours))).guarantee([], seeded=False)
    assert what in promise.assumptions[0]


def test_without_colluders_other_participants_are_left_out_of_the_promise() -> None:
    def says(colluders: int) -> bool:
        promise = agreement_of(colluders=colluders).guarantee([], seeded=False)
        return any("another participant" in one for one in promise.assumptions)

    assert says(0)
    assert not says(1)


def test_messages_are_as_long_whatever_was_rated() -> None:
    sizes = []
    for ratings in (lambda _: (np.arange(N_ITEMS), np.full(N_ITEMS, 5.0)), lambda _: (np.zeros(0, int), np.zeros(0))):
        world = World(agreement_of(), ratings)
        world.play()
        sizes.append({len(message) for message in world.seen.values()})
    assert sizes[0] == sizes[1]
    assert len(sizes[0]) == 1


# What goes wrong


def test_what_is_not_an_answer_is_refused_and_the_round_survives() -> None:
    clean, troubled = World(agreement_of(), strangers=1), World(agreement_of(), strangers=1)

    def meddle(world: World) -> None:
        third_party, agreement = world.third_party, world.agreement
        third_party.receive(0, world.seen[0])  # once more
        third_party.receive(77, world.seen[0])  # from nobody
        third_party.receive(1, world.seen[2])  # in somebody else's name
        third_party.receive(2, b"")
        third_party.receive(3, world.seen[3][:-1] + bytes([world.seen[3][-1] ^ 1]))
        third_party.receive(RECOMMENDER, world.seen[4])

        def say(user: int, content: bytes) -> None:
            third_party.receive(user, world.users[user]._third_party.seal(content))

        words = np.ones(N_ITEMS, np.uint64)
        sealed = world.users[5]._third_party.seal(Answer(0, words).encoded(agreement))
        third_party.receive(5, sealed[:-1] + bytes([sealed[-1] ^ 1]))
        say(0, Answer(0, words).encoded(agreement))  # a second answer
        say(1, Answer(1, words).encoded(agreement))  # of another round
        say(2, Answer(0, words).encoded(agreement) + b"\0")
        say(3, Answer(0, words[:-1]).encoded(agreement))
        say(4, Total(0, np.array([4], np.uint32), words).encoded(agreement))
        say(agreement.n_users, Answer(0, words).encoded(agreement))  # was not asked
        world.recommender.receive(0, world.seen[0])

    expected = clean.play()
    np.testing.assert_array_equal(troubled.play(meddle=meddle)[0].values, expected[0].values)
    assert troubled.third_party.refusals.by_reason == {
        "the message was received before, or is older than one that was": 4,  # in another name, numbers coincide
        "the sender is not known": 1,
        "the message is too short to be sealed": 1,
        "the sender has answered already": 1,
        "the answer is of another round": 1,
        "the message has the wrong length": 2,
        "the message is of another kind": 1,
        "the sender is not expected in this round": 1,
        "the seal is broken": 1,
    }
    assert troubled.recommender.refusals.by_reason == {"the sender is not the third party": 1}
    np.testing.assert_array_equal(troubled.play()[0].values, clean.play()[0].values)


@pytest.mark.parametrize(
    ("users", "number", "reason"),
    [
        (range(7), 1, "the round does not have as many people as the agreement says"),
        (range(9), 1, "the round does not have as many people as the agreement says"),
        (range(1, 9), 1, "the round has people who are not known"),
        (range(8), 0, "the round is not a new one"),
        (range(8), 99, "the round is not in the agreement"),
    ],
)
def test_the_third_party_opens_no_round_but_those_agreed_upon(users: range, number: int, reason: str) -> None:
    world = World(agreement_of())
    world.play()
    third_party = world.recommender._third_party
    assert third_party is not None
    message = Expected(number, world.agreement.digest, np.array(users, np.uint32)).encoded(world.agreement)
    world.third_party.receive(RECOMMENDER, third_party.seal(message))
    assert world.third_party.refusals.by_reason == {reason: 1}
    assert world.third_party.close() == []


def test_the_recommender_takes_no_total_but_that_of_its_round() -> None:
    world = World(agreement_of())
    agreement, sums = world.agreement, np.zeros(N_ITEMS, np.uint64)

    def lie(world: World) -> None:
        for number, users in ((1, range(8)), (0, range(1, 9)), (0, range(5))):
            total = Total(number, np.array(users, np.uint32), sums).encoded(agreement)
            world.recommender.receive(THIRD_PARTY, world.third_party._recommender.seal(total))

    world.play(meddle=lie)
    assert world.recommender.refusals.by_reason == {
        "the total is of another round": 1,
        "the total has users who were not asked": 1,
        "the total is of fewer people than was agreed": 1,
    }


def test_rounds_are_asked_for_in_order_by_enough_people_and_as_agreed() -> None:
    world = World(agreement_of())
    questions = world.questions()
    with pytest.raises(InvalidArgument, match="7 people instead of 8"):
        world.recommender.ask(range(7), questions)
    with pytest.raises(InvalidArgument, match="something else"):
        world.recommender.ask(range(8), questions_of(world.agreement, 1))
    world.recommender.ask(range(8), questions)
    with pytest.raises(InvalidArgument, match="open already"):
        world.recommender.ask(range(8), questions)
    with pytest.raises(StageLost):
        world.recommender.take()
    with pytest.raises(InvalidArgument, match="cannot be next"):
        world.recommender.skip_to(0)


def test_nothing_secret_is_shown_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world = World(agreement_of())
    questions = world.questions()
    out: list[Outgoing] = world.recommender.ask(range(8), questions)
    seeds = [seed.hex() for seed in world.recommender._seeds.values()] + [
        repr(seed) for seed in world.recommender._seeds.values()
    ]
    for outgoing in out[1:]:
        (answer,) = world.users[outgoing.to].receive(outgoing.message)
        world.users[outgoing.to].receive(outgoing.message)
        world.third_party.receive(outgoing.to, answer.message[:-1])
    parties = [world.recommender, world.third_party, world.users[0]]
    inquiry = inquiry_of(world.agreement, 0)
    shown = " ".join([caplog.text, *(repr(one) for one in (*parties, inquiry, *out))])
    assert not any(seed in shown for seed in [*seeds, inquiry.mask_seed.hex(), repr(inquiry.mask_seed)])
    assert repr(world.users[0]) == "User(…)"
    for party in parties:
        with pytest.raises(InvalidArgument, match="cannot be copied or pickled"):
            pickle.dumps(party)


@given(content=st.binary(max_size=200), kind=st.sampled_from([Inquiry, Answer, Expected, Total]))
def test_bytes_that_are_no_message_are_refused(content: bytes, kind: Any) -> None:
    agreement = agreement_of()
    for start in (b"", bytes([1, kind.kind, 0, 0, 0, 0])):
        try:
            kind.decoded(start + content, agreement)
        except Refused:
            continue
        assert kind is Answer
        assert len(start + content) == 6 + N_ITEMS * agreement.ring(0).n_bytes


# What is agreed


def test_the_guarantee_is_that_of_the_central_plan_without_the_count_of_people() -> None:
    agreement = agreement_of(n_users=900, dropouts=30, colluders=20)
    guarantee = agreement.guarantee(["The catalogue is public."], seeded=False)
    assert guarantee.certified
    assert (guarantee.unit, guarantee.neighbours) == ("user", "add-remove")
    assert USERS not in {event.what for event in guarantee.events}
    recomputed = guarantee.recomputed_epsilon()
    assert recomputed is not None
    assert recomputed <= agreement.budget.epsilon
    assert recomputed > 0.999 * agreement.budget.epsilon
    said = " ".join(guarantee.assumptions)
    for words in ("replaced by zero", "do not collude", "at most 20 collude", "30 may drop out", "X25519"):
        assert words in said
    assert not agreement.guarantee([], seeded=True).certified
    for event in guarantee.events:  # every share of noise is charged for
        assert event.coordinates % 850 == 0  # type: ignore[union-attr]
    assert verify(guarantee).ok


def test_an_agreement_lists_every_number() -> None:
    for method in LEARNERS:
        agreement = agreement_of(method)
        sizes: dict[str, int] = {}
        for number, one in enumerate(agreement.rounds):
            questions = questions_of(agreement, number)
            assert tuple(question.what for question in questions) == one.releases
            assert tuple(question.shape for question in questions) == agreement.shapes(number)
            for question in questions:
                sizes[question.what] = sizes.get(question.what, 0) + math.prod(question.shape)
        assert sizes == {event.what: event.coordinates // agreement.crowd.n_shares for event in agreement.events}
        releases = [what for stage in agreement.stages for what in stage.releases]
        assert releases == [what for one in agreement.rounds for what in one.releases]


@pytest.mark.parametrize(
    "settings", [{"dropouts": -1}, {"colluders": -1}, {"dropouts": 5, "colluders": 3}, {"n_users": 0}, {"n_items": 0}]
)
def test_agreements_that_cannot_be_kept_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        agreement_of(**settings)


def test_a_user_needs_as_many_ratings_as_items() -> None:
    with pytest.raises(InvalidArgument, match="as many items as ratings"):
        User(np.arange(3), np.ones(2), agreement_of(), KeyPair().public, KeyPair().public)
