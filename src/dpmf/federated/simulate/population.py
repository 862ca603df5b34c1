"""People who come and go: who is online in a round, who is asked, and who leaves in the middle of it.

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
_SPREADS = 5.0  # how far from the usual number of people who are online one need not look
BEFORE_ANSWERING, AFTERWARDS, STAYS = range(3)
"""When a user leaves a round: before answering, after that, or not at all."""


class Population:
    """Users who are online or not. At the start nobody is.

    Args:
        users: their numbers.
        come, leave: the probabilities of getting online and offline in a round.
        seed: of all of this, which has nothing to do with privacy.
    """

    def __init__(self, users: NDArray[np.int64], come: float, leave: float, seed: int) -> None:
        self._users, self._come, self._leave = users, come, leave
        self._generator = generator(seed, "who is online")
        self.online = np.zeros(len(users), np.bool_)

    @property
    def usual(self) -> int:
        """How many people are online in the long run, on average."""
        return int(len(self._users) * self._come / (self._come + self._leave))

    def wait_for(self, wanted: int) -> None:
        """Let people come and go until so many are online.

        Raises:
            InvalidArgument: that would hardly ever be.
        """
        patience = _PATIENCE * (1 + wanted / (len(self._users) * self._come) + 1 / (self._come + self._leave))
        spread = math.sqrt(self.usual * self._leave / (self._come + self._leave))
        ticks = 0
        while int(self.online.sum()) < wanted:
            ticks += 1
            if wanted > self.usual + _SPREADS * spread + 1 or ticks > patience or patience > _MOST_TICKS:
                raise InvalidArgument(
                    f"{wanted:,} people are hardly ever online at once, about {self.usual:,} are: ask for fewer in a "
                    "round, or let people come more often"
                )
            self.tick()

    def tick(self) -> list[int]:
        """Let people come and go between two rounds, and return who left."""
        drawn = self._generator.random(len(self._users))
        left: list[int] = self._users[self.online & (drawn < self._leave)].tolist()
        self.online = np.where(self.online, drawn >= self._leave, drawn < self._come)
        return left

    def choose(self, most: int) -> NDArray[np.int64]:
        """Return users who are online, at most so many, at random and in ascending order."""
        places = np.flatnonzero(self.online)
        if len(places) > most:
            places = np.sort(self._generator.choice(places, most, replace=False))
        return self._users[places]

    def moments(self, count: int) -> NDArray[np.int64]:
        """Return for so many users when they leave the round that they were asked to take part in."""
        leaves = self._generator.random(count) < self._leave
        return np.where(leaves, self._generator.integers(BEFORE_ANSWERING, STAYS, count), STAYS)

    def send_off(self, users: list[int]) -> None:
        """Let these users be offline."""
        self.online[np.searchsorted(self._users, users)] = False

    def state(self) -> dict[str, Any]:
        """Return what is needed to go on with the same people and the same chance."""
        return {"online": np.flatnonzero(self.online).tolist(), "chance": self._generator.bit_generator.state}

    def take_up(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self.online[:] = False
        self.online[state["online"]] = True
        self._generator.bit_generator.state = state["chance"]
