"""Default learning rate and penalty, chosen to fit the data.

The fewer ratings a user or an item has, the stronger the penalty on its factors and the larger the steps must be. Both
follow from x = 1 / (ratings per user) + 1 / (ratings per item), by rules fitted to the best settings found on MovieLens
100K and 1M, Goodbooks, Anime, a tenth of Netflix and all of it (64 and 128 factors, linear decay), which x orders from
0.07 to 0.005.

>>> suggested(n_ratings=1000, n_users=50, n_items=40)
(0.02, 0.065)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

LAST_RATE = 0.02
"""The last learning rate of a linear decay, relative to the first."""

_RATES = (0.008, 0.02)  # lowest and highest
_MOST_PENALTY = 0.065


def suggested(n_ratings: int, n_users: int, n_items: int) -> tuple[float, float]:
    """Return a learning rate and a penalty, both stated for a scale as wide as 1 to 5.

    Args:
        n_ratings: the number of ratings.
        n_users, n_items: the numbers of users and items with at least one rating.
    """
    sparsity = n_users / n_ratings + n_items / n_ratings
    rate = float(np.clip(400 * sparsity**2, *_RATES))
    return rate, min(216 * sparsity**1.85, _MOST_PENALTY)


@dataclass(frozen=True)
class Settings:
    """What epochs are given; attributes as those of `SGD`."""

    n_epochs: int
    learning_rate: float
    regularization: float
    decay: float | Literal["linear"]

    def rate(self, epoch: int) -> float:
        """Return eta in an epoch, counted from 1."""
        if self.decay == "linear":
            return self.learning_rate * max(1 - (epoch - 1) / self.n_epochs, LAST_RATE)
        return self.learning_rate * math.exp(-self.decay * math.log(epoch))
