"""Both sides of the ratings, and the sharing out of rows."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.engine.sparse import SparseRows
from dpmf.kernels.transpose import transpose_reference
from dpmf.ratings.synthetic import make


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_transposition_is_the_same_for_any_number_of_threads(n_threads: int) -> None:
    ratings = make(40, 30)
    items = SparseRows.by_user(ratings).transposed(ratings.n_items, n_threads)
    indptr, columns, values = transpose_reference(ratings.csr, ratings.n_items)
    assert items.columns.dtype == np.int32
    assert (items.indptr == indptr).all()
    assert (items.columns == columns).all()
    assert (items.values == values).all()


def test_one_user_with_all_ratings_is_transposed_by_many_threads() -> None:
    side = SparseRows(np.array([0, 0, 9, 9]), np.arange(9, dtype=np.int32), np.ones(9, np.float32))
    assert side.transposed(9, 4).columns.tolist() == [1] * 9


def test_every_row_is_visited_once_in_tasks_of_about_equal_ratings() -> None:
    counts = np.random.default_rng(0).integers(0, 300, 5000)
    counts[17] = 500_000
    indptr = np.concatenate([[0], np.cumsum(counts)])
    side = SparseRows(indptr, np.zeros(0, np.int32), np.zeros(0, np.float32))
    visits, masses = np.zeros(5000, np.int64), []

    def work(start: int, stop: int) -> float:
        visits[start:stop] += 1
        if not start <= 17 < stop:
            masses.append(counts[start:stop].sum())
        return float(stop - start)

    assert side.visit(work, 2) == 5000
    assert (visits == 1).all()
    assert len(masses) > 20
    assert max(masses) < 50_000
