"""Sums of factors times ratings, released so that the value of one rating is protected; who rated what is public.

For every row (an item, say) Σ_i z_i (r_i - lo) over its ratings, z_i being factors of those who gave them, public or
private by themselves. Factors are put on a grid of whole steps, none longer than a bound R, and ratings on LEVELS equal
steps of their scale, so that products and sums are whole numbers and exact. A rating whose value changes by the whole
width D of the scale changes one row by LEVELS times a row of whole numbers, which is R D at most, and nothing else: no
slack is due for rounding. Factors on the grid are returned, so that whatever is computed with them fits the sums.

>>> from dpmf.privacy import GaussianEvent
>>> from dpmf.privacy.noise import Noise
>>> from dpmf.ratings import Ratings
>>> ratings = Ratings.of([1, 1, 2], [7, 8, 7], [5, 4, 3], scale=(1, 5))
>>> mechanism = Mechanism([GaussianEvent("sums", noise_multiplier=1e-3, coordinates=4)], Noise(noise_seed=1))
>>> factors = np.array([[0.6, 0.8], [3.0, 4.0]], np.float32)
>>> items = SparseRows.by_user(ratings).transposed(2)
>>> noisy, rows = release_products(mechanism, "sums", items, factors, 1.0, ratings.scale, n_threads=1)
>>> noisy.round(1).tolist(), bool(np.allclose(rows, [0.6, 0.8], atol=1e-4))
([[3.6, 4.8], [1.8, 2.4]], True)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.sparse import SparseRows
from dpmf.kernels.regression import add_levels, grid_rows, sum_products
from dpmf.privacy.mechanism import Mechanism
from dpmf.ratings import Scale

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
LEVELS = 2520  # of a scale: divided by 2 to 10, so that ratings on most scales are on the grid


def release_products(
    mechanism: Mechanism, what: str, side: SparseRows, factors: Floats, longest: float, scale: Scale, n_threads: int
) -> tuple[Array, Floats]:
    """Return the noisy sums, shape (rows, K), and the factors that they were made with, on the grid.

    Args:
        mechanism: adds the noise.
        what: the name of the event.
        side: the ratings by row.
        factors: shape (columns, K), of what the rows' ratings are by, or about.
        longest: R. Longer factors are shortened to it, and those that are not finite become 0.
        scale: of the ratings; those that are off it count as its nearer end.
        n_threads: how many threads to use.
    """
    sensitivity = longest * (scale.hi - scale.lo)
    steps = mechanism.steps(what, sensitivity) * (scale.hi - scale.lo) / LEVELS  # per unit of a factor
    rows = np.empty(factors.shape, np.int64)
    grid_rows(factors, longest, steps, rows)
    sums = integer_sums(side, rows, scale, n_threads)
    return mechanism.release(what, sums, sensitivity), (rows / steps).astype(np.float32)


def integer_sums(side: SparseRows, rows: NDArray[np.int64], scale: Scale, n_threads: int) -> NDArray[np.int64]:
    """Return Σ rows · levels of ratings, shape (rows of the side, K)."""
    levels, sums = levels_of(side.values, scale), np.zeros((side.n_rows, rows.shape[1]), np.int64)

    def work(start: int, stop: int) -> float:
        add_levels(side.indptr, side.columns, levels, start, stop, rows, sums)
        return 0.0

    side.visit(work, n_threads)
    return sums


def levels_of(values: Floats, scale: Scale) -> NDArray[np.int64]:
    """Return ratings as whole numbers from 0 to LEVELS; what is not a number is 0.

    >>> levels_of(np.array([1, 1.5, 5, 99, np.nan], np.float32), Scale(1, 5)).tolist()
    [0, 315, 2520, 2520, 0]
    """
    share = (values.astype(np.float64) - scale.lo) / (scale.hi - scale.lo)
    levels: NDArray[np.int64] = np.rint(LEVELS * np.nan_to_num(share, nan=0.0).clip(0, 1)).astype(np.int64)
    return levels


def public_products(side: SparseRows, factors: Floats, offsets: Floats, n_threads: int) -> Array:
    """Return Σ factors · offsets over the ratings of each row, whatever the ratings: public if its arguments are.

    Args:
        side: who rated what; its values are not used.
        factors: shape (columns, K).
        offsets: shape (columns,).
        n_threads: how many threads to use.
    """
    sums, each = np.empty((side.n_rows, factors.shape[1])), offsets[side.columns]

    def work(start: int, stop: int) -> float:
        sum_products(side.indptr, side.columns, each, start, stop, factors, sums)
        return 0.0

    side.visit(work, n_threads)
    return sums
