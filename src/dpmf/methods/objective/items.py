"""Item factors that minimise a perturbed objective, users being what they are (Hua, Xia and Zhong 2015, section 4.1).

Letters: users i with factors u_i that are fixed, items j, ratings r_ij of which there are M, k_j of item j; a noise
vector η_j for every item. Item factors v_j minimise

    (1/M) [Σ (r_ij - u_i·v_j)² + Σ_j η_j·v_j] + μ Σ_j ‖v_j‖²,

which is a ridge regression for each item by itself, with η_j/2 taken off its right-hand side: `PerturbedItems.solve`.
The paper descends instead; `PerturbedItems.advance` takes a step along the mean over an item's raters, as `Pace.mean`
does: v_j ← v_j - γ ((η_j - 2 Σ_i u_i (r_ij - u_i·v_j)) / k_j + 2 μ v_j).

>>> from dpmf.ratings import Ratings
>>> ratings = Ratings.of([1, 2], [7, 7], [5, 3], scale=(1, 5))
>>> state = plain_fit(ratings, 2, 2**-5, 0.001, seed=0)
>>> for number in range(100):
...     error = state.advance(number, n_threads=1)
>>> perturbed = PerturbedItems(state.items, state.X.copy(), np.zeros((1, 2)), 2**-5, 0.001)
>>> V = perturbed.solve(state.T, n_threads=1)
>>> bool(np.abs(state.T[:, :2] @ V[0] - [5, 3]).max() < 0.1)
True
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.sparse import SparseRows
from dpmf.errors import InvalidArgument
from dpmf.kernels.gradients import step_rows
from dpmf.kernels.regression import solve_normal_equations, sum_products
from dpmf.methods.gaussian.descent import Floats, FullGradients, Pace
from dpmf.privacy.noise import Noise
from dpmf.privacy.norm_noise import STEPS_PER_SCALE, norm_integers
from dpmf.ratings import Ratings

Array = NDArray[np.float64]
RADIUS = 1.0  # the longest that factors of a user may be: what the theorem assumes
_LENGTH = 1.0  # of all rows at the start


def plain_fit(
    ratings: Ratings, n_factors: int, learning_rate: float, regularization: float, *, seed: int, n_threads: int = 1
) -> FullGradients:
    """Return factors of users and items before the first step, without noise; `advance` takes steps.

    Rows start with length 1 in random directions. A step goes along the mean over a row's ratings of the gradient of
    squared errors and penalties, from the same factors on both sides, and no u_i is ever longer than 1.

    Args:
        ratings: what to learn from; they are predicted as they are, by products alone.
        n_factors: K.
        learning_rate: γ.
        regularization: λ and μ, the penalty on squared factors of users and of items.
        seed: of the start.
        n_threads: for the preparations.
    """
    pace = Pace.mean(ratings, learning_rate, regularization, regularization)
    return FullGradients.start(
        ratings, n_factors, pace, centre=0.0, unit=1.0, length=_LENGTH, seed=seed, radius=RADIUS, n_threads=n_threads
    )


def noise_vectors(noise: Noise, scale: float, shape: tuple[int, int]) -> Array:
    """Return vectors of density proportional to exp(-‖η‖/scale), one for each row: lengths are Gamma(K, scale).

    Args:
        noise: where it comes from, once.
        scale: 2 D / ε, D being the width of the rating scale.
        shape: rows and K.
    """
    drawn = norm_integers(noise, shape, "perturbation of the objective", 0)
    return drawn.astype(np.float64) * (scale / STEPS_PER_SCALE)


class PerturbedItems:
    """Item factors on their way to the minimum, or at it.

    Args:
        items: the ratings by item.
        start: shape (n_items, padded K), float32, whole lines: where steps start; kept, and overwritten.
        eta: shape (n_items, K), the noise.
        learning_rate: γ.
        regularization: μ.
    """

    def __init__(
        self, items: SparseRows, start: Floats, eta: Array, learning_rate: float, regularization: float
    ) -> None:
        self._items, self.V, self.eta = items, start, eta
        self._before = start.copy()
        self._regularization = regularization
        k = np.diff(items.indptr)
        # A mean over nobody is nothing: what nobody rated keeps its start, which is public.
        self._steps = np.where(k > 0, 2 * learning_rate / np.maximum(k, 1), 0.0).astype(np.float32)
        self._penalties = (regularization * np.maximum(k, 1)).astype(np.float32)

    def solve(self, U: Floats, n_threads: int) -> Floats:
        """Return the minimum, shape (n_items, K), for users with factors U, shape (n_users, at least K)."""
        items, right = self._items, np.empty(self.eta.shape)
        V, ridge = np.empty(self.eta.shape, np.float32), len(self._items.values) * self._regularization

        def work(start: int, stop: int) -> float:
            sum_products(items.csr, start, stop, U, right)
            right[start:stop] -= self.eta[start:stop] / 2
            solve_normal_equations(items.csr.pattern, start, stop, U, ridge, 0.0, right, V)
            return 0.0

        items.visit(work, n_threads)
        return V

    def advance(self, U: Floats, n_threads: int) -> float:
        """Take a step, and return the root mean squared error before it; U as wide as `start`."""
        items, ones = self._items, np.ones(len(U), np.float32)
        noise, before = (-self.eta / 2).astype(np.float32), self._before

        def work(start: int, stop: int) -> float:
            steps, penalties = self._steps, self._penalties
            return step_rows(items.csr, start, stop, self.V, U, ones, steps, penalties, 0.0, noise, before)

        squared = items.visit(work, n_threads)
        self.V, self._before = before, self.V
        if not (math.isfinite(squared) and np.isfinite(self.V).all()):
            raise InvalidArgument("the perturbed steps diverged: take a smaller learning_rate, or solver='exact'")
        return math.sqrt(squared / max(len(items.values), 1))
