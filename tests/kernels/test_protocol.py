"""Kernels of the published protocol against plain functions."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.kernels.protocol import (
    RoundSettings,
    add_rows,
    compute_answer,
    compute_answer_reference,
    count_codes,
    in_range,
    subtract_rows,
    variance_roots,
)


@pytest.mark.parametrize("seed", range(20))
def test_an_answer_equals_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(1, 9)), int(rng.integers(1, 60))
    rows, values = rng.normal(size=(n, K)).astype(np.float32), rng.uniform(1, 5, n).astype(np.float32)
    counts, codes = rng.integers(1, 50, n).astype(np.uint32), rng.integers(0, 1 << 16, (n, K)).astype(np.uint16)
    normals, u = rng.normal(size=n * K).astype(np.float32), rng.normal(size=K)
    settings = RoundSettings(
        rate=0.03, penalty=0.01, radius=1.0, amplitude=float(rng.choice([0.0, 7.0])), steps=4096.0, limit=6.0
    )
    before = rng.integers(0, 1 << 32, (n, K), dtype=np.uint32)
    expected, after = compute_answer_reference(rows, values, counts, codes, variance_roots(), normals, settings, u)
    elements = before.copy()
    compute_answer(rows, values, counts, codes, variance_roots(), normals, settings, u, elements)
    assert np.abs((elements - before).view(np.int32) - expected).max() <= 1  # where rounding is a tie
    np.testing.assert_allclose(u, after, atol=1e-9)
    assert np.linalg.norm(u) <= 1 + 1e-12


def test_a_profile_that_is_not_finite_becomes_zero() -> None:
    u, elements = np.array([np.nan, 1.0]), np.zeros((1, 2), np.uint32)
    one = np.ones((1, 2), np.float32)
    settings = RoundSettings(0.1, 0.0, 1.0, 0.0, 10.0, 20.0)
    compute_answer(
        one,
        one[0, :1],
        np.ones(1, np.uint32),
        np.zeros((1, 2), np.uint16),
        variance_roots(),
        one[0],
        settings,
        u,
        elements,
    )
    assert (u == 0).all()


def test_variances_have_an_exponential_distribution() -> None:
    H = variance_roots().astype(np.float64) ** 2 / 2
    assert abs(H.mean() - 1) < 1e-4
    assert abs(H.var() - 1) < 1e-3
    assert (np.diff(H) < 0).all()


def test_rows_are_added_and_subtracted_modulo_the_size_of_their_type() -> None:
    rng = np.random.default_rng(1)
    sums, items = rng.integers(0, 1 << 32, (6, 3), dtype=np.uint32), np.array([0, 2, 5], np.uint32)
    elements = rng.integers(0, 1 << 32, (3, 3), dtype=np.uint32)
    expected = sums.copy()
    expected[items] += elements
    found = sums.copy()
    add_rows(found, items, elements)
    np.testing.assert_array_equal(found, expected)
    subtract_rows(found, items, elements)
    np.testing.assert_array_equal(found, sums)


def test_codes_are_counted_and_their_distance_from_uniform_is_returned() -> None:
    codes, counts = np.random.default_rng(2).integers(0, 1 << 16, 999).astype(np.uint16), np.zeros(16, np.int64)
    distance = count_codes(codes, 12, counts)
    np.testing.assert_array_equal(counts, np.bincount(codes >> 12, minlength=16))
    even = np.arange(1, 17) / 16
    assert distance == pytest.approx(float(np.abs(np.cumsum(counts) / 999 - even).max()))


@pytest.mark.parametrize(
    ("count", "number", "fine"),
    [(1, 0.5, True), (9, -3.0, True), (0, 0.5, False), (10, 0.5, False), (1, np.nan, False), (1, -3.1, False)],
)
def test_ranges(count: int, number: float, fine: bool) -> None:
    rows = np.zeros((5, 7), np.float32)
    rows[4, 6] = number
    assert in_range(np.array([1, count], np.uint32), 9, rows, 3.0) is fine
