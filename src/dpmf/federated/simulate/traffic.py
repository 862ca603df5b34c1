"""Bytes sent and computing time, by user and round.

>>> tally = Tally()
>>> tally.add(100)
>>> tally.add(300)
>>> tally.mean, tally.most
(200.0, 300)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tally:
    """A sum, with the number of its parts and the largest of them."""

    total: float = 0.0
    count: int = 0
    most: float = 0

    def add(self, amount: float) -> None:
        """Add a part."""
        self.total += amount
        self.count += 1
        self.most = max(self.most, amount)

    @property
    def mean(self) -> float:
        """The mean of the parts; 0 if there are none."""
        return self.total / self.count if self.count else 0.0


@dataclass
class Spent:
    """Bytes and seconds of one round.

    Attributes:
        users: bytes down, bytes up and seconds, by user.
        third_party: seconds of the third party.
    """

    users: dict[int, tuple[int, int, float]] = field(default_factory=dict)
    third_party: float = 0.0

    def add(self, user: int, down: int, up: int, seconds: float) -> None:
        """Add the bytes and seconds of a message to a user and of its answer."""
        before = self.users.get(user, (0, 0, 0.0))
        self.users[user] = (before[0] + down, before[1] + up, before[2] + seconds)


@dataclass
class Traffic:
    """Bytes and seconds of a simulation, for statistics per user and round, or per round.

    Attributes:
        down, up: bytes to and from a user in a round.
        down_small, up_small: the same for users with at most `small` ratings, as the paper reports them.
        from_third_party: bytes from the third party to the recommender in a round.
        client_seconds, third_party_seconds, recommender_seconds: computing time in a round.
        small: the largest number of ratings of such a user.
    """

    small: int = 20
    down: Tally = field(default_factory=Tally)
    up: Tally = field(default_factory=Tally)
    down_small: Tally = field(default_factory=Tally)
    up_small: Tally = field(default_factory=Tally)
    from_third_party: Tally = field(default_factory=Tally)
    client_seconds: Tally = field(default_factory=Tally)
    third_party_seconds: Tally = field(default_factory=Tally)
    recommender_seconds: Tally = field(default_factory=Tally)

    def add_user(self, n_ratings: int, down: int, up: int, seconds: float) -> None:
        """Add what a user received and sent in a round."""
        self.down.add(down)
        self.up.add(up)
        self.client_seconds.add(seconds)
        if n_ratings <= self.small:
            self.down_small.add(down)
            self.up_small.add(up)

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> Traffic:
        """Return the traffic that `dataclasses.asdict` turned into plain numbers."""
        tallies = {name: Tally(**one) for name, one in content.items() if name != "small"}
        return cls(small=int(content["small"]), **tallies)

    def to_json(self) -> dict[str, Any]:
        """Return the figures for a report; None for all of them if this process played no round."""
        figures = {
            "bytes_down": self.down.mean,
            "bytes_up": self.up.mean,
            "most_bytes_down": self.down.most,
            "most_bytes_up": self.up.most,
            f"most_bytes_down_{self.small}_ratings": self.down_small.most,
            f"most_bytes_up_{self.small}_ratings": self.up_small.most,
            "bytes_from_third_party": self.from_third_party.mean,
            "most_bytes_from_third_party": self.from_third_party.most,
            "client_seconds": self.client_seconds.mean,
            "third_party_seconds": self.third_party_seconds.mean,
            "recommender_seconds": self.recommender_seconds.mean,
        }
        return {name: figure if self.down.count else None for name, figure in figures.items()}
