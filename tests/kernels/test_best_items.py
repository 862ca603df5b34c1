"""The best items of people against a search through all scores: whole and partial tiles, ties, shortages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.kernels.best_items import find_best_items, find_best_items_reference
from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.scores import NEVER
from dpmf.kernels.tiles import TILE, pack_items


def normal(shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def some_items(n_people: int, n_items: int, seed: int) -> CsrPattern:
    """Return for every person some items, none or nearly all of them."""
    rng = np.random.default_rng(seed)
    rows = [np.sort(rng.choice(n_items, rng.integers(0, n_items), replace=False)) for _ in range(n_people)]
    return CsrPattern(np.cumsum([0, *map(len, rows)]), np.concatenate(rows).astype(np.int32))


def found(
    U: NDArray[np.float32], V: NDArray[np.float32], c: NDArray[np.float32], excluded: CsrPattern, k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    items, scores = np.empty((len(U), k), np.int32), np.empty((len(U), k), np.float32)
    find_best_items(U, pack_items(V), c, excluded, 0, len(U), items, scores)
    return items, scores


@pytest.mark.parametrize("n_factors", [0, 1, 7, 64])
@pytest.mark.parametrize(("n_people", "n_items"), [(1, 40), (6, TILE), (13, 3 * TILE + 1), (20, 5 * TILE)])
def test_best_items_equal_those_of_all_scores(n_people: int, n_items: int, n_factors: int) -> None:
    U, V, c = normal((n_people, n_factors), 5), normal((n_items, n_factors), 6), normal((n_items,), 7)
    excluded = some_items(n_people, n_items - 9, 8)
    items, scores = found(U, V, c, excluded, 10)
    expected_items, expected_scores = find_best_items_reference(U @ V.T + c, excluded, 10)
    np.testing.assert_array_equal(items, expected_items)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-4, atol=1e-4)


@given(st.integers(1, 9), st.integers(1, 3 * TILE), st.integers(1, 20), st.integers(0, 3), st.integers(0, 99))
def test_ties_go_to_the_smaller_item_and_short_lists_end_in_minus_one(
    n_people: int, n_items: int, k: int, most: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    U, V = np.ones((n_people, 1), np.float32), rng.integers(0, most + 1, (n_items, 1)).astype(np.float32)
    c = np.where(rng.random(n_items) < 0.2, 2 * NEVER, np.float32(0))  # some items go to nobody
    excluded = some_items(n_people, n_items, seed)
    items, scores = found(U, V, c, excluded, k)
    for i in range(n_people):
        own = set(excluded.items[excluded.indptr[i] : excluded.indptr[i + 1]].tolist())
        ranking = sorted((-V[j, 0], j) for j in range(n_items) if j not in own and c[j] == 0)[:k]
        short = k - len(ranking)
        assert items[i].tolist() == [j for _, j in ranking] + [-1] * short
        assert scores[i].tolist() == [-score for score, _ in ranking] + [float(NEVER)] * short


def test_a_list_has_the_same_bits_whoever_else_is_served() -> None:
    U, V, c, excluded = normal((31, 33), 1), normal((500, 33), 2), normal((500,), 3), some_items(31, 400, 4)
    items, scores = found(U, V, c, excluded, 12)
    parts, part_scores = np.full((31, 12), -7, np.int32), np.zeros((31, 12), np.float32)
    for start, stop in ((2, 3), (3, 14), (14, 31)):
        find_best_items(U, pack_items(V), c, excluded, start, stop, parts, part_scores)
    np.testing.assert_array_equal(parts[2:], items[2:])
    np.testing.assert_array_equal(part_scores[2:], scores[2:])
    assert (parts[:2] == -7).all()  # people before `start` are not touched


def test_packed_items_are_padded_with_zeros() -> None:
    V = normal((TILE + 2, 3), 0)
    tiles = pack_items(V)
    assert tiles.shape == (2, 3, TILE)
    np.testing.assert_array_equal(tiles.transpose(0, 2, 1).reshape(-1, 3)[: len(V)], V)
    assert not tiles[1, :, 2:].any()
