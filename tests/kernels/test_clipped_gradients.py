"""Clipped gradients: the kernel against its reference, and nobody's is longer than it may be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.kernels.clipped_gradients import add_clipped_gradients, add_clipped_gradients_reference
from dpmf.kernels.csr import Csr

N_ITEMS, K = 7, 3
WILD = [math.nan, math.inf, -math.inf, 1e30, -1e30, 3e38, 1e-45, -0.0]
SINGLES = st.one_of(st.floats(-4, 4, width=32), st.sampled_from(WILD))


def floats(values: list[float], *shape: int) -> NDArray[np.float32]:
    return np.array(values, np.float32).reshape(shape)


@pytest.mark.parametrize("clip", [0.1, 1.0, 50.0])
def test_kernel_equals_the_reference(clip: float) -> None:
    rng = np.random.default_rng(1)
    counts = np.array([3, 0, 7, 1])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    items = np.concatenate([np.sort(rng.permutation(N_ITEMS)[:n]) for n in counts]).astype(np.int32)
    values = rng.normal(size=len(items)).astype(np.float32)
    V, U = rng.normal(size=(N_ITEMS, K)).astype(np.float32), rng.normal(size=(4, K)).astype(np.float32)
    c, b = rng.normal(size=N_ITEMS).astype(np.float32), rng.normal(size=4).astype(np.float32)
    shares = np.array([1.0, 1.0, 0.5, 0.25])
    sums, steps = np.zeros((N_ITEMS, K + 1), np.int64), 2.0**40
    add_clipped_gradients(Csr(indptr, items, values), 0, 4, V, c, b, U, shares, 0.3, clip, steps, sums)
    expected = np.zeros(sums.shape)
    for i in range(4):
        own = slice(indptr[i], indptr[i + 1])
        ratings, of_items = (items[own], values[own].astype(float)), (V.astype(float), c.astype(float))
        bias, u, share = float(b[i]), U[i].astype(float), float(shares[i])
        expected += add_clipped_gradients_reference(*ratings, *of_items, bias, u, share, 0.3, clip)
    np.testing.assert_allclose(sums / steps, expected, rtol=1e-5, atol=1e-9)


@given(st.data())
def test_nobody_is_longer_than_the_clip(data: st.DataObject) -> None:
    """Whatever people, items and settings are: not finite, unsorted, repeated, outside the catalogue."""
    count = data.draw(st.integers(0, 9))

    def singles(size: int) -> list[float]:
        return data.draw(st.lists(SINGLES, min_size=size, max_size=size))

    items = data.draw(st.lists(st.integers(-2, N_ITEMS + 1), min_size=count, max_size=count))
    share = data.draw(st.sampled_from([0.0, 1e-3, 0.5, 1.0, 1.5, -1.0, math.nan]))
    clip, height = data.draw(st.floats(1e-3, 1e3)), data.draw(st.floats(0, 10))
    steps = data.draw(st.floats(1, 2.0**45)) / clip
    sums = np.zeros((N_ITEMS, K + 1), np.int64)
    rated = Csr(np.array([0, count]), np.array(items, np.int32), floats(singles(count), count))
    V, c = floats(singles(N_ITEMS * K), N_ITEMS, K), floats(singles(N_ITEMS), N_ITEMS)
    b, U = floats(singles(1), 1), floats(singles(K), 1, K)
    add_clipped_gradients(rated, 0, 1, V, c, b, U, np.array([share]), height, clip, steps, sums)
    limit = share * clip * steps if 0 <= share <= 1 else 0.0
    squared: Any = sum(int(one) ** 2 for one in sums.ravel())  # exact
    assert squared <= int(limit**2 * (1 + 1e-12)) + 1


def test_a_long_gradient_reaches_the_clip() -> None:
    """The bound is tight, so the noise is not larger than it must be."""
    sums, steps = np.zeros((N_ITEMS, K + 1), np.int64), 2.0**40
    ones, c, b = np.ones((N_ITEMS, K), np.float32), np.zeros(N_ITEMS, np.float32), np.zeros(1, np.float32)
    rated = Csr(np.array([0, N_ITEMS]), np.arange(N_ITEMS, dtype=np.int32), np.full(N_ITEMS, 100, np.float32))
    add_clipped_gradients(rated, 0, 1, ones, c, b, ones[:1], np.ones(1), 0.3, 2.0, steps, sums)
    assert np.linalg.norm(sums / steps) == pytest.approx(2.0, rel=2e-6)
