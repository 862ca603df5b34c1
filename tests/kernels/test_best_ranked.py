"""The best items by a ranking against a sort of all scores: pairs, ties, filters, people nothing is known of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.kernels.best_ranked import find_best_ranked
from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.kernels.scores import NEVER
from dpmf.model import Ranking

N_PEOPLE = 15


def rows(n_items: int, most: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return some items for everybody, and none for the first."""
    return [np.sort(rng.choice(n_items, rng.integers(0, most) if i else 0, replace=False)) for i in range(N_PEOPLE)]


def pattern(of_people: list[NDArray[np.int64]]) -> CsrPattern:
    return CsrPattern(np.cumsum([0, *map(len, of_people)]), np.concatenate(of_people).astype(np.int32))


def sorted_slowly(
    ranking: Ranking, owned: Csr, allowed: NDArray[np.bool_], seen: list[NDArray[np.int64]], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return lists and scores by a stable sort of everybody's scores."""
    items, kept = np.full((N_PEOPLE, k), -1), np.full((N_PEOPLE, k), float(NEVER))
    for i, scores in enumerate(ranking.scores_of_people(owned, 0, N_PEOPLE)):
        order = ranking.order[np.argsort(-scores[ranking.order], kind="stable")]
        best = [item for item in order.tolist() if allowed[item] and item not in seen[i]][:k]
        items[i, : len(best)], kept[i, : len(best)] = best, scores[best]
    return items, kept


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("n_items", "k"), [(3, 5), (90, 10), (400, 300)])
def test_lists_equal_a_sort_of_all_scores(ranking_of: Callable[..., Ranking], n_items: int, k: int, tied: bool) -> None:
    rng = np.random.default_rng(n_items)
    changes = {}
    if tied:  # scores are small whole numbers, and many items are equally popular
        n_head = -(-2 * n_items // 3)
        ones = rng.integers(0, 2, (2, n_head, 3)).astype(np.float32)
        changes = {"left": ones[0], "right": ones[1], "popularity": rng.integers(0, 4, n_items).astype(np.float32)}
    ranking = ranking_of(n_items, n_pairs=0 if tied else 3, **changes)
    own, seen = rows(n_items, min(n_items, 40), rng), rows(n_items, n_items, rng)
    rated = pattern(own)
    owned = ranking.restrict(Csr(*rated, np.ones(len(rated.items), np.float32)))
    allowed = rng.random(n_items) < 0.8
    items, scores = np.empty((N_PEOPLE, k), np.int32), np.empty((N_PEOPLE, k), np.float32)
    for start, stop in ((0, 4), (4, N_PEOPLE)):
        find_best_ranked(owned, ranking.in_order, allowed, pattern(seen), start, stop, items, scores)
    expected_items, expected_scores = sorted_slowly(ranking, owned, allowed, seen, k)
    np.testing.assert_array_equal(items, expected_items)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-4, atol=1e-4)


def test_popularity_alone_ranks_everybody_alike() -> None:
    ranking = Ranking.by_popularity(np.array([1, 5, 3], np.float32))
    nothing = Csr(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    items, scores = np.empty((1, 2), np.int32), np.empty((1, 2), np.float32)
    find_best_ranked(nothing, ranking.in_order, np.ones(3, np.bool_), nothing.pattern, 0, 1, items, scores)
    assert (items.tolist(), scores.tolist()) == ([[1, 2]], [[5.0, 3.0]])
