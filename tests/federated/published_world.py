"""All parties of the published protocol, and messages that can be lost, changed or repeated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from dpmf.federated.published import Recommender, Terms, ThirdParty, User
from dpmf.federated.published.messages import Answer, Sizes
from dpmf.federated.published.randomness import Draws
from dpmf.federated.wire.channels import Channel
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY
from dpmf.kernels.protocol import RoundSettings, compute_answer_reference, variance_roots

RATINGS = {3: {0: 5.0, 2: 1.0}, 8: {0: 4.0, 1: 2.0, 2: 3.0}, 9: {1: 5.0, 2: 2.0}, 40: {0: 1.0, 2: 5.0}}
EXACT: dict[str, Any] = {"epsilon": math.inf, "item_penalty": 0.0, "user_penalty": 0.0}
both_kinds = pytest.mark.parametrize("shared_noise", [False, True], ids=["s2", "s3"])


class World:
    """All parties of the published protocol; `transcript` lists messages as (sender, receiver, bytes)."""

    def __init__(
        self, ratings: dict[int, dict[int, float]], *, shared_noise: bool, seed: int | None = None, **settings: Any
    ) -> None:
        without = settings.pop("set_up_without", ())
        n_items = settings.pop("n_items", 1 + max(item for own in ratings.values() for item in own))
        usual: dict[str, Any] = {"epsilon": 1.0, "n_factors": 3, "most_users": len(ratings)}
        self.terms = Terms(n_items, (1.0, 5.0), **{**usual, **settings})
        self.draws = Draws(seed)
        self.recommender = Recommender(self.terms, shared_noise=shared_noise, draws=self.draws)
        sizes = Sizes(n_items, self.terms.n_factors)
        self.third_party = ThirdParty(sizes, self.terms.ring, self.recommender.public, shared_noise=shared_noise)
        self.recommender.meet(self.third_party.public)
        self.ratings = ratings
        self.users: dict[int, User] = {}
        self.transcript: list[tuple[int, int, bytes]] = []
        for number, own in ratings.items():
            items = np.array(sorted(own))
            values = np.array([own[item] for item in items.tolist()])
            third_party = self.third_party.public if self.terms.third_party else None
            user = User(items, values, self.terms, self.recommender.public, third_party, self.draws)
            self.users[number] = user
            self.recommender.admit(number, user.public)
            self.third_party.admit(number, user.public)
            self.send(number, RECOMMENDER, user.join().message)
        if shared_noise:
            for outgoing in self.recommender.set_up(list(ratings)):
                if outgoing.to not in without:
                    self.pass_on(outgoing.to, outgoing.message)
            self.close()

    def send(self, sender: int, receiver: int, message: bytes) -> list[Any]:
        self.transcript.append((sender, receiver, message))
        if receiver == RECOMMENDER:
            return self.recommender.receive(sender, message)
        if receiver == THIRD_PARTY:
            return self.third_party.receive(sender, message)
        return self.users[receiver].receive(message)

    def pass_on(self, receiver: int, message: bytes) -> None:
        """Deliver a message from the recommender, and the receiver's answers."""
        for answer in self.send(RECOMMENDER, receiver, message):
            self.send(receiver, answer.to, answer.message)

    def close(self) -> None:
        for total in self.third_party.close():
            self.send(THIRD_PARTY, RECOMMENDER, total.message)

    def play(
        self,
        users: Iterable[int] | None = None,
        *,
        silent: Iterable[int] = (),
        meddle: Callable[[World], None] | None = None,
    ) -> None:
        """Play a round with these users, of whom some never answer."""
        silent = set(silent)
        for outgoing in self.recommender.open_round(list(self.users if users is None else users)):
            if outgoing.to not in silent:
                self.pass_on(outgoing.to, outgoing.message)
        if meddle is not None:
            meddle(self)
        if self.terms.third_party:
            self.close()
        else:
            self.recommender.close()

    def sums_of_last_step(self, before: np.ndarray[Any, Any], users: Iterable[int]) -> np.ndarray[Any, Any]:
        """Return the sums, in units, that moved item profiles; penalties should be 0."""
        counts = np.bincount([item for user in users for item in self.ratings[user]], minlength=self.terms.n_items)
        return np.asarray(-(self.recommender.V - before) / self.terms.rate * counts[:, None])


def plain_sums(world: World, users: list[int]) -> np.ndarray[Any, Any]:
    """Return the sum of the users' gradients on the grid, without masks or noise."""
    terms = world.terms
    settings = RoundSettings(terms.rate, terms.user_penalty, terms.radius, 0.0, terms.steps, terms.limit)
    sums = np.zeros((terms.n_items, terms.n_factors), np.int64)
    for user in users:
        items = np.array(sorted(world.ratings[user]))
        values = np.array([world.ratings[user][item] for item in items.tolist()], np.float32)
        rows, n = world.recommender.V[items].astype(np.float32), len(items)
        codes, nothing = np.zeros(rows.shape, np.uint16), np.zeros(rows.size)
        numbers, _ = compute_answer_reference(
            rows, values, np.ones(n), codes, variance_roots(), nothing, settings, world.users[user].profile
        )
        sums[items] += numbers
    return sums


def seal_as(world: World, sender: int, content: bytes) -> bytes:
    """Seal a message as a user would who breaks the protocol."""
    channel = world.users[sender]._third_party
    assert channel is not None
    return channel.seal(content)


def recommender_channel(world: World) -> Channel:
    """Return the recommender's end of its channel with the third party."""
    channel = world.recommender._third_party
    assert channel is not None
    return channel


def answer(world: World, later: int, items: list[int]) -> bytes:
    """Return an answer to the current round, or to one this much later."""
    elements = np.full((len(items), world.terms.n_factors), 12345, np.uint32)
    return Answer(world.recommender.round + later, np.array(items, np.uint32), elements).encoded(world.terms.ring)


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
}
