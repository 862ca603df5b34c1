"""Delivering messages within one process, and keeping count of bytes and of time.

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
    """A sum that remembers how many parts it has and which was the largest."""

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
    """What one round took.

    Attributes:
        users: bytes down, bytes up and seconds of every user in it.
        third_party: seconds.
    """

    users: dict[int, tuple[int, int, float]] = field(default_factory=dict)
    third_party: float = 0.0

    def add(self, user: int, down: int, up: int, seconds: float) -> None:
        """Add what a message to a user, and what came back, took."""
        before = self.users.get(user, (0, 0, 0.0))
        self.users[user] = (before[0] + down, before[1] + up, before[2] + seconds)


@dataclass
class Traffic:
    """What passed, and what it took, by user and round or by round.

    Attributes:
        down, up: bytes to and from a user in a round.
        down_small, up_small: the same of users with at most `small` ratings, to be set beside what was published.
        from_third_party: bytes to the recommender in a round.
        client_seconds, third_party_seconds, recommender_seconds: computing time.
        small: how many ratings are few.
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
        """Count what a user received and sent in a round."""
        self.down.add(down)
        self.up.add(up)
        self.client_seconds.add(seconds)
        if n_ratings <= self.small:
            self.down_small.add(down)
            self.up_small.add(up)

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> Traffic:
        """Return what `dataclasses.asdict` made into plain numbers."""
        tallies = {name: Tally(**one) for name, one in content.items() if name != "small"}
        return cls(small=int(content["small"]), **tallies)

    def to_json(self) -> dict[str, Any]:
        """Return the figures for a report; None for what did not happen in this process."""
        figures = {
            "bytes_down": self.down.mean, "bytes_up": self.up.mean,
            "most_bytes_down": self.down.most, "most_bytes_up": self.up.most,
            f"most_bytes_down_{self.small}_ratings": self.down_small.most,
            f"most_bytes_up_{self.small}_ratings": self.up_small.most,
            "bytes_from_third_party": self.from_third_party.mean,
            "most_bytes_from_third_party": self.from_third_party.most,
            "client_seconds": self.client_seconds.mean,
            "third_party_seconds": self.third_party_seconds.mean,
            "recommender_seconds": self.recommender_seconds.mean,
        }  # fmt: skip
        return {name: figure if self.down.count else None for name, figure in figures.items()}
