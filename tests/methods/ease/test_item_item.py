"""From sums over pairs to an item-item matrix: the closed form, and its compact form."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.methods.ease import item_item
from dpmf.methods.ease.item_item import ItemItem, estimate

N_USERS, M = 500, 30
EVERYTHING = (512, 300)


def sums() -> NDArray[np.float64]:
    """Return Σ z z' of people of three kinds."""
    generator = np.random.default_rng(0)
    kinds, items = generator.integers(0, 3, N_USERS), np.arange(M)
    liked = generator.random((N_USERS, M)) < np.where(items % 3 == kinds[:, None], 0.5, 0.05)
    liked[np.arange(N_USERS), kinds] = True
    z = liked / np.linalg.norm(liked, axis=1, keepdims=True)
    return np.asarray(z.T @ z)


def packed(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the triangle of a matrix as it is released."""
    scaled = matrix * np.where(np.eye(len(matrix)), 1.0, 2**0.5)
    return np.asarray(scaled[np.tril_indices(len(matrix))])


def dense(found: ItemItem) -> NDArray[np.float64]:
    """Return the matrix that a compact form stands for, which has no diagonal."""
    full = found.left.astype(np.float64) @ found.right.T
    for row, (first, last) in enumerate(zip(found.indptr[:-1], found.indptr[1:], strict=True)):
        full[row, found.pairs[first:last]] += found.values[first:last]
    np.fill_diagonal(full, 0.0)
    return full


def closed_form(S: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what EASE scores with, of exact sums."""
    ridge = item_item._RIDGE * N_USERS / len(S) + item_item._DIAGONAL_RIDGE * np.diag(S)
    P = np.linalg.inv(S + np.diag(ridge))
    B = -P / np.diag(P) ** item_item._EXPONENT
    np.fill_diagonal(B, 0.0)
    return B


def test_exact_sums_give_the_closed_form() -> None:
    S = sums()
    found, expected = dense(estimate(packed(S), 0.0, np.diag(S), N_USERS, EVERYTHING)), closed_form(S)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_hardly_any_noise_changes_hardly_anything() -> None:
    S, sd = sums(), 1e-4
    noisy = packed(S) + np.random.default_rng(1).normal(0, sd, M * (M + 1) // 2)
    found, expected = dense(estimate(noisy, sd, np.diag(S), N_USERS, EVERYTHING)), closed_form(S)
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()


def test_a_few_factors_and_pairs_are_most_of_it() -> None:
    S = sums()
    expected = closed_form(S)
    whole = np.linalg.norm(expected)
    lost = [
        np.linalg.norm(dense(estimate(packed(S), 0.0, np.diag(S), N_USERS, limits)) - expected) / whole
        for limits in ((3, 1), (10, 5), (20, 20))
    ]
    assert lost[0] < 0.6
    assert lost[0] > lost[1] > lost[2]
    found = estimate(packed(S), 0.0, np.diag(S), N_USERS, (3, 1))
    assert found.left.shape == found.right.shape == (M, 3)
    assert len(found.pairs) <= M  # one of each item, on average
    assert (found.pairs != np.repeat(np.arange(M), np.diff(found.indptr))).all()  # nothing counts for itself


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_made_of_noise(seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 5.0, M * (M + 1) // 2)
    found = estimate(noise, 5.0, np.full(M, 5.0), 10.0, EVERYTHING)
    assert (found.left.shape, len(found.values)) == ((M, 0), 0)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("sd", [0.0, 0.01, 1e6])
def test_tiny_matrices_are_fine(size: int, sd: float) -> None:
    S = np.full((size, size), 3.0) + np.eye(size)
    found = dense(estimate(packed(S), sd, np.diag(S), 9.0, EVERYTHING))
    assert np.isfinite(found).all()
    assert (found.max() > 0) == (size > 1 and sd < 1)


def test_a_matrix_that_noise_made_indefinite_is_raised_until_it_can_be_inverted() -> None:
    S = np.full((3, 3), -50.0)
    found = dense(estimate(packed(S), 0.0, np.full(3, 1.0), 3.0, EVERYTHING))
    assert np.isfinite(found).all()
