"""The public settings of the published protocol, and its grid.

>>> terms = Terms(n_items=100, scale=(1.0, 5.0), epsilon=0.8, most_users=1000)
>>> round(terms.amplitude, 1), terms.steps, terms.ring.n_bytes
(70.7, 65536.0, 4)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from dpmf.errors import InvalidArgument
from dpmf.federated.wire.ring import Ring

MOST_USERS = 1 << 20
MOST_FACTORS = 1024
MOST_ITEMS = 1 << 24
_TAIL = 40.0  # Laplace noise exceeds 40 times its scale with probability e^-40
_LEAST_STEPS = 16.0


@dataclass(frozen=True)
class Terms:
    """Public settings of a run of the published protocol, known to all parties.

    Attributes:
        n_items: the size of the catalogue.
        scale: lowest and highest rating.
        epsilon: what is claimed for one round's noise; infinity for no noise.
        most_users: the largest number of users in a round.
        n_factors: K.
        rate: the step size, 2^-5 in the paper.
        user_penalty, item_penalty: lambda and mu.
        radius: the largest norm of a user's profile.
        third_party: whether a third party sums the answers, so that only sums need noise, not every single answer.
    """

    n_items: int
    scale: tuple[float, float]
    epsilon: float
    most_users: int
    n_factors: int = 50
    rate: float = 2.0**-5
    user_penalty: float = 0.001
    item_penalty: float = 0.001
    radius: float = 1.0
    third_party: bool = True

    def __post_init__(self) -> None:
        for name, most in (("n_items", MOST_ITEMS), ("most_users", MOST_USERS), ("n_factors", MOST_FACTORS)):
            if not 1 <= getattr(self, name) <= most:
                raise InvalidArgument(f"{name}={getattr(self, name)} should be a whole number from 1 to {most:,}")
        for name, least in (("rate", 0.0), ("radius", 0.0), ("epsilon", 0.0)):
            if not getattr(self, name) > least:
                raise InvalidArgument(f"{name}={getattr(self, name)} should be a number above 0")
        for name in ("user_penalty", "item_penalty"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidArgument(f"{name}={getattr(self, name)} should be a number, 0 or more")
        if self.steps < _LEAST_STEPS:
            raise InvalidArgument(
                f"epsilon={self.epsilon:g} with {self.most_users:,} users per round needs more noise than numbers of "
                f"{self.ring.n_bytes} bytes can hold: choose a larger epsilon, or fewer users"
            )

    @cached_property
    def width(self) -> float:
        """D, the width of the scale."""
        return self.scale[1] - self.scale[0]

    @cached_property
    def amplitude(self) -> float:
        """The scale of the Laplace noise on every coordinate of an item's gradient: 2 D √K / ε."""
        return 2 * self.width * math.sqrt(self.n_factors) / self.epsilon

    @cached_property
    def ring(self) -> Ring:
        """The ring in which answers are masked and summed."""
        return Ring(4)

    @cached_property
    def limit(self) -> float:
        """The largest coordinate of one user's gradient; larger ones are clipped."""
        return 4 * self.radius * max(abs(self.scale[0]), abs(self.scale[1]))

    @cached_property
    def steps(self) -> float:
        """Grid steps per unit: the largest power of two that leaves room for the sum of a round."""
        noises = 2 if self.third_party else 1 + self.most_users
        largest = self.most_users * (self.limit + 1) + noises * _TAIL * self.amplitude
        return 2.0 ** math.floor(math.log2((self.ring.half - 1) / largest))
