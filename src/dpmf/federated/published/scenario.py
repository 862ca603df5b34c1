"""The settings of a simulation of the published protocol.

>>> Scenario("s3", rounds=10, epsilon=1.0).shared_noise
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpmf.errors import InvalidArgument
from dpmf.federated.published.terms import Terms
from dpmf.ratings import Ratings


@dataclass(frozen=True)
class Scenario:
    """Configuration of a simulation: public settings only.

    Attributes:
        scenario: "s2", in which all users take part in every round, or "s3", in which they come and go.
        rounds: the number of rounds.
        epsilon: what is claimed; infinity for no noise at all.
        per_round: the largest number of users in a round of "s3"; in "s2" all take part.
        come, leave: the probabilities with which a user of "s3" comes online, and goes offline, in a round.
        third_party: whether there is one; without it every answer needs noise of its own.
        n_factors, learning_rate, regularization: K, the step size and the penalty on profiles of users and of items.
        items_public: asserts that the item ids found in the data are a public list.
        seed: determines who is online when.
        noise_seed: research only; the same noise every time, and no claim.
    """

    scenario: Literal["s2", "s3"]
    rounds: int
    epsilon: float
    per_round: int = 100
    come: float = 0.005
    leave: float = 0.01
    third_party: bool = True
    n_factors: int = 50
    learning_rate: float = 2.0**-5
    regularization: float = 0.001
    items_public: bool = False
    seed: int = 0
    noise_seed: int | None = None

    def __post_init__(self) -> None:
        if self.scenario not in ("s2", "s3"):
            raise InvalidArgument(f"scenario={self.scenario!r} is unknown: choose s2 or s3")
        for name in ("rounds", "per_round", "n_factors"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InvalidArgument(f"{name}={getattr(self, name)!r} should be a positive integer")
        if not 0 < self.come <= 1 or not 0 <= self.leave <= 1:
            raise InvalidArgument(f"come={self.come:g} and leave={self.leave:g} should be probabilities, come above 0")
        if self.shared_noise and not self.third_party:
            raise InvalidArgument("users can come and go only where there is a third party: choose scenario s2")

    @property
    def shared_noise(self) -> bool:
        """Whether the fixed noise is set up once and distributed in shares in every round."""
        return self.scenario == "s3"

    def terms(self, ratings: Ratings) -> Terms:
        """Return the public settings of a run on these ratings."""
        most = self.per_round if self.shared_noise else int((np.diff(ratings.indptr) > 0).sum())
        return Terms(
            n_items=ratings.n_items,
            scale=(ratings.scale.lo, ratings.scale.hi),
            epsilon=self.epsilon,
            most_users=max(most, 1),
            n_factors=self.n_factors,
            rate=self.learning_rate,
            user_penalty=self.regularization,
            item_penalty=self.regularization,
            third_party=self.third_party,
        )
