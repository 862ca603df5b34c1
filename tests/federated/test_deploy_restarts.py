"""Servers that are killed in a round: it is asked for again, nobody draws noise again, and one sum of it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from dpmf.errors import BudgetExceeded
from dpmf.federated.certified.agreement import Agreement
from dpmf.federated.certified.messages import Answer, Inquiry
from dpmf.federated.certified.user import User
from dpmf.federated.deploy.round_log import opened_log
from dpmf.federated.wire.channels import Channel, KeyPair
from dpmf.federated.wire.masks import mask_elements
from dpmf.methods import ALS
from dpmf.privacy import Budget

from .deploy_world import End, World, factors, some_people

METHOD = ALS(n_factors=1, n_epochs=2, budget=Budget(20.0))
PEOPLE, ITEMS = 5, 10


class Killed(BaseException):
    """The recommender's process has ended, whatever it was doing."""


def a_world(folder: Path) -> World:
    ratings = some_people(PEOPLE, ITEMS)
    return World(Agreement(METHOD, ratings.catalogue, ratings.scale, n_users=PEOPLE), ratings, folder)


Moment = Callable[[World], bool]


def answered(number: int, people: int) -> Moment:
    """Return the moment when so many people have answered a round."""

    def is_now(world: World) -> bool:
        machine = world.third_party._machine
        if machine is None or not machine.is_open or world.recommender.machine.round != number:
            return False
        return PEOPLE - len(machine.missing) >= people

    return is_now


def closed(number: int) -> Moment:
    """Return the moment when the sum of a round has left the third party, and has not arrived."""

    def is_now(world: World) -> bool:
        return world.third_party._rounds.last_closed == number and not world.recommender.machine.has_total

    return is_now


def carried_out(world: World, kill: str, moments: Sequence[Moment]) -> bytes:
    """Carry out a run in which a server is killed at some moments, in this order; return what was learnt."""
    settle, left = world.settle, list(moments)

    def settled() -> None:
        while world.queue:
            world.queue.popleft()()
            if left and left[0](world):
                del left[0]
                killed()

    def killed() -> None:
        assert isinstance(world.recommender._link, End)
        world.recommender._link.cut()
        for person in world.people:
            person.cut()
        if kill == "recommender":
            world.start_recommender()
            raise Killed
        world.start_third_party()
        world.link()

    def come_back() -> None:
        for person in world.people:
            if not person.is_in:
                person.cut()
                person.connect()

    world.settle, world.each_second = settled, come_back  # type: ignore[method-assign]
    world.everybody_joins()
    while True:
        try:
            release = world.carry_out()
        except Killed:
            world.link()
        else:
            break
    world.settle = settle  # type: ignore[method-assign]
    assert not left
    assert release.guarantee.certified
    return factors(release)


@pytest.mark.parametrize("kill", ["recommender", "third party"])
def test_a_server_killed_in_every_round_costs_nothing_although_nobody_may_be_missing(kill: str, tmp_path: Path) -> None:
    expected = carried_out(a_world(tmp_path / "undisturbed"), kill, [])
    world = a_world(tmp_path / "disturbed")
    rounds = len(world.agreement.rounds)
    moments = [answered(number, number % PEOPLE) for number in range(rounds)]
    assert carried_out(world, kill, moments) == expected
    assert not list(tmp_path.rglob("round-*"))  # the sums of stages that are over
    for person in world.people:
        assert person.device.answered == rounds
        assert person.device.said_again <= rounds
        assert person.device.refused == 0
    assert sum(person.device.said_again for person in world.people) > 0
    assert world.third_party._rounds.last_closed == rounds - 1


@pytest.mark.parametrize("kill", ["recommender", "third party"])
def test_a_sum_that_has_left_does_not_leave_again_and_its_stage_is_left_out(kill: str, tmp_path: Path) -> None:
    world = a_world(tmp_path)
    carried_out(world, kill, [closed(3)])
    assert world.third_party._rounds.last_closed == len(world.agreement.rounds) - 1
    assert world.third_party.metrics["rounds_closed"] == len(world.agreement.rounds) - 4 * (kill == "third party")
    first = a_world(tmp_path / "first")
    with pytest.raises(BudgetExceeded, match=r"the count of ratings was lost because .* does not leave again"):
        carried_out(first, kill, [closed(0)])


def test_only_a_round_that_is_not_closed_is_opened_again(tmp_path: Path) -> None:
    with opened_log(tmp_path, bytes(32)) as rounds:
        rounds.opened(0)
        rounds.opened(0)
        rounds.closed(0)
        assert rounds.next == 1
        rounds.opened(2)
    with opened_log(tmp_path, bytes(32)) as rounds:
        assert rounds.next == 2
        for number in (0, 1):
            with pytest.raises(BudgetExceeded):
                rounds.opened(number)
        rounds.opened(2)
        rounds.closed(2)
        for again in (rounds.opened, rounds.closed):
            with pytest.raises(BudgetExceeded):
                again(2)


Servers = tuple[KeyPair, KeyPair]


def test_an_answer_is_made_once_and_given_to_whoever_asks_the_same_again(tmp_path: Path) -> None:
    agreement = a_world(tmp_path).agreement
    before, after = (KeyPair(), KeyPair()), (KeyPair(), KeyPair())
    told = {one.name: np.zeros(one.shape, one.dtype) for one in agreement.told(1)}

    def session(servers: Servers, earlier: User | None = None) -> User:
        """Return somebody's side of a session; that of a new device has forgotten what was answered."""
        publics = [one.public for one in servers]
        return User(np.arange(3), np.full(3, 4.0), agreement, publics[0], publics[1], earlier=earlier)

    def answer(user: User, servers: Servers, seed: int, nth: int = 1) -> list[int]:
        """Return the answer to the nth question of a session, without its mask; an empty list if there is none."""
        question = Inquiry(1, agreement.digest, bytes([seed]) * 32, told).encoded(agreement)
        channel = Channel(servers[0], user.public)
        sent = user.receive([channel.seal(question) for _ in range(nth)][-1])
        if not sent:
            return []
        content = Answer.decoded(Channel(servers[1], user.public).open(sent[0].message), agreement)
        ring = agreement.ring(1)
        mask = mask_elements(bytes([seed]) * 32, ring, len(content.elements), version=agreement.wire)
        found: list[int] = ring.signed(content.elements - mask).tolist()
        return found

    first = session(before)
    made = answer(first, before, seed=1)
    assert made
    assert answer(session(after, first), after, seed=2) == made
    assert answer(session(after), after, seed=2) != made  # noise is drawn for every answer that is made
    told = {name: numbers + 1 for name, numbers in told.items()}
    assert not answer(session(after, first), after, seed=2)
    told = {name: numbers - 1 for name, numbers in told.items()}
    second = session(after, first)
    assert answer(second, after, seed=2) == made
    assert not answer(second, after, seed=3, nth=2)  # once in a session
    second.forget(1)
    assert not answer(session(before, second), before, seed=3)
