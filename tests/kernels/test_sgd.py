"""The SGD kernel against its reference in double precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.engine.factors import factor_rows
from dpmf.kernels.sgd import sgd_block, sgd_block_reference

N_USERS, N_ITEMS, N_RATINGS = 12, 9, 400


class Problem(NamedTuple):
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    U: NDArray[np.float32]
    V: NDArray[np.float32]
    b: NDArray[np.float32]
    c: NDArray[np.float32]

    def visit(self, start: int, stop: int, *, eta: float = 0.05, lam: float = 0.1, unit: float = 2.0) -> float:
        parameters = (np.float32(one) for one in (3.4, eta, lam, unit))
        return sgd_block(self.users, self.items, self.values, start, stop, self.U, self.V, self.b, self.c, *parameters)

    def copy(self, dtype: type[np.floating]) -> list[NDArray[np.floating]]:
        return [array.astype(dtype) for array in (self.U, self.V, self.b, self.c)]


def problem(n_factors: int) -> Problem:
    rng = np.random.default_rng(n_factors)
    U, V = factor_rows(N_USERS, n_factors), factor_rows(N_ITEMS, n_factors)
    U[:, :n_factors] = rng.normal(0, 0.3, (N_USERS, n_factors))
    V[:, :n_factors] = rng.normal(0, 0.3, (N_ITEMS, n_factors))
    return Problem(
        rng.integers(0, N_USERS, N_RATINGS).astype(np.int32),
        rng.integers(0, N_ITEMS, N_RATINGS).astype(np.int32),
        rng.uniform(1, 5, N_RATINGS).astype(np.float32),
        U, V, rng.normal(0, 0.1, N_USERS).astype(np.float32), rng.normal(0, 0.1, N_ITEMS).astype(np.float32),
    )  # fmt: skip


@pytest.mark.parametrize("n_factors", [1, 10, 16, 40])
def test_kernel_equals_the_reference_in_double_precision(n_factors: int) -> None:
    ours = problem(n_factors)
    U, V, b, c = ours.copy(np.float64)
    expected = sgd_block_reference(ours.users, ours.items, ours.values, 0, N_RATINGS, U, V, b, c, 3.4, 0.05, 0.1, 2.0)
    squared = ours.visit(0, N_RATINGS)
    assert squared == pytest.approx(expected, rel=1e-4)
    for got, wanted in zip((ours.U, ours.V, ours.b, ours.c), (U, V, b, c), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)


def test_padded_columns_stay_exactly_zero() -> None:
    ours = problem(10)
    ours.visit(0, N_RATINGS)
    assert ours.U.shape[1] == 16
    assert not ours.U[:, 10:].any()
    assert not ours.V[:, 10:].any()


def test_only_the_ratings_of_the_part_are_visited() -> None:
    ours, before = problem(8), problem(8)
    ours.visit(100, 105)
    visited = np.isin(np.arange(N_USERS), ours.users[100:105])
    assert (ours.b != before.b).tolist() == visited.tolist()
    assert (ours.U != before.U).any(axis=1).tolist() == visited.tolist()


def test_an_empty_block_changes_nothing() -> None:
    ours, before = problem(8), problem(8)
    assert ours.visit(7, 7) == 0.0
    for got, wanted in zip(ours[3:], before[3:], strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_one_step_by_hand() -> None:
    users, items, values = np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([5], np.float32)
    U, V = factor_rows(1, 1), factor_rows(1, 1)
    U[0, 0], V[0, 0] = 1.0, 2.0
    one = Problem(users, items, values, U, V, np.zeros(1, np.float32), np.zeros(1, np.float32))
    # e = 5 - 3.4 - 1·2 = -0.4; both factors move from their old values, in units of 2.
    assert one.visit(0, 1, eta=0.1, lam=0.5) == pytest.approx(0.16, rel=1e-5)
    assert one.U[0, 0] == pytest.approx(1 + 0.1 * (-0.4 * 2 / 2 - 0.5 * 1), rel=1e-6)
    assert one.V[0, 0] == pytest.approx(2 + 0.1 * (-0.4 * 1 / 2 - 0.5 * 2), rel=1e-6)
    assert one.b[0] == pytest.approx(-0.04, rel=1e-5)
    assert one.c[0] == pytest.approx(-0.04, rel=1e-5)
