"""Public traits of items, such as genres: factors that nobody measures, and that everybody's own taste may go by.

Nobody is asked about their taste for them, so they cost no privacy; see `dpmf.ratings.features` for what they are. They
are used if they tell something: if they say more about the noisy biases of items than chance would. Likewise everybody
may lean more or less towards what is popular, and what is well liked: that is released with noise anyway.

>>> traits = Traits(np.ones((3, 2), np.float32))
>>> traits.count, traits.beside(np.zeros((3, 1), np.float32), traits.size(1.0)).shape
(0, (3, 1))
>>> traits.tell = True
>>> traits.count, traits.beside(np.zeros((3, 1), np.float32), traits.size(1.0)).shape
(2, (3, 3))
>>> more = Traits(np.ones((3, 2), np.float32), (np.ones((3, 4), np.float32), np.ones((3, 1), np.float32)))
>>> more.judge([9.0, 0.0, 9.0], [0.2, 0.3, 0.1])
>>> more.used.tolist()[0]
[1.0, 1.0, 0.5]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, product

import numpy as np
from numpy.typing import NDArray

from dpmf.model.learnt import BEYOND

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
TASTE_SD = 0.22  # of what a person's taste for traits adds to a rating, for a scale as wide as 1 to 5
N_LEANINGS = 2
_SPAN = 4.0  # of a scale, in stars
_POPULAR_SD, _LIKED_SD = 0.06, 0.4  # of what people add, in stars, for twice the popularity, and for a star of bias
WHOLE_SIZE = 0.2  # of what a further description adds to predicted biases, from which on it counts as genres do
LEAST_GAIN = 8.0  # in likelihood, by the logarithm, of what traits say about biases: else they are of no use


def leanings_of(totals: Array, noise: Array, biases: Floats, unit: float) -> Floats:
    """Return how popular and how well liked items are, as factors of the size that traits have, shape (n_items, 2).

    What is lost in the noise is the same for all items, or near 0, so that leanings towards it add nothing.

    Args:
        totals, noise: how much weight items have, and the size of the noise in it, shape (n_items,).
        biases: of items, shape (n_items,).
        unit: of ratings.
    """
    popular = np.log2(np.maximum(totals, BEYOND * noise))
    columns = _POPULAR_SD * (popular - popular.mean()), _LIKED_SD * liking_of(biases, unit)
    return (np.stack(columns, axis=1) / TASTE_SD).astype(np.float32)


def liking_of(biases: Floats, unit: float) -> Array:
    """Return how well liked items are, in stars: no more than a scale is wide, since noise may be of any size."""
    return np.clip(biases.astype(np.float64) / unit, -_SPAN, _SPAN)


def size_of(penalty: float) -> float:
    """Return by what to multiply traits, so that tastes for them are held down as they should be.

    Args:
        penalty: on people's factors, in units of the variance of an error.
    """
    return TASTE_SD * math.sqrt(penalty)


@dataclass(eq=False)
class Traits:
    """What the list of items says about them.

    Attributes:
        columns: what the list itself says, shape (n_items, C); squared lengths have mean 1.
        further: the same of each further description.
        tell: whether what the list itself says tells something, as far as is known.
        shares: of the size of the list's own traits, what each further description gets; 0 if it tells nothing.
    """

    columns: Floats
    further: Sequence[Floats] = ()
    tell: bool = False
    shares: Sequence[float] = ()

    def judge(self, gains: Sequence[float], sizes: Sequence[float]) -> None:
        """Decide which of them tell something, and how large tastes for further ones may be.

        People hardly differ in how they like what hardly matters to all of them together.

        Args:
            gains: how much likelier noisy biases are with each description, first with what the list says.
            sizes: how much each adds to what is predicted of biases, a standard deviation, on a scale from 1 to 5.
        """
        first, *others = (gain > LEAST_GAIN for gain in gains)
        self.tell = first and self.columns.shape[1] > 0
        self.shares = [min(size / WHOLE_SIZE, 1.0) * does for size, does in zip(sizes[1:], others, strict=True)]

    def keep(self, squares: NDArray[np.float64]) -> None:
        """Use those that an earlier release did: the list's own if there are any, and others that make up the rest.

        Args:
            squares: how large each of its traits was, the sum of the squares of its numbers.
        """
        widths = [one.shape[1] for one in self.further]
        first = self.columns.shape[1]
        choices = sorted(product((False, True), repeat=len(widths)), key=sum)
        whole = (one for one in choices if sum(compress(widths, one)) == len(squares) - first)
        chosen, place = next(whole, choices[0]), first
        self.tell, self.shares = len(squares) > 0, [0.0] * len(widths)
        for number, width in enumerate(widths):
            if chosen[number]:
                part, place = squares[place : place + width], place + width
                self.shares[number] = min(math.sqrt(part.sum() / squares[:first].sum()), 1.0) if first else 1.0

    @property
    def used(self) -> Floats:
        """Those that are used, side by side, each in its size."""
        listed = self.columns[:, : self.columns.shape[1] * self.tell]
        sized = (one * np.float32(share) for one, share in zip(self.further, self.shares) if share)  # noqa: B905
        return np.hstack([listed, *sized])

    @property
    def count(self) -> int:
        """How many of them are used."""
        return int(self.used.shape[1])

    @property
    def described(self) -> NDArray[np.bool_]:
        """Which items have any that are used, shape (n_items,)."""
        return np.asarray(self.used.any(axis=1))

    def size(self, penalty: float) -> float:
        """Return by what to multiply them if they are used; see `size_of`."""
        return size_of(penalty) if self.count else 0.0

    def beside(self, V: Floats, size: float) -> Floats:
        """Return factors with traits of this size behind them; with a size of 0, factors alone."""
        return np.hstack([V, self.used * np.float32(size)]) if size and self.count else V
