"""Predictions and best items against references, ties and shortages included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf.kernels.best_items import find_best_items_reference
from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.scores import (
    NEVER,
    keep_best,
    predict_pairs,
    predict_pairs_reference,
    score_tile,
    score_tile_reference,
    skip_full_groups,
    skip_full_groups_reference,
)

NOTHING_EXCLUDED = CsrPattern(np.zeros(2, np.int64), np.zeros(0, np.int32))


def factors(n: int, n_factors: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(0, 1, (n, n_factors)).astype(np.float32)


def best(scores: NDArray[np.float32], k: int) -> tuple[list[int], list[float]]:
    items, kept = np.empty(k, np.int32), np.empty(k, np.float32)
    keep_best(scores, items, kept)
    return items.tolist(), kept.tolist()


@pytest.mark.parametrize("n_factors", [1, 5, 64])
def test_predictions_equal_the_reference(n_factors: int) -> None:
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 20, 200).astype(np.int32), rng.integers(0, 30, 200).astype(np.int32)
    U, V = factors(20, n_factors, 1), factors(30, n_factors, 2)
    b, c = factors(20, 1, 3).ravel(), factors(30, 1, 4).ravel()
    out, part = np.full(200, 7, np.float32), slice(10, 190)
    predict_pairs(users[part], items[part], U, V, b, c, 3.5, out[part])
    expected = predict_pairs_reference(users, items, U, V, b, c, 3.5)
    np.testing.assert_allclose(out[part], expected[part], rtol=1e-4, atol=1e-4)
    assert (out[:10] == 7).all()
    assert (out[190:] == 7).all()


@pytest.mark.parametrize("n_factors", [1, 3, 4, 7, 32])
@pytest.mark.parametrize("n_items", [1, 511, 513, 1100])
def test_scores_equal_the_matrix_product(n_items: int, n_factors: int) -> None:
    u, V, c = factors(1, n_factors, 1)[0], factors(n_items, n_factors, 2), factors(n_items, 1, 3).ravel()
    scores = np.empty(n_items, np.float32)
    greatest = score_tile(u, np.ascontiguousarray(V.T), c, 0, scores)
    assert greatest == scores.max()
    np.testing.assert_allclose(scores, c + V.astype(np.float64) @ u, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_scores_of_a_tile_equal_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_factors = int(rng.integers(1, 10))
    u, VT, c = (rng.normal(size=shape).astype(np.float32) for shape in (n_factors, (n_factors, 50), 50))
    tile = np.empty(17, np.float32)
    greatest = score_tile(u, VT, c, 30, tile)
    np.testing.assert_allclose(tile, score_tile_reference(u, VT, c, 30, 17), rtol=1e-4, atol=1e-4)
    assert greatest == tile.max()


@given(st.lists(st.integers(0, 3), min_size=8, max_size=40), st.integers(1, 8))
def test_the_best_are_kept_with_ties_by_item_number(numbers: list[int], k: int) -> None:
    scores = np.array(numbers, np.float32)
    expected_items, expected_scores = find_best_items_reference(scores[None], NOTHING_EXCLUDED, k)
    assert best(scores, k) == (expected_items[0].tolist(), expected_scores[0].tolist())


def test_short_lists_end_in_minus_one() -> None:
    scores = np.array([1, NEVER, 3, NEVER], np.float32)
    assert best(scores, 4) == ([2, 0, -1, -1], [3.0, 1.0, float(NEVER), float(NEVER)])


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("k", [1, 6, 50])
def test_items_of_full_groups_are_skipped_as_in_the_reference(most: int, k: int) -> None:
    rng = np.random.default_rng(k)
    rows = [rng.choice(6, int(rng.integers(0, 4)), replace=False) for _ in range(40)]
    groups = CsrPattern(np.cumsum([0, *map(len, rows)]), np.concatenate(rows).astype(np.int32))
    ranking, chosen, counts = rng.permutation(40).astype(np.int32), np.full(k, -7, np.int32), np.zeros(6, np.int64)
    n_chosen = skip_full_groups(ranking, groups, most, counts, chosen)
    also, their_counts = np.full(k, -7, np.int32), np.zeros(6, np.int64)
    assert skip_full_groups_reference(ranking, groups, most, their_counts, also) == n_chosen
    assert (also.tolist(), their_counts.tolist()) == (chosen.tolist(), counts.tolist())
    expected: list[int] = []
    for item in ranking.tolist():
        full = [group for group in rows[item] if sum(group in rows[one] for one in expected) >= most]
        if not full and len(expected) < k:
            expected.append(item)
    assert chosen[:n_chosen].tolist() == expected
    assert (chosen[n_chosen:] == -7).all()
    assert counts.tolist() == [sum(group in rows[item] for item in chosen[:n_chosen]) for group in range(6)]
