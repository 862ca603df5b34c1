"""Estimates of a symmetric matrix that was measured with noise of known size: its spectrum, and single entries.

Noise of standard deviation sd on the diagonal and sd/√2 off it has its eigenvalues within ± sd·√(2M), M being the size
of the matrix. What lies beyond is signal, and is shrunk (Gavish and Donoho 2017: for the Frobenius norm). What the
spectrum leaves over may still hold single pairs that stand out; they are shrunk by empirical Bayes, each to its
posterior mean under a prior that is estimated from all entries of about the same expected size (Kiefer and Wolfowitz
1956; Jiang and Zhang 2009). Nothing here sees anything but noisy numbers.

>>> noisy = np.random.default_rng(0).normal(size=5000)  # nothing but noise
>>> bool(np.abs(posterior_means(noisy, 1.0)).max() < 0.5)
True
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.item_pairs import unpack_pairs

Matrix = NDArray[np.float32]
Array = NDArray[np.float64]

BEYOND_EDGE = 1.02  # an eigenvalue counts from here on, relative to the edge of the noise
_MOST_GROUPS, _GROUP = 8, 20_000  # of entries of about the same expected size, and the fewest in one
_BINS, _FINE = 600, 8.0  # of a histogram; up to this many standard deviations they are narrow
_CLEAR = 30.0  # standard deviations from 0: noise that is so much smaller does not matter
_ROUNDS = 100  # of expectation and maximization
_SAMPLE = 1_000_003  # entries by which groups are divided


class Spectrum(NamedTuple):
    """What of a matrix stands out from the noise.

    Attributes:
        vectors: shape (M, k), eigenvectors.
        values: shape (k,), their eigenvalues, ascending, after shrinking.
    """

    vectors: Matrix
    values: Array


def full_matrix(triangle: Array, size: int) -> Matrix:
    """Return the symmetric matrix of a packed triangle: see `unpack_pairs`."""
    assert len(triangle) == size * (size + 1) // 2
    full = np.empty((size, size))
    unpack_pairs(triangle, full)
    return full.astype(np.float32)


def edge_of_noise(size: int, sd: float) -> float:
    """Return the largest eigenvalue of noise alone."""
    return float(sd * np.sqrt(2.0 * size))


def shrink_spectrum(noisy: Matrix, sd: float) -> Spectrum:
    """Return what is beyond the noise."""
    from scipy.linalg import eigh

    edge = edge_of_noise(len(noisy), sd)
    unit = np.ldexp(1.0, int(np.frexp(np.abs(noisy).max(initial=0.0))[1]))  # of any size: LAPACK overflows early
    least = BEYOND_EDGE * edge / unit
    values, vectors = eigh(
        noisy / np.float32(unit), subset_by_value=(least, np.inf), overwrite_a=True, check_finite=False
    )
    found = unit * values.astype(np.float64)
    return Spectrum(np.ascontiguousarray(vectors, np.float32), np.sqrt(np.maximum(found**2 - edge**2, 0.0)))


def shrink_along(residual: Matrix, sd: float, columns: Matrix) -> Spectrum:
    """Return what is beyond the noise within the span of a few known columns, of either sign; the diagonal is left out.

    There noise has far less room than in all directions: an edge of sd √(2C) for C columns, in place of sd √(2M).

    Args:
        residual: symmetric, shape (M, M), with noise as in `shrink_spectrum`.
        sd: of that noise on the diagonal.
        columns: shape (M, C), chosen without a look at this matrix.
    """
    basis, _ = np.linalg.qr(columns)
    within = basis.T @ residual @ basis - (basis * np.diag(residual)[:, None]).T @ basis
    values, turn = np.linalg.eigh(within.astype(np.float64))
    edge = edge_of_noise(len(values), sd)
    kept = np.abs(values) > BEYOND_EDGE * edge
    shrunk = np.sign(values[kept]) * np.sqrt(values[kept] ** 2 - edge**2)
    return Spectrum(np.ascontiguousarray(basis @ turn[:, kept].astype(np.float32)), shrunk)


def shrink_entries(residual: Matrix, sd: float, sizes: Array) -> Matrix:
    """Return posterior means of all entries off the diagonal, and 0 on it.

    Args:
        residual: symmetric, shape (M, M), with independent noise above the diagonal.
        sd: of that noise.
        sizes: above 0, shape (M,): entry (j, k) is compared with others of about the same sizes[j] · sizes[k].
    """
    rows, columns = np.tril_indices(len(residual), -1)
    shrunk = np.zeros_like(residual)
    if not len(rows):
        return shrunk
    logs = np.log(sizes).astype(np.float32)
    expected, entries = logs[rows] + logs[columns], residual[rows, columns]
    n_groups = max(1, min(_MOST_GROUPS, len(entries) // _GROUP))
    sample = expected[:: max(1, len(expected) // _SAMPLE)]
    bounds = np.quantile(sample, np.arange(1, n_groups) / n_groups)
    groups = np.searchsorted(bounds, expected).astype(np.int8)
    del expected
    for group in range(n_groups):
        chosen = groups == group
        entries[chosen] = posterior_means(entries[chosen], sd)
    shrunk[rows, columns] = entries
    shrunk[columns, rows] = entries
    return shrunk


def posterior_means(noisy: NDArray[Any], sd: float) -> NDArray[Any]:
    """Return what numbers most likely were before normal noise of this standard deviation was added.

    Their prior is any distribution on a grid, most likely given all of them; it begins with most of its mass at 0. What
    is far beyond the noise stays as it is.
    """
    found, unclear = noisy.copy(), noisy < _CLEAR * sd
    found[unclear] = _posterior_means(noisy[unclear], sd)
    return found


def _posterior_means(noisy: NDArray[Any], sd: float) -> NDArray[Any]:
    if not len(noisy):
        return noisy
    low, high = float(noisy.min()), float(noisy.max())
    fine = min(high, _FINE * sd)
    bins = np.unique([*np.linspace(low, fine, _BINS), *np.linspace(fine, high, _BINS // 2)])
    if len(bins) < 2:
        return np.zeros_like(noisy)
    counts, _ = np.histogram(noisy, bins)
    middles = (bins[1:] + bins[:-1]) / 2
    grid = _grid(sd, high)
    likelihood = np.exp(-0.5 * np.square((middles[:, None] - grid) / sd))
    prior = np.full(len(grid), 0.5 / len(grid))
    prior[0] += 0.5
    for _ in range(_ROUNDS):
        joint = likelihood * prior
        joint /= joint.sum(axis=1, keepdims=True) + 1e-300
        prior = counts @ joint / counts.sum()
    means = (likelihood * prior) @ grid / (likelihood @ prior + 1e-300)
    return np.asarray(np.interp(noisy, middles, means), noisy.dtype)


def _grid(sd: float, high: float) -> Array:
    """Return the values that a number may have had: 0 first, dense around it, and up to the largest ones."""
    near = np.linspace(-2.0, 3.0, 26)
    far = 3.0 * np.exp(np.linspace(0.05, np.log(max(high / (3.0 * sd), 1.06)), 30))
    return sd * np.concatenate([[0.0], near[np.abs(near) > 0.15], far])
