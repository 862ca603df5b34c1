"""What certified least squares may know before it asks: noisy numbers of another half of the same run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Known:
    """What another half of the same run has released before: noisy numbers all of it.

    Attributes:
        n_users: about how many people there are.
        counts: how popular every item is.
        sd: of the noise on each of the counts.
        factors: of items, shape (n_items, K), of any size: directions in which tastes differ. K is 0 if none are known.
    """

    n_users: float
    counts: NDArray[np.float64]
    sd: float
    factors: NDArray[np.float32]


def above_noise(count: float, sd: float) -> float:
    """Return a noisy count of people, but never less than noise alone may say."""
    return max(count, 3 * sd, 1.0)
