"""Whitened coordinates against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.kernels.whitening import transform_rows, transform_rows_reference, whitening_of, whitening_reference

WIDTHS = [16, 48, 208]  # one line, a few, more than two strips


@pytest.mark.parametrize("width", WIDTHS)
def test_the_whitening_is_that_of_the_reference(width: int) -> None:
    V = np.random.default_rng(width).normal(0, 0.4, (2 * width, width))
    found, expected = whitening_of(V.T @ V, 0.3), whitening_reference(V.T @ V, 0.3)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_gramian_of_whitened_rows_is_at_most_the_identity(width: int) -> None:
    V = np.random.default_rng(width).normal(0, 0.4, (2 * width, width)).astype(np.float32)
    Y = np.empty_like(V)
    transform_rows(V, 0, len(V), whitening_of(V.T.astype(np.float64) @ V, 0.3).turned, False, Y)
    spectrum = np.linalg.eigvalsh(Y.T.astype(np.float64) @ Y)
    assert 0 < spectrum.min() < spectrum.max() <= 1 + 1e-5


@pytest.mark.parametrize("is_lower", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_transformed_rows_equal_the_reference(width: int, is_lower: bool) -> None:
    rng = np.random.default_rng(width)
    M = rng.normal(size=(width, width)).astype(np.float32)
    M = np.tril(M) if is_lower else np.triu(M)
    rows = rng.normal(size=(11, width)).astype(np.float32)
    out = np.full_like(rows, 9)
    transform_rows(rows, 1, 10, M, is_lower, out)  # two groups of four, and one row
    np.testing.assert_allclose(out[1:10], transform_rows_reference(rows[1:10], M), rtol=1e-4, atol=1e-4)
    assert (out[[0, 10]] == 9).all()
    transform_rows(rows, 1, 10, M, is_lower, rows)
    assert rows[1:10].tobytes() == out[1:10].tobytes()


def test_a_ridge_too_small_for_single_precision_leaves_everything_finite() -> None:
    V = np.ones((40, 16))
    for one, other in zip(whitening_of(V.T @ V, 1e-30), whitening_reference(V.T @ V, 1e-30), strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
