"""What certified least squares may know before it asks: of another half of the same run, or of an earlier release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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


class Before(NamedTuple):
    """An earlier release that a run starts from, for the items of this one: public, whatever it was made of.

    Attributes:
        factors: of items, shape (n_items, K); 0 for items that are new.
        biases: of items, shape (n_items,); 0 for items that are new.
        with_factors: shape (n_items,), the items whose factors it knew.
        with_ratings: shape (n_items,), those of which it knew how they are rated.
        n_known: how many factors it knew.
        traits: how large each of its traits of items is: the sum of the squares of its numbers.
    """

    factors: NDArray[np.float64]
    biases: NDArray[np.float64]
    with_factors: NDArray[np.bool_]
    with_ratings: NDArray[np.bool_]
    n_known: int
    traits: NDArray[np.float64]


def above_noise(count: float, sd: float) -> float:
    """Return a noisy count of people, but never less than noise alone may say."""
    return max(count, 3 * sd, 1.0)
