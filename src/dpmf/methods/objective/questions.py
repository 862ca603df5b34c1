"""The question of objective perturbation: sums of factors times ratings, which protect the value of one rating.

For every row (an item, or a user) it is Σ z (r - lo) over the row's ratings, z being factors of what they are by, or
about, public or private by themselves. Factors are put on a grid of whole steps, none longer than a bound R, and
ratings on LEVELS equal steps of their scale, so that products and sums are whole numbers and exact. A rating whose
value changes by the whole width D of the scale changes one row by LEVELS times a row of whole numbers, which is R D at
most, and nothing else: no slack is due for rounding. docs/proofs/objective.md has the proof.

>>> levels_of(np.array([1, 1.5, 5, 99, np.nan], np.float32), Scale(1, 5)).tolist()
[0, 315, 2520, 2520, 0]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.regression import add_levels, quantize_rows, scatter_levels
from dpmf.methods.certified.questions import Fitted, Floats, Integers, People, Question
from dpmf.ratings import Scale

LEVELS = 2520  # of a scale: divided by 2 to 10, so that ratings on most scales are on the grid


@dataclass(frozen=True, eq=False)
class ValueSums(Question):
    """What are the sums of factors times ratings?

    Attributes:
        what: the name of the release.
        factors: shape (n, K), of users if there is a sum for every item, and of items if for every user.
        longest: R. Longer factors are shortened to it, and those that are not finite become 0.
        scale: of the ratings; those that are off it count as its nearer end.
        rows: whose sums they are.
        n_rows: how many of them there are.
    """

    what: str
    factors: Floats
    longest: float
    scale: Scale
    rows: Literal["items", "users"]
    n_rows: int
    scales_up = False  # whoever asks knows who rated what, and leaves out those who did not answer

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the sums."""
        return self.n_rows, self.factors.shape[1]

    @property
    def reach(self) -> float:
        """How far the value of one rating can move the sums."""
        return self.longest * self.width

    @property
    def width(self) -> float:
        """Of the scale."""
        return self.scale.hi - self.scale.lo

    def sensitivity(self, neighbours: str) -> float:
        """Return how far sums of data sets are apart in which one rating has another value."""
        return self.reach

    def on_grid(self, steps: float) -> Integers:
        """Return factors in whole steps, given those per unit of the sums."""
        return self._gridded(self.factors, steps)

    def factors_on_grid(self, steps: float) -> Floats:
        """Return the factors that sums are really made with."""
        return (self.on_grid(steps) / self._per_factor(steps)).astype(np.float32)

    def _per_factor(self, steps: float) -> float:
        return steps * self.width / LEVELS

    def _gridded(self, factors: Floats, steps: float) -> Integers:
        rows = np.empty(factors.shape, np.int64)
        quantize_rows(factors, self.longest, self._per_factor(steps), rows)
        return rows

    def add(self, people: People, fitted: Fitted | None, first: int, last: int, steps: float, sums: Integers) -> None:
        """Add levels times factors to sums (out)."""
        of = people.counted
        levels = levels_of(of.values[of.indptr[first] : of.indptr[last]], self.scale)
        pointers = of.indptr[first : last + 1] - of.indptr[first]
        rated = CsrPattern(pointers, of.items[of.indptr[first] : of.indptr[last]])
        positions = people.positions[first:last]
        if self.rows == "items":
            rows = self._gridded(np.ascontiguousarray(self.factors[positions]), steps)
            scatter_levels(rated, levels, 0, last - first, rows, sums)
        else:
            own = np.zeros((last - first, sums.shape[1]), np.int64)
            add_levels(rated, levels, 0, last - first, self.on_grid(steps), own)
            sums[positions] += own


def levels_of(values: Floats, scale: Scale) -> Integers:
    """Return ratings as whole numbers from 0 to LEVELS; what is not a number is 0."""
    share = (values.astype(np.float64) - scale.lo) / (scale.hi - scale.lo)
    levels: NDArray[np.int64] = np.rint(LEVELS * np.nan_to_num(share, nan=0.0).clip(0, 1)).astype(np.int64)
    return levels
