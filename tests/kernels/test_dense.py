"""Small matrices and vectors against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.kernels.dense import invert, invert_reference, rescale, rescale_rows, rescale_rows_reference


@pytest.mark.parametrize("size", [1, 2, 9, 33])
def test_a_matrix_is_inverted_as_by_numpy(size: int) -> None:
    Z = np.random.default_rng(size).normal(size=(2 * size, size))
    A, inverse = Z.T @ Z + np.eye(size), np.full((size, size), 9.0)
    expected = invert_reference(A)
    invert(A, inverse)
    np.testing.assert_allclose(inverse, expected, rtol=1e-9, atol=1e-9)


def test_rows_get_the_length_asked_for_unless_they_are_zero() -> None:
    rows = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    rows[3] = 0
    expected, before = rescale_rows_reference(0.7, rows), rows.copy()
    rescale_rows(1, 5, 0.7, rows)
    np.testing.assert_allclose(rows[1:5], expected[1:5], rtol=1e-6)
    np.testing.assert_array_equal(rows[[0, 5]], before[[0, 5]])
    one = before[0].astype(np.float64)
    rescale(one, 0.7)
    np.testing.assert_allclose(one, expected[0], rtol=1e-9)
