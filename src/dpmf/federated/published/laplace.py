"""Laplace noise that many users draw together (Hua, Xia and Zhong, theorem 2), and how they watch over it.

With H ~ Exp(1) and C ~ N(0, 1), b √(2H) C has the distribution Laplace(b). If k users draw C ~ N(0, 1/k) each, with one
H for all of them, their pieces add up to it. Whoever draws H knows the spread of the noise: given H it is Gaussian, and
a small H is little noise. Users cannot change that, but they see H, and can tell whether it is drawn as it should be.

On the wire, H is the number of one of 2¹⁶ equally likely steps of Exp(1).

>>> watch = Watch()
>>> watch.look(drawn_spread(Draws(1), (40, 50)))
>>> watch.look(np.full((40, 50), 65535, np.uint16))  # hardly any noise
Traceback (most recent call last):
dpmf.federated.wire.refusals.Refused: the spread of the noise is not drawn as it should be
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmf.federated.published.randomness import Draws
from dpmf.federated.wire.refusals import Refused
from dpmf.kernels.protocol import count_codes, spread_roots

_SHIFT = 12
_BINS = 1 << (16 - _SHIFT)
_SIGNIFICANCE = 1e-9  # of a look at an honest recommender's numbers
_TOLERATED = math.log(2 / _SIGNIFICANCE) / 2


class Watch:
    """A test, over all rounds so far, of whether H looks like Exp(1).

    The greatest distance between the distribution of what was seen and Exp(1), at the edges of sixteen bins, exceeds
    √(ln(2/a) / 2n) with probability a at most if n numbers were drawn as they should be (Dvoretzky, Kiefer, Wolfowitz;
    Massart).
    """

    __slots__ = ("_counts", "_n")

    def __init__(self) -> None:
        self._counts, self._n = np.zeros(_BINS, np.int64), 0

    def look(self, codes: NDArray[np.uint16]) -> None:
        """Take numbers into account, or refuse them."""
        counts = self._counts.copy()
        n = self._n + codes.size
        if count_codes(codes, _SHIFT, counts) > math.sqrt(_TOLERATED / n):
            raise Refused("the spread of the noise is not drawn as it should be")
        self._counts, self._n = counts, n


def drawn_spread(draws: Draws, shape: tuple[int, int]) -> NDArray[np.uint16]:
    """Return codes of H."""
    count = shape[0] * shape[1]
    return draws.words(-(-count // 2)).view("<u2")[:count].reshape(shape)


def pieces(
    draws: Draws, codes: NDArray[np.uint16], counts: NDArray[np.uint32], amplitude: float, steps: float
) -> NDArray[np.int64]:
    """Return one user's pieces of Laplace noise, in steps, shape (n, K).

    Args:
        draws: the user's own.
        codes: of H, shape (n, K).
        counts: how many users draw a piece, for each of the n rows.
        amplitude: the scale of the Laplace distribution.
        steps: of the grid, per unit.
    """
    normals = draws.normals(codes.size).reshape(codes.shape)
    noise = amplitude * spread_roots()[codes].astype(np.float64) / np.sqrt(counts[:, None]) * normals
    return np.rint(noise * steps).astype(np.int64)


def whole_noise(draws: Draws, n: int, n_factors: int, scale: float, steps: float) -> NDArray[np.int64]:
    """Return noise of density proportional to exp(-‖z‖ / scale) for each of n rows, in steps, shape (n, K).

    That is what every single user has to add where nobody adds up what they send.
    """
    directions = draws.normals(n * n_factors).reshape(n, n_factors).astype(np.float64)
    lengths = scale * draws.exponentials((n, n_factors)).astype(np.float64).sum(axis=1)  # Gamma(K, scale)
    norms = np.maximum(np.linalg.norm(directions, axis=1), 1e-30)
    return np.asarray(np.rint(directions * (lengths / norms * steps)[:, None]), np.int64)
