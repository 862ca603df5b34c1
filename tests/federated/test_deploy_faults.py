"""What goes wrong between servers and devices: losses, kills at any moment, people who do not keep to the rules."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmf.errors import BudgetExceeded
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.simulation import noise_of
from dpmf.federated.certified.user import User
from dpmf.federated.deploy.admission import Invitation, invite
from dpmf.federated.deploy.agreement_parts import RECOMMENDER, THIRD_PARTY
from dpmf.federated.deploy.door import Limits
from dpmf.federated.deploy.frames import Close, Join, encoded
from dpmf.federated.deploy.identity import public_of
from dpmf.federated.deploy.third_party_host import MESSAGES_PER_ROUND
from dpmf.federated.wire.channels import KeyPair
from dpmf.methods import ALS
from dpmf.methods.certified.conversation import StageLost
from dpmf.methods.certified.questions import Noisy, Question
from dpmf.privacy import Budget
from dpmf.privacy.mechanism import Mechanism

from .deploy_world import KEYS, SEED, End, Participant, World, some_people

N_PEOPLE, N_ITEMS = 7, 10
METHOD = ALS(n_factors=1, n_epochs=4, budget=Budget(20.0))


class Killed(BaseException):
    """A process has ended, whatever it was doing."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return a_world(tmp_path)


def a_world(folder: Path, dropouts: int = 2, limits: Limits = Limits(), **people: int) -> World:  # noqa: B008
    ratings = some_people(N_PEOPLE, N_ITEMS)
    agreement = Agreement(
        METHOD, ratings.catalogue, ratings.scale, dropouts=dropouts, **{"n_users": N_PEOPLE, **people}
    )
    return World(agreement, ratings, folder, most=N_PEOPLE, limits=limits)


def check_sum(world: World, number: int, questions: Sequence[Question], answers: Sequence[Noisy]) -> None:
    """Check that sums are exactly those of the parts and shares of those who are said to have answered."""
    agreement, keys = world.agreement, (KeyPair().public, KeyPair().public)
    for question, noisy in zip(questions, answers, strict=True):
        assert noisy.answered is not None
        assert len(noisy.answered) >= agreement.least
        expected = np.zeros(question.shape, np.int64)
        bound = question.sensitivity(agreement.budget.neighbours)
        for handle in noisy.answered.tolist():
            user = User(*world.ratings.of_user(handle), agreement, *keys, noise=noise_of(SEED, handle))
            own = Mechanism(agreement.events, noise_of(SEED, handle), agreement.crowd.n_shares)
            for earlier in agreement.rounds[:number]:
                for what in earlier.releases:
                    own.forfeit(what)
            expected += own.noisy(question.what, user.exact_answer(question), bound)
        scale = agreement.n_users / len(noisy.answered) if question.scales_up else 1.0
        assert np.rint(noisy.values * noisy.steps / scale).astype(np.int64).tolist() == expected.tolist()


def checked(world: World) -> Callable[[Sequence[Question]], tuple[Noisy, ...]]:
    def play(questions: Sequence[Question]) -> tuple[Noisy, ...]:
        number = world.recommender.machine.round
        answers = world.play(questions)
        check_sum(world, number, questions, answers)
        return answers

    return play


def answer_of(world: World) -> Any:
    """Return what the last round came to so far."""
    return world.recommender.answer


def first_questions(world: World) -> tuple[Question, ...]:
    """Return what the first round asks, so that a test can play it alone."""
    public = METHOD.public_half(world.agreement.catalogue, world.agreement.scale, world.agreement.crowd)
    return next(public.converse(world.agreement.stages[0]))


def test_whoever_leaves_is_not_in_the_sum_and_whoever_comes_back_is(world: World) -> None:
    world.everybody_joins()
    gone, back = world.people[0], world.people[1]
    gone.silent = True
    host = world.recommender
    host.ask(questions := first_questions(world), world.now)
    while not host.is_open:
        world.queue.popleft()()
    for person in (gone, back):
        person.cut()
    world.settle()
    assert answer_of(world) is None
    back.connect()
    world.settle()
    assert back.is_in
    world.wait(6)  # more than the grace for lost connections, less than the deadline
    assert isinstance(answer_of(world), tuple)
    check_sum(world, 0, questions, answer_of(world))
    assert sorted(set(range(N_PEOPLE)) - {0}) == answer_of(world)[0].answered.tolist()


def test_whoever_is_silent_is_waited_for_until_the_deadline(world: World) -> None:
    world.everybody_joins()
    world.people[3].silent = True
    world.recommender.ask(questions := first_questions(world), world.now)
    world.wait(58)
    assert answer_of(world) is None
    world.wait(3)
    assert isinstance(answer_of(world), tuple)
    check_sum(world, 0, questions, answer_of(world))


def test_a_round_with_too_few_answers_is_discarded_and_its_sum_never_leaves(world: World) -> None:
    world.everybody_joins()
    for person in world.people[:3]:
        person.silent = True
    world.recommender.ask(first_questions(world), world.now)
    world.wait(61)
    assert isinstance(answer_of(world), StageLost)
    assert world.third_party.metrics["rounds_discarded"] == 1
    total = world.third_party._total
    assert total is not None
    assert len(total) < 50  # a header and an empty list, sealed


def test_a_round_with_too_few_answers_waits_for_those_who_lost_their_connection(world: World) -> None:
    world.everybody_joins()
    lost = world.people[:3]
    for person in lost:
        person.silent = True
    world.recommender.ask(questions := first_questions(world), world.now)
    world.settle()
    for person in lost:
        person.cut()
        person.silent = False
    world.wait(20)
    assert answer_of(world) is None
    lost[0].connect()
    world.wait(6)  # enough by now, and nobody else is there
    assert isinstance(answer_of(world), tuple)
    check_sum(world, 0, questions, answer_of(world))


def test_a_round_begins_without_those_who_stay_away_if_it_can_succeed_nonetheless(world: World) -> None:
    world.everybody_joins()
    world.people[2].cut()
    world.settle()
    world.recommender.ask(questions := first_questions(world), world.now)
    world.wait(9)
    assert not world.recommender.is_open
    world.wait(8)
    assert isinstance(answer_of(world), tuple)
    check_sum(world, 0, questions, answer_of(world))


@pytest.mark.parametrize("seed", range(4))
def test_a_run_survives_kills_at_any_moment_without_a_second_draw_or_a_wrong_sum(seed: int, tmp_path: Path) -> None:
    """Ten kills in each run: of a server, a device or a connection, after any number of messages.

    Devices that were killed are missing from an open round. With too few others it is discarded; if nothing can be
    learnt without it, the run ends.
    """
    world, rng = a_world(tmp_path, dropouts=3), random.Random(seed)
    left = [rng.randrange(5, 80) for _ in range(10)]
    opened: list[int] = []
    closed: list[int] = []

    def settle() -> None:
        while world.queue:
            world.queue.popleft()()
            opened[len(opened) :] = [world.third_party._rounds.last_opened]
            closed[len(closed) :] = [world.third_party._rounds.last_closed]
            if left:
                left[0] -= 1
                if not left[0]:
                    del left[0]
                    kill(rng.choice(["recommender", "third party", "device", "link"]))

    def kill(what: str) -> None:
        if what == "link":
            cut_link(world)
            world.link()
        elif what == "device":
            handle = rng.randrange(N_PEOPLE)
            world.people[handle].cut()
            world.people[handle] = Participant(world, world.device(handle))
            world.people[handle].connect()
        else:
            cut_link(world)
            for person in world.people:
                person.cut()
            if what == "third party":
                world.start_third_party()
                world.link()
            else:
                world.start_recommender()
                raise Killed

    def reconnect() -> None:
        for person in world.people:
            if not person.is_in:
                person.cut()
                person.connect()

    world.settle = settle  # type: ignore[method-assign]
    world.each_second = reconnect
    world.link()
    for _ in range(20):
        try:
            release = world.carry_out(checked(world))
        except Killed:
            world.link()
        except BudgetExceeded:
            return  # a stage was lost that nothing can be learnt without: the run ends, and says so
        else:
            break
    assert release.guarantee.certified
    assert opened == sorted(opened)
    assert closed == sorted(closed)


def cut_link(world: World) -> None:
    if world.recommender._link is not None:
        assert isinstance(world.recommender._link, End)
        world.recommender._link.cut()


def test_a_device_that_crashed_answers_nothing_again(world: World) -> None:
    world.everybody_joins()
    person = world.people[0]
    world.recommender.ask(first_questions(world), world.now)
    while not person.device.answered:
        world.queue.popleft()()
    again = Participant(world, world.device(0))
    person.cut()
    again.connect()
    world.settle()
    assert again.is_in
    assert again.device.answered == 0
    assert again.device.last_round == 0
    assert again.device.refused == 1  # the question came again, since the round is open


def test_whoever_answers_again_under_another_key_counts_once(world: World, tmp_path: Path) -> None:
    world.everybody_joins()
    first = world.people[0]
    world.people[1].silent = True  # so that the round stays open
    world.recommender.ask(questions := first_questions(world), world.now)
    world.settle()
    assert first.device.answered == 1
    (tmp_path / "forgetful" / "ledgers").mkdir(parents=True)
    world.folder = tmp_path / "forgetful"  # a device without its ledger, which no honest one is
    second = Participant(world, world.device(0))
    second.connect()
    world.settle()
    assert second.is_in
    assert second.device.answered == 1
    assert world.third_party.metrics["answers_refused"] == 1
    world.wait(61)
    assert isinstance(answer_of(world), tuple)
    check_sum(world, 0, questions, answer_of(world))


def test_a_third_party_that_starts_again_opens_no_round_twice(world: World) -> None:
    world.everybody_joins()
    world.play(first_questions(world))
    assert world.third_party._rounds.last_closed == 0
    cut_link(world)
    for person in world.people:
        person.cut()
    world.start_third_party()
    world.start_recommender()  # forgets the round, as one would that wants a second sum of it
    world.everybody_joins()
    with pytest.raises(StageLost):
        world.play(first_questions(world))
    assert world.third_party.metrics["rounds_opened"] == 0


class Stranger:
    """Somebody who connects and says whatever they like."""

    def __init__(self, world: World, role: str = THIRD_PARTY) -> None:
        self.texts: list[str] = []
        self.code = 0
        self.end = world.connected(world.third_party if role == THIRD_PARTY else world.recommender)
        self.end.on_text = self.texts.append
        self.end.on_closed = self.closed
        world.settle()

    def closed(self, code: int) -> None:
        self.code = code


def join_of(
    world: World, invitation: Invitation, public: bytes | None = None, key: Ed25519PrivateKey | None = None
) -> str:
    machine = world.third_party._machine
    assert machine is not None
    sessions = (world.recommender.machine.public, machine.public)
    key = invitation.key if key is None else key
    public = KeyPair().public if public is None else public
    message = Join(invitation.handle, public, sessions, public_of(key), invitation.certificate)
    return message.signed_with(key, world.file.id)


@pytest.mark.parametrize("role", [RECOMMENDER, THIRD_PARTY])
def test_strangers_are_turned_away(world: World, role: str) -> None:
    world.everybody_joins()
    mine = world.invitations[0]
    other_key = Ed25519PrivateKey.generate()
    uninvited = invite(other_key, world.file.id, 1)
    elsewhere = invite(KEYS["inviter"], bytes(32), 1)
    beyond = invite(KEYS["inviter"], world.file.id, 1 << 19)
    taken = world.people[1].device._user
    assert taken is not None
    said = {
        "nonsense": ("no JSON", Close.MALFORMED),
        "no join": (encoded("welcome"), Close.MALFORMED),
        "half a join": (encoded("join", handle=3), Close.MALFORMED),
        "a handle that is none": (encoded("join", handle=-1), Close.MALFORMED),
        "another's name": (join_of(world, mine, key=other_key), Close.REFUSED),
        "uninvited": (join_of(world, uninvited), Close.REFUSED),
        "invited elsewhere": (join_of(world, elsewhere), Close.REFUSED),
        "too many": (join_of(world, beyond), Close.REFUSED),
        "another's session": (join_of(world, mine, public=taken.public), Close.REFUSED),
        "a server's session": (join_of(world, mine, public=world.recommender.machine.public), Close.REFUSED),
        "a key of small order": (join_of(world, mine, public=bytes(32)), Close.REFUSED),
    }
    for what, (text, code) in said.items():
        stranger = Stranger(world, role)
        stranger.end.send(text)
        world.settle()
        assert stranger.code == code, what
    stranger = Stranger(world, role)
    stranger.end.send(b"an answer")
    world.settle()
    assert stranger.code == Close.MALFORMED
    assert all(person.is_in for person in world.people)
    world.carry_out(checked(world))


def test_who_does_not_join_makes_room_and_is_disconnected(tmp_path: Path) -> None:
    world = a_world(tmp_path, limits=Limits(most_waiting=3))
    world.link()
    world.settle()
    for person in world.people:
        person.connect()
        world.settle()
    strangers = [Stranger(world) for _ in range(5)]
    assert [one.code for one in strangers] == [Close.TOO_SLOW] * 2 + [0] * 3
    world.wait(11)
    assert {one.code for one in strangers} == {Close.TOO_SLOW}
    assert all(person.is_in for person in world.people)


def test_who_joins_too_often_is_put_off_and_an_invitation_is_for_one_device(world: World) -> None:
    world.everybody_joins()
    first = world.people[0]
    second = Participant(world, world.device(0))
    second.connect()
    world.settle()
    assert second.is_in
    assert first.closes == [Close.REPLACED] * 2
    codes = set()
    for _ in range(12):
        stranger = Stranger(world)
        stranger.end.send(join_of(world, world.invitations[5]))
        world.settle()
        codes.add(stranger.code)
    assert Close.TOO_OFTEN in codes
    world.wait(60)
    again = Participant(world, world.device(5))
    again.connect()
    world.settle()
    assert again.is_in


def test_who_sends_too_much_is_disconnected_and_the_sum_is_right(world: World) -> None:
    world.everybody_joins()
    noisy = world.people[4]
    for _ in range(MESSAGES_PER_ROUND + 1):
        noisy.ends[THIRD_PARTY].send(b"x" * 100)
    world.settle()
    assert Close.TOO_OFTEN in noisy.closes
    questions = first_questions(world)
    noisy.connect()
    world.settle()
    world.recommender.ask(questions, world.now)
    world.wait(61)
    assert isinstance(answer_of(world), tuple)
    check_sum(world, 0, questions, answer_of(world))


def test_an_answer_counts_once_however_often_it_is_sent(world: World) -> None:
    world.everybody_joins()
    person = world.people[2]
    world.recommender.ask(questions := first_questions(world), world.now)
    while not person.device.unconfirmed():
        world.queue.popleft()()
    (answer,) = person.device.unconfirmed()
    person.ends[THIRD_PARTY].send(answer)
    person.ends[THIRD_PARTY].send(answer)
    world.people[3].ends[THIRD_PARTY].send(answer)
    world.settle()
    assert isinstance(answer_of(world), tuple)
    check_sum(world, 0, questions, answer_of(world))


def test_nobody_poses_as_a_server(world: World) -> None:
    world.everybody_joins()
    end = world.link()  # the recommender itself
    world.settle()
    assert end.is_open
    stranger = World.link(world)
    stranger.on_text = lambda text: stranger.send(encoded("recommender", public=bytes(32), signature=bytes(64)))
    codes: list[int] = []
    stranger.on_closed = codes.append
    world.settle()
    assert codes == [Close.MALFORMED]
    assert end.is_open


def test_with_everything_over_everybody_hears_of_it(world: World) -> None:
    world.everybody_joins()
    world.carry_out()
    world.recommender.finish("finished")
    world.settle()
    assert all("over" in person.said for person in world.people)
    assert world.overs == ["finished"]
    late = Stranger(world)
    assert "over" in late.texts[0]


def test_a_round_that_ends_while_the_recommender_is_away_makes_room_for_the_next(world: World) -> None:
    world.everybody_joins()
    world.people[0].silent = True
    world.recommender.ask(first_questions(world), world.now)
    world.settle()
    cut_link(world)
    world.wait(100)
    assert isinstance(answer_of(world), StageLost)
    assert world.third_party.is_open  # until there is somebody to take its sum
    world.link()
    world.settle()
    machine = world.third_party._machine
    assert machine is not None
    end = world.recommender._link
    assert isinstance(end, End)
    end.send(b"the next round, before any time has passed")
    world.settle()
    assert not machine.is_open
    assert world.third_party.metrics["rounds_closed"] == 1
