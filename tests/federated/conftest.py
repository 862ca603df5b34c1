"""A small world of parties, in which every message can be lost, changed or repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from dpmf.federated.published.randomness import Draws
from dpmf.federated.published.recommender import Recommender
from dpmf.federated.published.terms import Terms
from dpmf.federated.published.third_party import ThirdParty
from dpmf.federated.published.user import User
from dpmf.federated.wire.messages import Sizes
from dpmf.federated.wire.parties import RECOMMENDER, THIRD_PARTY


class World:
    """A recommender, a third party and users; `transcript` has all messages as (sender, receiver, bytes)."""

    def __init__(
        self, ratings: dict[int, dict[int, float]], *, dealt: bool, seed: int | None = None, **settings: Any
    ) -> None:
        without = settings.pop("set_up_without", ())
        n_items = settings.pop("n_items", 1 + max(item for own in ratings.values() for item in own))
        usual: dict[str, Any] = {"epsilon": 1.0, "n_factors": 3, "most_users": len(ratings)}
        self.terms = Terms(n_items, (1.0, 5.0), **{**usual, **settings})
        self.draws = Draws(seed)
        self.recommender = Recommender(self.terms, dealt=dealt, draws=self.draws)
        sizes = Sizes(n_items, self.terms.n_factors)
        self.third_party = ThirdParty(sizes, self.terms.ring, self.recommender.public, dealt=dealt)
        self.recommender.meet(self.third_party.public)
        self.ratings, self.users = ratings, {}
        self.transcript: list[tuple[int, int, bytes]] = []
        for number, own in ratings.items():
            items = np.array(sorted(own))
            user = User(
                items, np.array([own[item] for item in items.tolist()]), self.terms, self.recommender.public,
                self.third_party.public if self.terms.third_party else None, self.draws,
            )  # fmt: skip
            self.users[number] = user
            self.recommender.admit(number, user.public)
            self.third_party.admit(number, user.public)
            self.send(number, RECOMMENDER, user.join().message)
        if dealt:
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
        """Deliver a message of the recommender, and what the receiver says to it."""
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
        for outgoing in self.recommender.deal(list(self.users if users is None else users)):
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


@pytest.fixture(scope="session")
def world() -> type[World]:
    return World
