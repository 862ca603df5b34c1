"""From noisy sums to a ranking: the closed form of EASE on an estimated matrix, and a compact form of the result.

With S the estimate of Σ z z' and a ridge on its diagonal, P = (S + ridge)⁻¹; item k scores −Σ_j w_j P_jk / P_kk^a over
a person's items j (Steck 2019, where a = 1 and the ridge is constant; Steck 2020 for a ridge that grows with the
diagonal). −P off its diagonal is kept as a product of narrow matrices, plus the largest pairs of what that leaves over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.ease.shrinkage import (
    Array,
    Matrix,
    Spectrum,
    full_matrix,
    shrink_along,
    shrink_entries,
    shrink_spectrum,
)

_RIDGE, _DIAGONAL_RIDGE = 1.0, 0.4  # relative to the mean of the diagonal, and to the item's own diagonal
_LEAST_EIGENVALUE = 0.3  # of the matrix that is inverted, relative to the mean of the diagonal
_EXPONENT = 0.9  # of P_kk
_STANDS_OUT = 4.0  # standard deviations of noise: what is estimated from noise alone can be nearly as large
_ROOT_TWO = 2.0**0.5


class ItemItem(NamedTuple):
    """An item-item matrix in compact form, over the head.

    Attributes:
        left, right: shape (M, k), whose product is the matrix, but for its diagonal and the pairs.
        indptr, pairs, values: sparse rows, what is added to the product.
    """

    left: Matrix
    right: Matrix
    indptr: NDArray[np.int64]
    pairs: NDArray[np.int32]
    values: NDArray[np.float32]

    @classmethod
    def nothing(cls, size: int) -> ItemItem:
        """Return a matrix of zeros."""
        narrow = np.zeros((size, 0), np.float32)
        return cls(narrow, narrow, np.zeros(size + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))


def estimate(
    triangle: Array,
    sd: float,
    counts: Array,
    n_users: float,
    limits: tuple[int, int],
    spectrum: Spectrum | None = None,
    traits: Matrix | None = None,
) -> ItemItem:
    """Return the item-item matrix of noisy sums over pairs; zeros if nothing in them stands out from the noise.

    Args:
        triangle: the sums, packed as `unpack_pairs` says; M items.
        sd: of the noise on each of them; 0 for none.
        counts: above 0, shape (M,): about how much people like each item.
        n_users: about how many people there are.
        limits: the most factors, and the most pairs of an item, on average.
        spectrum: what `shrink_spectrum` says of the matrix, if that is known already.
        traits: what the catalogue says about the items, shape (M, C); see `dpmf.ratings.features.traits_of`.
    """
    found = denoise(triangle, sd, counts, spectrum, traits)
    if found is None:
        return ItemItem.nothing(len(counts))
    return closed_form(found, counts, np.full(len(counts), n_users / len(counts)), limits)


class Denoised(NamedTuple):
    """An estimate of Σ z z'.

    Attributes:
        matrix: shape (M, M); its diagonal does not count.
        diagonal: shape (M,).
        vectors: shape (M, k), the directions in which the matrix is more than single entries; None if that is unknown.
    """

    matrix: Matrix
    diagonal: Array
    vectors: Matrix | None


def denoise(
    triangle: Array, sd: float, counts: Array, spectrum: Spectrum | None = None, traits: Matrix | None = None
) -> Denoised | None:
    """Return an estimate of the matrix that was measured; None if nothing in it stands out from the noise."""
    noisy = full_matrix(triangle, len(counts))
    measured = np.diag(noisy).astype(np.float64)
    if sd > 0:
        vectors, values = shrink_spectrum(noisy, sd) if spectrum is None else spectrum
        S = (vectors * values.astype(np.float32)) @ vectors.T
        noisy -= S
        if traits is not None and traits.any():
            # Items of the same genre go together as popularity lets them: a part of Σ z z' in known directions.
            along = shrink_along(noisy, sd, traits * np.sqrt(counts)[:, None].astype(np.float32))
            part = (along.vectors * along.values.astype(np.float32)) @ along.vectors.T
            S += part
            noisy -= part
            vectors, values = np.hstack([vectors, along.vectors]), np.concatenate([values, along.values])
        entries = shrink_entries(noisy, sd / _ROOT_TWO, counts)
        if not len(values) and np.abs(entries).max() < _STANDS_OUT * sd / _ROOT_TWO:
            return None
        S += entries
        del noisy, entries
    else:
        vectors, S = None, noisy
    return Denoised(S, np.maximum(np.maximum(measured, sd), np.diag(S)), vectors)


def closed_form(found: Denoised, counts: Array, means: Array, limits: tuple[int, int]) -> ItemItem:
    """Return the item-item matrix of an estimate, whose matrix is lost.

    Args:
        found: the estimate.
        counts: above 0: about how much people like each item.
        means: of the diagonal, among items about as popular as each: what is added to it is relative to that.
        limits: as of `estimate`.
    """
    ridged = found.diagonal + _RIDGE * means + _DIAGONAL_RIDGE * found.diagonal
    P, ridged = _inverse(found.matrix, ridged, _LEAST_EIGENVALUE * means)
    return _compact(P, ridged, counts, found.vectors, *limits)


def _inverse(S: Matrix, diagonal: Array, least: Array) -> tuple[Matrix, Array]:
    """Return (S with another diagonal)⁻¹, and that diagonal, raised until S is at least diag(least); S is lost.

    Items of different popularity have a `least` of their own: what is little for some would be everything for others.
    """
    from scipy.linalg.lapack import spotrf, spotri

    raised, step = diagonal, least
    while True:
        np.fill_diagonal(S, raised - least)
        _, failed = spotrf(S, lower=1)
        if not failed:
            break
        raised, step = raised + step, 2 * step
    np.fill_diagonal(S, raised)
    factor, failed = spotrf(S, lower=1, overwrite_a=0)
    P, failed = spotri(factor, lower=1, overwrite_c=1)
    assert not failed
    rows, columns = np.tril_indices(len(P), -1)
    P[columns, rows] = P[rows, columns]
    return np.ascontiguousarray(P), raised


def _compact(
    P: Matrix, diagonal: Array, counts: Array, vectors: Matrix | None, most_factors: int, most_pairs: int
) -> ItemItem:
    """Return −P / P_kk^a off its diagonal in compact form; P is lost."""
    scale = (np.diag(P).astype(np.float64) ** -_EXPONENT).astype(np.float32)
    P *= -1
    P[np.diag_indices(len(P))] += (1 / diagonal).astype(np.float32)  # so, what the spectrum left is of low rank
    basis, values = _main_directions(P, diagonal, vectors, most_factors)
    roots = np.sqrt(np.abs(values)).astype(np.float32)
    left = basis * roots
    signed = left * np.sign(values).astype(np.float32)
    P -= left @ signed.T
    np.fill_diagonal(P, 0.0)
    P *= scale  # columns
    right = signed * scale[:, None]
    return ItemItem(left, np.ascontiguousarray(right), *largest_pairs(P, counts, most_pairs))


def _main_directions(matrix: Matrix, diagonal: Array, vectors: Matrix | None, most: int) -> tuple[Matrix, Array]:
    """Return orthonormal columns and the values for which basis · values · basis' is close to a symmetric matrix.

    The inverse of a diagonal plus a matrix with these eigenvectors differs from a diagonal in the span of
    diagonal⁻¹ · vectors (Woodbury); without vectors, the eigenvectors of the matrix itself are found.
    """
    if vectors is None:
        from scipy.linalg import eigh

        first = max(len(matrix) - most, 0)
        values, basis = eigh(matrix, subset_by_index=(first, len(matrix) - 1), check_finite=False)
        return np.asarray(basis, np.float32), values.astype(np.float64)
    basis, _ = np.linalg.qr(vectors / diagonal.astype(np.float32)[:, None])
    values, turn = np.linalg.eigh((basis.T @ (matrix @ basis)).astype(np.float64))
    chosen = np.sort(np.argsort(-np.abs(values), kind="stable")[:most])
    return np.asarray(basis @ turn[:, chosen].astype(np.float32)), values[chosen]


def largest_pairs(
    matrix: Matrix, owned: Array, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return the entries that matter most as sparse rows, `most` to a row on average.

    An entry matters by its size, and by the root of how often its row, an owned item, is there to score by.
    """
    weights = np.sqrt(owned / owned.max()).astype(np.float32)
    sizes = np.abs(matrix) * weights[:, None]
    total = min(most * len(matrix), matrix.size)
    least = np.partition(sizes.ravel(), matrix.size - total)[matrix.size - total] if total else np.inf
    rows, columns = np.nonzero((sizes >= least) & (sizes > 0))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(matrix)))])
    return indptr, columns.astype(np.int32), matrix[rows, columns]
