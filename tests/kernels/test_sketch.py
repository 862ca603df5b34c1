"""The count sketch: hash functions against what is said of them, and the kernels against plain NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.kernels.sketch import (
    Family,
    SketchStep,
    add_reference,
    located_reference,
    read_reference,
    read_rows,
    sketch_block,
    sketch_block_reference,
)

N_USERS, N_ITEMS = 30, 20


def family_of(depth: int, width: int, n_factors: int, biased: bool, seed: int = 0) -> Family:
    return Family.of(np.random.default_rng(seed), depth, width, n_factors, biased)


def keys_of(count: int, seed: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 1 << 64, count, np.uint64)


def many_families(key: np.uint64, other: np.uint64) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return cells and signs of two keys under many independent functions of width 7, shape (n, 2) each."""
    family = family_of(1, 7, 16 * 4000, biased=False)
    places, signs = zip(*(located_reference(family, 0, one) for one in (key, other)), strict=True)
    return np.stack([one[0] for one in places], 1), np.stack([one[0] for one in signs], 1)


@pytest.mark.parametrize("other", [8, 7 + (1 << 32), 1 << 63])
def test_any_two_keys_have_independent_cells_and_signs(other: int) -> None:
    """Every combination of two cells and two signs is as frequent as any other: a chi-squared test, fixed functions."""
    places, signs = many_families(np.uint64(7), np.uint64(other))
    kinds = ((places[:, 0] * 7 + places[:, 1]) * 2 + (signs[:, 0] > 0)) * 2 + (signs[:, 1] > 0)
    counts = np.bincount(kinds, minlength=7 * 7 * 4)
    expected = len(kinds) / len(counts)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    freedom = len(counts) - 1
    assert abs(statistic - freedom) < 4.5 * math.sqrt(2 * freedom)


def test_components_rows_users_and_items_have_functions_of_their_own() -> None:
    family = family_of(4, 1000, 16, biased=True)
    places = np.stack([located_reference(family, side, np.uint64(5))[0] for side in (0, 1)])
    assert len(np.unique(places)) > 0.95 * places.size
    assert (places // 1000 == np.arange(4)[None, :, None]).all()  # row r lives in row r


def test_reading_is_right_on_average_and_as_variable_as_the_theory_says() -> None:
    """Other components add noise of variance σ² / wk to the mean of rows, σ² being the sum of their squares."""
    errors = []
    for seed in range(300):
        family, cells, keys = family_of(2, 100, 4, False, seed), np.zeros(200), keys_of(40, seed)
        for key in keys:
            add_reference(cells, family, 0, key, np.r_[np.ones(4), np.zeros(12)])
        errors.append(read_reference(cells, family, 0, keys[0], median=False)[:4] - 1)
    expected = (40 * 4 - 1) / 200
    assert abs(np.mean(errors)) < 4 * math.sqrt(expected / 1200)
    assert np.var(errors) == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("median", [False, True])
@pytest.mark.parametrize(
    ("depth", "n_factors", "biased"), [(1, 16, True), (4, 5, True), (3, 33, False), (4, 16, False)]
)
def test_updates_are_those_of_the_reference(depth: int, n_factors: int, biased: bool, median: bool) -> None:
    rng = np.random.default_rng(1)
    family = family_of(depth, 211, n_factors, biased)
    users = np.sort(rng.integers(0, N_USERS, 200)).astype(np.uint16)
    items, codes = rng.integers(0, N_ITEMS, 200).astype(np.uint16), rng.integers(0, 5, 200).astype(np.uint8)
    table = np.arange(1, 6, dtype=np.float32)
    known = [np.zeros(1, np.float32)] * 2 if biased else [rng.normal(0, 0.2, n).astype(np.float32) for n in (30, 20)]
    cells = rng.normal(0, 0.1, depth * 211).astype(np.float32)
    exact = cells.astype(np.float64)
    step = SketchStep.of(3.0, 0.02, 0.05, most=2.0)
    arguments: list[Any] = [users, items, codes, table, keys_of(N_USERS, 2), keys_of(N_ITEMS, 3), *known]
    fast: Callable[..., float] = sketch_block
    plain: Callable[..., float] = sketch_block_reference
    squared = fast(*arguments, cells, family, median, step)
    assert squared == pytest.approx(plain(*arguments, exact, family, median, step), rel=1e-4)
    np.testing.assert_allclose(cells, exact, atol=2e-5)
    rows, keys = np.empty((N_ITEMS, family.n_components), np.float32), keys_of(N_ITEMS, 3)
    read_rows(keys, 1, cells, family, median, 0, N_ITEMS, rows)
    for place, key in enumerate(keys):
        np.testing.assert_allclose(rows[place], read_reference(exact, family, 1, key, median=median), atol=2e-5)


def test_a_rating_beyond_the_threshold_changes_nothing() -> None:
    family, keys = family_of(2, 50, 4, True), keys_of(2, 0)
    cells = np.full(100, 0.01, np.float32)
    before = cells.copy()
    one, table, zero = np.zeros(1, np.uint8), np.array([5.0], np.float32), np.zeros(1, np.float32)
    for most, same in ((3.8, True), (4.2, False)):
        step = SketchStep.of(3.0, 0.1, 0.1, most)  # e is about 2
        sketch_block(one, one, one, table, keys, keys, zero, zero, cells, family, False, step)
        assert (cells == before).all() == same


def test_no_ratings_change_nothing() -> None:
    none, table, zero = np.zeros(0, np.uint8), np.ones(1, np.float32), np.zeros(1, np.float32)
    cells, keys, step = np.ones(100, np.float32), keys_of(1, 0), SketchStep.of(3.0, 0.1, 0.1, math.inf)
    assert (
        sketch_block(none, none, none, table, keys, keys, zero, zero, cells, family_of(2, 50, 4, True), False, step)
        == 0
    )
    assert (cells == 1).all()
