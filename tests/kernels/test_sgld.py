"""The Langevin kernels against their references in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.engine.factors import factor_rows
from dpmf.kernels.jit import kernel
from dpmf.kernels.langevin import pay
from dpmf.kernels.normals import normal_table
from dpmf.kernels.sgld import Dynamics, Side, drawn_per_row, settle, sgld_block
from dpmf.kernels.sgld_reference import (
    block_noise_reference,
    settle_reference,
    settling_noise_reference,
    sgld_block_reference,
)

N_USERS, N_ITEMS, N_RATINGS = 31, 23, 401
TABLE = np.arange(-2.0, 2.5, 0.5, dtype=np.float32)
START, KEY = 1000, np.uint64(77)
# Limits so narrow that a good part of the predictions is beyond them.
DYNAMICS = Dynamics.of(0.03, 0.8, 1e-4, 2e-4, 0.3, 0.2, -0.4, 0.5)
FRESH = np.zeros(0, np.float32)


def side(n_rows: int, K: int, rng: np.random.Generator) -> Side:
    factors = factor_rows(n_rows, K)
    factors[:, :K] = rng.normal(0, 0.5 / K**0.25, (n_rows, K))
    prior = np.zeros(factors.shape[1], np.float32)
    prior[:K] = rng.uniform(0.5, 3, K)
    return Side(factors, rng.normal(0, 0.2, n_rows).astype(np.float32), rng.integers(0, START, n_rows), prior)


def in_double(one: Side, K: int) -> Side:
    factors, biases, clocks, prior = one
    return Side(
        factors[:, :K].astype(np.float64), biases.astype(np.float64), clocks.copy(), prior[:K].astype(np.float64)
    )


def mask_of(K: int, width: int) -> NDArray[np.float32]:
    return (np.arange(width) < K).astype(np.float32)


def gaussians_for(source: str, width: int) -> NDArray[np.float32]:
    return FRESH if source == "fresh" else normal_table(np.random.default_rng(5), 4096, drawn_per_row(width))


@kernel
def paid(row: Any, noise: Any, prior: Any, mask: Any, sd: Any, most: Any) -> None:
    pay(row, 0, 48, noise, 16, prior, mask, sd, most, most)


def block(rng: np.random.Generator, count: int = N_RATINGS) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    pairs = np.sort(rng.choice(N_USERS * N_ITEMS, count, replace=False))
    users, items = (one.astype(np.uint16) for one in np.divmod(pairs, N_ITEMS))
    return users, items, rng.integers(0, len(TABLE), count).astype(np.uint8)


# One width for every way the rows are handled: unrolled (1 to 4 lines) and in loops with and without a rest.
@pytest.mark.parametrize("patience", [0, 12])
@pytest.mark.parametrize("source", ["table", "fresh"])
@pytest.mark.parametrize("K", [1, 10, 16, 32, 48, 64, 80, 96, 128, 144, 256, 400])
def test_kernel_equals_the_reference_in_double_precision(K: int, source: str, patience: int) -> None:
    rng = np.random.default_rng(K)
    users, items, ratings = side(N_USERS, K, rng), side(N_ITEMS, K, rng), block(rng)
    weights, width = rng.uniform(0, 2, N_USERS).astype(np.float32), users.factors.shape[1]
    gaussians = gaussians_for(source, width)
    noise = block_noise_reference(N_RATINGS, K, width, gaussians, START, KEY)
    expected = in_double(users, K), in_double(items, K)
    dynamics = DYNAMICS._replace(patience=np.float32(patience))
    squared = sgld_block_reference(*ratings, TABLE, *expected, weights, dynamics, noise, START)
    got = sgld_block(*ratings, TABLE, users, items, weights, mask_of(K, width), dynamics, gaussians, START, KEY)
    assert got == pytest.approx(squared, rel=1e-4)
    for ours, theirs in zip((users, items), expected, strict=True):
        np.testing.assert_allclose(ours.factors[:, :K], theirs.factors, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(ours.biases, theirs.biases, rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(ours.clocks, theirs.clocks)
        assert (ours.clocks >= START).all()
        assert not ours.factors[:, K:].any()


@pytest.mark.parametrize("source", ["table", "fresh"])
@pytest.mark.parametrize("K", [1, 16, 31, 64])
def test_settling_equals_the_reference_in_double_precision(K: int, source: str) -> None:
    ours = side(N_USERS, K, np.random.default_rng(K))
    theirs, width = in_double(ours, K), ours.factors.shape[1]
    gaussians = gaussians_for(source, width)
    noise = settling_noise_reference(N_USERS, K, width, gaussians, 40, KEY)
    settle_reference(theirs, 1e-4, 0.3, 2e-4, noise, START)
    settle(ours, np.float32(0.3), mask_of(K, width), DYNAMICS, gaussians, START, 40, KEY)
    np.testing.assert_allclose(ours.factors[:, :K], theirs.factors, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.biases, theirs.biases, rtol=1e-4, atol=1e-5)
    assert not ours.clocks.any()
    assert not ours.factors[:, K:].any()


@pytest.mark.parametrize("largest", [1e-4, 0.124, 0.126, 0.4, 1.9])
def test_pull_and_noise_are_exact_to_the_last_digits_however_long_a_row_has_waited(largest: float) -> None:
    rng = np.random.default_rng(8)
    start, noise = rng.normal(0, 1, 37).astype(np.float32), rng.normal(0, 1, 64).astype(np.float32)
    prior = (np.arange(48) < 37) * rng.uniform(0, 1, 48).astype(np.float32)
    prior[5] = 1
    row, mask, most = np.append(start, np.zeros(11, np.float32)), mask_of(37, 48), np.float32(largest)
    paid(row, noise, prior, mask, np.float32(0.7), most)
    x = np.float64(most) * prior[:37]
    expected = (1 - x) * start + np.float64(np.float32(0.7)) * np.sqrt(1 - x / 2) * noise[16 : 16 + 37]
    np.testing.assert_allclose(row[:37], expected, rtol=0, atol=5e-7)
    assert not row[37:].any()


def test_a_prediction_beyond_the_limits_moves_nothing() -> None:
    """Beyond them the loss is flat, so only noise and priors act; here there is neither."""
    still = Dynamics.of(0.1, 1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 1.0)
    place, code = np.zeros(1, np.uint16), np.zeros(1, np.uint8)
    users, items = (side(1, 16, np.random.default_rng(0)) for _ in range(2))
    users, items = (one._replace(prior=np.zeros(16, np.float32)) for one in (users, items))
    before = [array.copy() for one in (users, items) for array in one[:2]]
    for predicted, rating, loss in ((1.5, 0.0, 1.0), (-1.5, 2.0, 9.0), (1.5, 1.0, 0.0)):
        users.biases[:] = predicted - items.biases - users.factors[0] @ items.factors[0]
        before[1] = users.biases.copy()
        squared = sgld_block(
            place, place, code, np.array([rating], np.float32), users, items, np.ones(1, np.float32),
            np.ones(16, np.float32), still, FRESH, 0, KEY,
        )  # fmt: skip
        assert squared == pytest.approx(loss, abs=1e-5)
        for array, old in zip([array for one in (users, items) for array in one[:2]], before, strict=True):
            np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize("source", ["table", "fresh"])
def test_noise_depends_on_the_step_alone(source: str) -> None:
    """Two parts of a block, one after the other, give what the whole gives."""
    rng = np.random.default_rng(3)
    users, items, weights = side(N_USERS, 40, rng), side(N_ITEMS, 40, rng), np.ones(N_USERS, np.float32)
    ratings, mask, table = block(rng), mask_of(40, 48), gaussians_for(source, 48)
    half = int(np.searchsorted(ratings[0], N_USERS // 2))  # no step has ratings of two users
    twins = [Side(*(array.copy() for array in one)) for one in (users, items)]
    sgld_block(*ratings, TABLE, users, items, weights, mask, DYNAMICS, table, START, KEY)
    for part in (slice(0, half), slice(half, N_RATINGS)):
        rated, rows, codes = (column[part] for column in ratings)
        first = START + part.start
        sgld_block(rated, rows, codes, TABLE, twins[0], twins[1], weights, mask, DYNAMICS, table, first, KEY)
    np.testing.assert_array_equal(users.factors, twins[0].factors)
    np.testing.assert_array_equal(items.factors, twins[1].factors)
