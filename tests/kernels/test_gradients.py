"""Full gradient steps: the kernel against NumPy, for rows of every kind of length."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.engine.factors import factor_rows
from dpmf.kernels.csr import Csr
from dpmf.kernels.gradients import step_rows, step_rows_reference


@pytest.mark.parametrize("n_factors", [1, 16, 20, 48, 60, 70, 96, 128, 130, 300])
@pytest.mark.parametrize("noisy", [False, True])
def test_a_step_is_what_the_formula_says(n_factors: int, noisy: bool) -> None:
    rng, n_rows, n_columns = np.random.default_rng(n_factors), 30, 50
    counts = rng.integers(0, 40, n_rows)  # some rows have no ratings
    counts[0] = 0
    indptr = np.concatenate([[0], np.cumsum(counts)])
    columns = rng.integers(0, n_columns, indptr[-1]).astype(np.int32)
    values = rng.normal(size=indptr[-1]).astype(np.float32)
    rows = [factor_rows(n, n_factors) for n in (n_rows, n_columns, n_rows)]
    for one in rows:
        one[:, :n_factors] = 0.3 * rng.normal(size=(len(one), n_factors))
    own, others, before = rows
    scales, steps = rng.random(n_columns).astype(np.float32), rng.random(n_rows).astype(np.float32)
    penalties = rng.random(n_rows).astype(np.float32)
    noise = rng.normal(size=(n_rows if noisy else 0, n_factors)).astype(np.float32)
    rated = Csr(indptr, columns, values)
    expected, squared = step_rows_reference(rated, own, others, scales, steps, penalties, 0.7, noise, before)
    found, total = before.copy(), 0.0
    for start, stop in ((0, 7), (7, 8), (8, 30)):  # in any pieces
        total += step_rows(rated, start, stop, own, others, scales, steps, penalties, 0.7, noise, found)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-4)
    assert total == pytest.approx(squared, rel=1e-4)
    assert not found[:, n_factors:].any()  # columns that only fill the line stay empty
