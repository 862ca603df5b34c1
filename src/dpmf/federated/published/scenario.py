"""What is simulated of the published protocol: how many take part, who comes and goes, and what is claimed.

>>> Scenario("s3", rounds=10, epsilon=1.0).dealt
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
    """Configuration of a simulation: public facts only.

    Attributes:
        scenario: "s2", in which all users take part in every round, or "s3", in which they come and go.
        rounds: how many.
        epsilon: what is claimed; infinity for no noise at all.
        per_round: how many users take part in a round of "s3" at most; in "s2" all do.
        come, leave: the probabilities of a user of "s3" getting online and offline in a round.
        third_party: whether there is one; without it every user's answer needs noise of its own.
        n_factors, learning_rate, regularization: K, the step size and the penalty on profiles of users and of items.
        items_public: whether item ids that were found in the data are asserted to be a public list.
        seed: of who is online when.
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
            raise InvalidArgument(f"scenario={self.scenario!r} is not known: choose s2 or s3")
        for name in ("rounds", "per_round", "n_factors"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InvalidArgument(f"{name}={getattr(self, name)!r} should be a whole number from 1 on")
        if not 0 < self.come <= 1 or not 0 <= self.leave <= 1:
            raise InvalidArgument(f"come={self.come:g} and leave={self.leave:g} should be probabilities, come above 0")
        if self.dealt and not self.third_party:
            raise InvalidArgument("users can come and go only where there is a third party: take scenario s2")

    @property
    def dealt(self) -> bool:
        """Whether the fixed noise is set up once and dealt out in every round."""
        return self.scenario == "s3"

    def terms(self, ratings: Ratings) -> Terms:
        """Return what everybody knows."""
        most = self.per_round if self.dealt else int((np.diff(ratings.indptr) > 0).sum())
        return Terms(
            ratings.n_items, (ratings.scale.lo, ratings.scale.hi), self.epsilon, max(most, 1), self.n_factors,
            self.learning_rate, self.regularization, self.regularization, third_party=self.third_party,
        )  # fmt: skip
