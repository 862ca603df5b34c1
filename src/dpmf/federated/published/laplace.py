"""Laplace noise that many users draw together (Hua, Xia and Zhong, theorem 2), and a test that they can run on it.

With H ~ Exp(1) and C ~ N(0, 1), b √(2H) C has the distribution Laplace(b). If each of k users draws C ~ N(0, 1/k), with
one H for all of them, their shares add up to it. Whoever draws H knows the variance of the noise: given H it is
Gaussian, and a small H means little noise. Users cannot change that, but they see H, and can test its distribution.

On the wire, H is a 16-bit code: one of 2¹⁶ equally likely quantiles of Exp(1).

>>> test = VarianceTest()
>>> test.check(draw_variances(Draws(1), (40, 50)))
>>> test.check(np.full((40, 50), 65535, np.uint16))  # hardly any noise
Traceback (most recent call last):
dpmf.federated.wire.refusals.Refused: the noise variances do not have the distribution that was agreed
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmf.federated.published.randomness import Draws
from dpmf.federated.wire.refusals import Refused
from dpmf.kernels.protocol import count_codes, variance_roots

_SHIFT = 12
_BINS = 1 << (16 - _SHIFT)
_SIGNIFICANCE = 1e-9  # the chance that one check refuses an honest recommender
_TOLERATED = math.log(2 / _SIGNIFICANCE) / 2


class VarianceTest:
    """A test, over all rounds so far, of whether H follows Exp(1).

    If n values really were drawn from Exp(1), the largest distance between the empirical distribution and Exp(1), over
    the edges of sixteen bins, exceeds √(ln(2/a) / 2n) with probability at most a (Dvoretzky, Kiefer, Wolfowitz;
    Massart).
    """

    __slots__ = ("_counts", "_n")

    def __init__(self) -> None:
        self._counts, self._n = np.zeros(_BINS, np.int64), 0

    def check(self, codes: NDArray[np.uint16]) -> None:
        """Add the codes of a message to the sample, or refuse them."""
        counts = self._counts.copy()
        n = self._n + codes.size
        if count_codes(codes, _SHIFT, counts) > math.sqrt(_TOLERATED / n):
            raise Refused("the noise variances do not have the distribution that was agreed")
        self._counts, self._n = counts, n


def draw_variances(draws: Draws, shape: tuple[int, int]) -> NDArray[np.uint16]:
    """Draw H, as codes."""
    count = shape[0] * shape[1]
    return draws.integers(-(-count // 2)).view("<u2")[:count].reshape(shape)


def noise_shares(
    draws: Draws, codes: NDArray[np.uint16], counts: NDArray[np.uint32], amplitude: float, steps: float
) -> NDArray[np.int64]:
    """Draw one user's shares of Laplace noise, in steps, shape (n, K).

    Args:
        draws: the user's own.
        codes: of H, shape (n, K).
        counts: how many users draw a share, for each of the n rows.
        amplitude: the scale of the Laplace distribution.
        steps: of the grid, per unit.
    """
    normals = draws.normals(codes.size).reshape(codes.shape)
    noise = amplitude * variance_roots()[codes].astype(np.float64) / np.sqrt(counts[:, None]) * normals
    return np.rint(noise * steps).astype(np.int64)


def own_noise(draws: Draws, n: int, n_factors: int, scale: float, steps: float) -> NDArray[np.int64]:
    """Draw noise of density proportional to exp(-‖z‖ / scale) for each of n rows, in steps, shape (n, K).

    That is what every single user has to add where nobody sums their answers.
    """
    directions = draws.normals(n * n_factors).reshape(n, n_factors).astype(np.float64)
    lengths = scale * draws.exponentials((n, n_factors)).astype(np.float64).sum(axis=1)  # Gamma(K, scale)
    norms = np.maximum(np.linalg.norm(directions, axis=1), 1e-30)
    return np.asarray(np.rint(directions * (lengths / norms * steps)[:, None]), np.int64)
