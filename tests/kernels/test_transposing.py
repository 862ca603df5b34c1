"""The transposition of ratings against NumPy, piece by piece."""

from __future__ import annotations

import numpy as np

from dpmf.kernels.transpose import count_columns, count_columns_reference, scatter_rows, transpose_reference


def test_two_pieces_make_the_transposed_ratings() -> None:
    rng = np.random.default_rng(0)
    keep = rng.random((30, 12)) < 0.3
    keep[4], keep[:, 7] = False, False
    rows, columns = (where.astype(np.int32) for where in np.nonzero(keep))
    values = rng.random(len(rows)).astype(np.float32)
    indptr = np.searchsorted(rows, np.arange(31))
    half = indptr[17]
    counts = np.zeros((2, 12), np.int64)
    for piece, part in enumerate((columns[:half], columns[half:])):
        count_columns(part, counts[piece])
        assert (counts[piece] == count_columns_reference(part, 12)).all()
    starts, their_rows, their_values = transpose_reference(indptr, columns, values, 12)
    places = np.array([starts[:-1], starts[:-1] + counts[0]])
    found_rows, found_values = np.empty_like(columns), np.empty_like(values)
    scatter_rows(indptr, columns, values, 17, 30, places[1], found_rows, found_values)
    scatter_rows(indptr, columns, values, 0, 17, places[0], found_rows, found_values)
    assert (found_rows == their_rows).all()
    assert (found_values == their_values).all()
