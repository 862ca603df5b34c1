"""The transposition of ratings against NumPy, piece by piece."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.kernels.csr import Csr
from dpmf.kernels.transpose import (
    count_columns,
    count_columns_reference,
    scatter_pattern,
    scatter_rows,
    transpose_reference,
)

N_ROWS, N_COLUMNS = 30, 12


@pytest.fixture
def by_row() -> Csr:
    rng = np.random.default_rng(0)
    keep = rng.random((N_ROWS, N_COLUMNS)) < 0.3
    keep[4], keep[:, 7] = False, False
    rows, columns = (where.astype(np.int32) for where in np.nonzero(keep))
    return Csr(np.searchsorted(rows, np.arange(N_ROWS + 1)), columns, rng.random(len(rows)).astype(np.float32))


def test_two_pieces_make_the_transposed_ratings(by_row: Csr) -> None:
    half = by_row.indptr[17]
    counts = np.zeros((2, N_COLUMNS), np.int64)
    for piece, part in enumerate((by_row.items[:half], by_row.items[half:])):
        count_columns(part, counts[piece])
        assert (counts[piece] == count_columns_reference(part, N_COLUMNS)).all()
    starts, their_rows, their_values = transpose_reference(by_row, N_COLUMNS)
    places = np.array([starts[:-1], starts[:-1] + counts[0]])
    found_rows, found_values = np.empty_like(by_row.items), np.empty_like(by_row.values)
    scatter_rows(by_row, 17, N_ROWS, places[1], found_rows, found_values)
    scatter_rows(by_row, 0, 17, places[0], found_rows, found_values)
    assert (found_rows == their_rows).all()
    assert (found_values == their_values).all()


def test_the_pattern_alone_is_transposed_like_the_ratings(by_row: Csr) -> None:
    starts, their_rows, _ = transpose_reference(by_row, N_COLUMNS)
    places, found = starts[:-1].copy(), np.full_like(by_row.items, -1)
    scatter_pattern(by_row.pattern, places, found)
    np.testing.assert_array_equal(found, their_rows)
    np.testing.assert_array_equal(places, starts[1:])  # every column is full
