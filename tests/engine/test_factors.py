"""Factor rows: aligned, padded with zeros, and each made from its own key alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.engine.factors import factor_rows, fill_randomly


def filled(key: np.uint64, keys: NDArray[np.uint64], n_factors: int, sd: float) -> NDArray[np.float32]:
    return fill_randomly(key, keys, n_factors, sd, factor_rows(len(keys), n_factors))


@pytest.mark.parametrize(("n_factors", "width"), [(1, 16), (16, 16), (17, 32), (64, 64)])
def test_rows_fill_whole_cache_lines_and_start_on_one(n_factors: int, width: int) -> None:
    for n_rows in (1, 7):
        rows = factor_rows(n_rows, n_factors)
        assert rows.shape == (n_rows, width)
        assert rows.dtype == np.float32
        assert rows.ctypes.data % 64 == 0
        assert rows.flags.c_contiguous
        assert not rows.any()


def test_random_rows_have_the_spread_asked_for_and_zeros_beyond() -> None:
    rows = filled(np.uint64(7), np.arange(5000, dtype=np.uint64), 10, sd=0.3)
    assert rows[:, :10].std() == pytest.approx(0.3, rel=0.02)
    assert abs(rows[:, :10].mean()) < 0.01
    assert not rows[:, 10:].any()


def test_a_row_depends_on_its_own_key_alone() -> None:
    keys = np.array([11, 5, 8], np.uint64)
    rows = filled(np.uint64(7), keys, 4, sd=1.0)
    np.testing.assert_array_equal(filled(np.uint64(7), keys[1:2], 4, sd=1.0)[0], rows[1])
    assert (filled(np.uint64(8), keys, 4, sd=1.0)[:, :4] != rows[:, :4]).all()
