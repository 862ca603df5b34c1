"""Public traits of items, such as genres: factors that nobody measures, and that everybody's own taste may go by.

Nobody is asked about their taste for them, so they cost no privacy; see `dpmf.ratings.features` for what they are. They
are used if they tell something: if they say more about the noisy biases of items than chance would.

>>> traits = Traits(np.ones((3, 2), np.float32))
>>> traits.count, traits.beside(np.zeros((3, 1), np.float32), traits.size(1.0)).shape
(0, (3, 1))
>>> traits.tell = True
>>> traits.count, traits.beside(np.zeros((3, 1), np.float32), traits.size(1.0)).shape
(2, (3, 3))
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
TASTE_SD = 0.22  # of what a person's taste for traits adds to a rating, for a scale as wide as 1 to 5
LEAST_GAIN = 8.0  # in likelihood, by the logarithm, of what traits say about biases: else they are of no use


@dataclass(eq=False)
class Traits:
    """What the list of items says about them.

    Attributes:
        columns: of items, shape (n_items, C); squared lengths have mean 1.
        tell: whether they tell something, as far as is known.
    """

    columns: Floats
    tell: bool = False

    @property
    def count(self) -> int:
        """How many of them are used."""
        return int(self.columns.shape[1]) if self.tell else 0

    @property
    def described(self) -> NDArray[np.bool_]:
        """Which items have any that are used, shape (n_items,)."""
        return np.asarray(self.columns.any(axis=1) & self.tell)

    def size(self, penalty: float) -> float:
        """Return by what to multiply them, so that tastes for them are held down as they should be.

        Args:
            penalty: on people's factors, in units of the variance of an error.
        """
        return TASTE_SD * math.sqrt(penalty) if self.tell else 0.0

    def beside(self, V: Floats, size: float) -> Floats:
        """Return factors with traits of this size behind them; with a size of 0, factors alone."""
        return np.hstack([V, self.columns * np.float32(size)]) if size and self.columns.shape[1] else V
