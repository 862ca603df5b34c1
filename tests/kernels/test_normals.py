"""Normal numbers: the kernel against its reference, and both against the normal distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmf.kernels.normals import (
    normal_row,
    normal_row_reference,
    normal_table,
    normals_of_words,
    normals_of_words_reference,
)
from dpmf.streams import mix

STREAMS = mix(np.arange(64, dtype=np.uint64))


@pytest.mark.parametrize("count", [32, 64, 1 << 16])
def test_kernel_equals_the_reference(count: int) -> None:
    for stream in STREAMS[:3]:
        out = np.full(count + 48, 7.0, np.float32)
        normal_row(stream, 16, count, out)
        np.testing.assert_allclose(out[16 : 16 + count], normal_row_reference(stream, count), atol=2e-5)
        assert (out[:16] == 7).all()
        assert (out[16 + count :] == 7).all()


def test_normal_numbers_of_given_words_equal_the_reference() -> None:
    words = np.random.default_rng(3).integers(0, 1 << 32, 1 << 16, dtype=np.uint32)
    out = np.empty(len(words), np.float32)
    normals_of_words(words.view(np.float32), out)
    np.testing.assert_allclose(out, normals_of_words_reference(words), atol=2e-5)
    assert stats.kstest(out, "norm").pvalue > 1e-3


def test_numbers_are_normal_and_do_not_depend_on_each_other() -> None:
    drawn = np.concatenate([normal_row_reference(stream, 1 << 14) for stream in STREAMS])
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    lines = drawn.reshape(-1, 32)
    product = lines.T @ lines / len(lines)  # numbers of one pair of lines, the two of one transform among them
    assert np.abs(product - np.eye(32)).max() < 5 * np.sqrt(2 / len(lines))
    squares = (lines[:, :16] ** 2 - 1) * (lines[:, 16:] ** 2 - 1)
    assert abs(squares.mean()) < 4 * 2 / np.sqrt(squares.size)
    streams = drawn.reshape(len(STREAMS), -1)
    correlations = np.corrcoef(streams) - np.eye(len(STREAMS))
    assert np.abs(correlations).max() < 5 / np.sqrt(streams.shape[1])


def test_a_table_has_variance_one_in_every_column_and_begins_again_after_its_end() -> None:
    table = normal_table(np.random.default_rng(1), 5000, 480)
    lines = table.reshape(-1, 16)
    assert len(lines) == 313 + 30
    assert table.ctypes.data % 64 == 0
    np.testing.assert_allclose((lines[:313].astype(np.float64) ** 2).mean(axis=0), 1, rtol=1e-6)
    np.testing.assert_array_equal(lines[313:], lines[:30])
    short = normal_table(np.random.default_rng(1), 40, 160).reshape(-1, 16)
    np.testing.assert_array_equal(short[3:], np.resize(short[:3], (10, 16)))
