"""The vector instructions of the Cholesky solver against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.kernels.cholesky import (
    add_products,
    add_products_reference,
    cholesky_reference,
    copy_line,
    dot_lines,
    eliminate,
)
from dpmf.kernels.jit import kernel

WIDTHS = [16, 32, 96, 112, 208]  # one line, two, a whole strip, a strip and a bit, two and a bit


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [0, 1, 7])
def test_products_equal_the_reference(width: int, count: int, negative: bool) -> None:
    rng = np.random.default_rng(width)
    B, Z = (rng.normal(size=(12, width)).astype(np.float32) for _ in range(2))
    C = rng.normal(size=(9, width)).astype(np.float32)
    before, first = C.copy(), 16 if width > 16 else 0
    add_products(B, 1, 4, Z, 3, count, C, 2, first, width, negative)
    part = B[1 : 1 + count, 4:8], Z[3 : 3 + count, first:], before[2:6, first:]
    np.testing.assert_allclose(C[2:6, first:], add_products_reference(*part, negative), rtol=1e-5, atol=1e-5)
    C[2:6, first:] = before[2:6, first:]
    assert (before == C).all()  # nothing else was touched


def test_the_width_of_a_strip_changes_no_bit() -> None:
    rng = np.random.default_rng(0)
    B, Z = (rng.normal(size=(40, 208)).astype(np.float32) for _ in range(2))
    whole, piecewise = np.zeros((4, 208), np.float32), np.zeros((4, 208), np.float32)
    add_products(B, 0, 4, Z, 0, 40, whole, 0, 0, 208, False)
    for first in range(0, 208, 16):
        add_products(B, 0, 4, Z, 0, 40, piecewise, 0, first, first + 16, False)
    assert whole.tobytes() == piecewise.tobytes()


@pytest.mark.parametrize("width", WIDTHS)
def test_elimination_makes_the_cholesky_factor(width: int) -> None:
    Z = np.random.default_rng(width).normal(size=(2 * width, width))
    A = (Z.T @ Z + np.eye(width)).astype(np.float32)
    expected = cholesky_reference(A)
    for a in range(0, width, 4):
        add_products(A, 0, a, A, 0, a, A, a, a - a % 16, width, True)
        eliminate(A, a)
    np.testing.assert_allclose(np.triu(A), expected, rtol=1e-3, atol=1e-3)


def test_lines_are_copied_and_multiplied() -> None:
    @kernel
    def work(source: NDArray[np.float32], target: NDArray[np.float32]) -> float:
        copy_line(source, 5, target, 2, np.float32(3))
        return float(dot_lines(source, 0, source, 16, 2))

    source, target = np.arange(48, dtype=np.float32), np.zeros(20, np.float32)
    assert work(source, target) == source[:32] @ source[16:]
    assert target.tolist() == [0, 0, *(3 * source[5:21]), 0, 0]
