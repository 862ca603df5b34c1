"""Gradients with respect to cells: what is added, and that nobody adds more than the bound, however items collide."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.kernels.csr import Csr
from dpmf.kernels.sketch import Family, locate_rows, located_reference
from dpmf.kernels.sketch_gradients import add_sketched_gradients, add_sketched_gradients_reference

N_ITEMS, K, STEPS, HEIGHT = 6, 2, 1e9, 0.3
KEYS = np.arange(N_ITEMS, dtype=np.uint64)
odd = st.floats(width=32) | st.floats(-5, 5, width=32)
rows = st.lists(st.tuples(st.integers(-2, N_ITEMS + 2), odd), max_size=20)


def layout(depth: int, width: int) -> tuple[NDArray[np.uint32], NDArray[np.float32], int]:
    family = Family.of(np.random.default_rng(depth * width), depth, width, K, True)
    return *locate_rows(KEYS, 1, family, K), depth * width


def added(
    items: list[int], values: list[float], numbers: list[float], share: float, clip: float, depth: int, width: int
) -> NDArray[np.int64]:
    places, signs, n_cells = layout(depth, width)
    part = np.array(numbers, np.float32)
    V, c, b, U = part[:12].reshape(N_ITEMS, K), part[12:18], part[18:19], part[19:21].reshape(1, K)
    sums, shares = np.zeros(n_cells, np.int64), np.array([share])
    rated = Csr(np.array([0, len(items)]), np.array(items, np.int32), np.array(values, np.float32))
    add_sketched_gradients(rated, 0, 1, V, c, b, U, shares, HEIGHT, clip, STEPS, places, signs, sums)
    return sums


@given(
    rows,
    st.lists(odd, min_size=21, max_size=21),
    st.floats(),
    st.sampled_from([(1, 1), (1, 3), (4, 1), (2, 5), (4, 40)]),
)
@settings(max_examples=300, deadline=None)
def test_nobody_adds_more_than_their_share_of_the_clip(
    ratings: list[tuple[int, float]], numbers: list[float], share: float, shape: tuple[int, int]
) -> None:
    """Not finite, unsorted, repeated, outside the catalogue, and in tables so small that everything collides."""
    items, values = [one for one, _ in ratings], [value for _, value in ratings]
    for part in (share, 1.0):
        sums = added(items, values, numbers, part, 2.0, *shape)
        most = 2.0 * part * STEPS if 0 <= part <= 1 else 0.0
        assert sum(int(one) ** 2 for one in sums) <= most**2


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 3), (4, 50)])
@pytest.mark.parametrize("clip", [0.5, 1000.0])
def test_what_is_added_is_the_gradient_with_respect_to_cells(shape: tuple[int, int], clip: float) -> None:
    rng = np.random.default_rng(3)
    numbers, items, values = rng.normal(0, 1, 21).astype(np.float32), [0, 2, 3, 5], [1.0, -2.0, 2.0, 0.5]
    places, signs, n_cells = layout(*shape)
    of_items, b, u = (numbers[:12].reshape(N_ITEMS, K), numbers[12:18]), float(numbers[18]), numbers[19:21]
    expected = add_sketched_gradients_reference(
        np.array(items), np.array(values), *of_items, b, u, 0.5, HEIGHT, clip, places, signs, n_cells
    )
    sums = added(items, values, numbers.tolist(), 0.5, clip, *shape)
    np.testing.assert_allclose(sums / STEPS, expected, rtol=1e-5, atol=1e-8)
    if clip == 0.5:
        assert math.sqrt(sum(int(one) ** 2 for one in sums)) == pytest.approx(0.25 * STEPS, rel=1e-5)


def test_the_gradient_is_that_of_the_squared_error_read_from_the_cells() -> None:
    """Half the derivative of Σ e² by finite differences, times the number of rows, because reading takes their mean."""
    depth, width, rng = 3, 4, np.random.default_rng(5)
    places, signs, n_cells = layout(depth, width)
    cells, u, b = rng.normal(0, 1, n_cells), rng.normal(0, 1, K), 0.2
    items, values = np.array([0, 1, 4]), np.array([1.0, -1.0, 2.0])

    def read(table: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((signs * table[places]).reshape(N_ITEMS, depth, K + 1).mean(1))

    def loss(table: NDArray[np.float64]) -> float:
        parts = read(table)[items]
        return float(((values - b - HEIGHT * parts[:, K] - parts[:, :K] @ u) ** 2).sum())

    slopes = [(loss(cells + h) - loss(cells - h)) / 2e-5 for h in 1e-5 * np.eye(n_cells)]
    parts = read(cells)
    gradient = add_sketched_gradients_reference(
        items, values, parts[:, :K], HEIGHT * parts[:, K], b, u, 1.0, HEIGHT, 1e9, places, signs, n_cells
    )
    np.testing.assert_allclose(gradient, -depth * np.array(slopes) / 2, atol=1e-6)


def test_components_are_found_where_the_family_puts_them() -> None:
    family = Family.of(np.random.default_rng(0), 3, 50, K, True)
    places, signs = locate_rows(KEYS, 1, family, K)
    for item, key in enumerate(KEYS):
        where, sign = located_reference(family, 1, key)
        np.testing.assert_array_equal(places[item].reshape(3, K + 1), where[:, [0, 1, 16]])
        np.testing.assert_array_equal(signs[item].reshape(3, K + 1), sign[:, [0, 1, 16]])
