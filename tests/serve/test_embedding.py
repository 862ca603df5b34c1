"""The layout of the map: neighbours stay neighbours, the same in every run, and sums over all pairs are right."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.model.learnt import Learnt
from dpmf.serve.embedding import _principal, _repel, embed
from dpmf.serve.map import map_of

from .samples import random_release


def groups(n: int, count: int, noise: float = 0.6) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return points around random centres in 12 dimensions, and of which centre they are."""
    rng = np.random.default_rng(5)
    group = np.arange(n) % count
    return rng.normal(size=(count, 12))[group] + noise * rng.normal(size=(n, 12)), group


def purity(places: NDArray[np.float64], group: NDArray[np.intp]) -> float:
    """Return which share of the five nearest are of the same group."""
    squares = np.square(places[:, None] - places).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    return float((group[np.argsort(squares, axis=1)[:, :5]] == group[:, None]).mean())


def test_groups_that_two_components_mix_are_apart() -> None:
    rows, group = groups(400, 16)
    assert purity(_principal(rows), group) < 0.6
    assert purity(embed(rows), group) > 0.9


def test_the_same_rows_have_the_same_places() -> None:
    rows, _ = groups(150, 5)
    np.testing.assert_array_equal(embed(rows), embed(rows.copy()))


@pytest.mark.parametrize("reach", [0.01, 3.0, 20.0])
def test_repulsion_is_that_of_all_pairs(reach: float) -> None:
    places = np.random.default_rng(1).uniform(-reach, reach, (300, 2))
    difference = places[:, None] - places
    q = 1 / (1 + np.square(difference).sum(axis=2))
    push, total = _repel(places)
    assert total == pytest.approx(q.sum() - 300, rel=0.01)
    exact = (q[:, :, None] ** 2 * difference).sum(axis=1)
    assert np.linalg.norm(push - exact) < 0.12 * np.linalg.norm(exact)


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (5, 0), (200, 1), (200, 5)])
def test_degenerate_rows_have_places(shape: tuple[int, int]) -> None:
    places = embed(np.zeros(shape))
    assert places.shape == (shape[0], 2)
    assert np.isfinite(places).all()


def test_only_items_of_which_something_is_known_have_a_place() -> None:
    chosen = np.arange(60) % 3 == 1
    learnt = Learnt(60, factors=4, pairs=0, with_factors=chosen)
    release = random_release(configuration={"method": "als", "learnt": learnt.record()})
    numbers = np.frombuffer(base64.b64decode(map_of(release)), "<u2").reshape(60, 2)
    np.testing.assert_array_equal((numbers != 65535).all(axis=1), chosen)
    assert numbers[chosen].min() == 0
    nothing = replace(release, item_factors=np.zeros((60, 4), np.float32))
    assert (np.frombuffer(base64.b64decode(map_of(nothing)), "<u2") != 65535).all()


def test_items_that_only_traits_are_known_of_have_no_place_beside_measured_ones() -> None:
    measured = np.arange(60) % 3 == 1
    factors = np.where(measured[:, None] | np.array([False, False, True, True]), np.float32(0.5), np.float32(0))
    learnt = Learnt(60, factors=2, pairs=0, traits=2, with_factors=np.ones(60, np.bool_))
    release = random_release(configuration={"method": "als", "learnt": learnt.record()}, item_factors=factors)
    numbers = np.frombuffer(base64.b64decode(map_of(release)), "<u2").reshape(60, 2)
    np.testing.assert_array_equal((numbers != 65535).all(axis=1), measured)
    factors[:, :2] = 0  # nothing is measured: then traits are all there is
    alone = replace(release, item_factors=factors)
    assert (np.frombuffer(base64.b64decode(map_of(alone)), "<u2") != 65535).all()
