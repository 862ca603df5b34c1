"""Users who come and go: who is online in a round, who is asked, and who leaves during it.

>>> everybody = Population(np.arange(5), come=1.0, leave=0.0, seed=1)
>>> everybody.tick()
[]
>>> everybody.choose(3).tolist()
[2, 3, 4]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.streams import generator

_PATIENCE, _MOST_TICKS = 20.0, 1e5
_DEVIATIONS = 5.0  # more users than this many standard deviations above the usual number are never online
BEFORE_ANSWERING, AFTER_ANSWERING, STAYS = range(3)
"""When a user leaves a round: before answering, after answering, or not at all."""


class Population:
    """Users who are online or offline; at the start all are offline.

    Args:
        users: their numbers.
        come, leave: the probabilities of coming online and of going offline in a round.
        seed: of these random events, which have no bearing on privacy.
    """

    def __init__(self, users: NDArray[np.int64], come: float, leave: float, seed: int) -> None:
        self._users, self._come, self._leave = users, come, leave
        self._generator = generator(seed, "who is online")
        self.online = np.zeros(len(users), np.bool_)

    @property
    def usual(self) -> int:
        """The average number of users online in the long run."""
        return int(len(self._users) * self._come / (self._come + self._leave))

    def wait_for(self, wanted: int) -> None:
        """Let users come and go until the wanted number is online.

        Raises:
            InvalidArgument: that would hardly ever happen.
        """
        patience = _PATIENCE * (1 + wanted / (len(self._users) * self._come) + 1 / (self._come + self._leave))
        deviation = math.sqrt(self.usual * self._leave / (self._come + self._leave))
        ticks = 0
        while int(self.online.sum()) < wanted:
            ticks += 1
            if wanted > self.usual + _DEVIATIONS * deviation + 1 or ticks > patience or patience > _MOST_TICKS:
                raise InvalidArgument(
                    f"{wanted:,} people are hardly ever online at once, about {self.usual:,} usually are: ask for "
                    "fewer per round, or let people come more often"
                )
            self.tick()

    def tick(self) -> list[int]:
        """Let users come and go between two rounds, and return who left."""
        drawn = self._generator.random(len(self._users))
        left: list[int] = self._users[self.online & (drawn < self._leave)].tolist()
        self.online = np.where(self.online, drawn >= self._leave, drawn < self._come)
        return left

    def choose(self, most: int) -> NDArray[np.int64]:
        """Choose at most this number of users who are online, at random; return them in ascending order."""
        places = np.flatnonzero(self.online)
        if len(places) > most:
            places = np.sort(self._generator.choice(places, most, replace=False))
        return self._users[places]

    def departures(self, count: int) -> NDArray[np.int64]:
        """Draw, for each of this number of participants, when they leave the round."""
        leaves = self._generator.random(count) < self._leave
        return np.where(leaves, self._generator.integers(BEFORE_ANSWERING, STAYS, count), STAYS)

    def disconnect(self, users: list[int]) -> None:
        """Take these users offline."""
        self.online[np.searchsorted(self._users, users)] = False

    def snapshot(self) -> dict[str, Any]:
        """Return who is online and the state of the random generator."""
        return {"online": np.flatnonzero(self.online).tolist(), "chance": self._generator.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a `snapshot`."""
        self.online[:] = False
        self.online[state["online"]] = True
        self._generator.bit_generator.state = state["chance"]
