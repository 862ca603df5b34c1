"""Peers rank as their definitions say, and nobody is recommended what they have."""

from __future__ import annotations

import numpy as np
import pytest

from dpmf.evaluation import peers
from dpmf.evaluation.implicit_peer import implicit_ranker
from dpmf.evaluation.new_users import NewUsers, measure_ranker, split_users
from dpmf.evaluation.peers import (
    count_items,
    ease_ranker,
    peer_names,
    popularity_ranker,
    positives_of,
    private_counts,
    train_peer,
)
from dpmf.kernels.csr import CsrPattern
from dpmf.privacy import Budget
from dpmf.ratings import Ratings

LIKED = CsrPattern(np.array([0, 2, 4, 5, 8]), np.array([0, 1, 0, 1, 3, 0, 1, 3], np.int32))


def dense(liked: CsrPattern, n_items: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    matrix = np.zeros((len(liked.indptr) - 1, n_items))
    matrix[np.repeat(np.arange(len(matrix)), np.diff(liked.indptr)), liked.items] = 1
    return matrix


def test_popularity_is_the_same_list_for_everybody_without_what_they_have() -> None:
    counts = count_items(LIKED, 5)
    assert counts.tolist() == [3, 3, 0, 2, 0]
    lists = popularity_ranker(counts, 1)(np.array([0, 0, 2]), np.array([0, 3], np.int32), np.ones(2, np.float32), 4)
    assert lists.tolist() == [[0, 1, 3, 2], [1, 2, 4, -1]]


@pytest.mark.parametrize("most", [4_000, 6])
def test_ease_is_the_closed_form(small_ratings: Ratings, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "MOST_ITEMS", most)
    liked = positives_of(small_ratings, 4.0)
    owned, n_items = dense(liked, small_ratings.n_items), small_ratings.n_items
    assert liked.items.tolist() == small_ratings.items[small_ratings.values >= 4].tolist()
    head = np.argsort(-owned.sum(axis=0), kind="stable")[:most]
    inverse = np.linalg.inv(owned[:, head].T @ owned[:, head] + 20.0 * np.eye(len(head)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    indptr, items = np.array([0, 2, 2, 5]), np.array([0, 7, 1, 2, 3], np.int32)
    known = dense(CsrPattern(indptr, items), n_items)
    scores = np.full(known.shape, -np.inf)
    scores[:, head] = known[:, head] @ weights
    scores[known > 0] = -np.inf
    lists = ease_ranker(liked, n_items, penalty=20.0, n_threads=2)(indptr, items, np.ones(5, np.float32), 10)
    for person in (0, 2):  # the other one has nothing, so that all scores are equal
        found = lists[person][lists[person] >= 0]
        assert len(found) == min(10, np.isfinite(scores[person]).sum())
        best = np.sort(scores[person][np.isfinite(scores[person])])[::-1][: len(found)]
        assert scores[person][found] == pytest.approx(best, abs=1e-5)


def test_private_counts_are_bounded_sums_with_noise_of_the_whole_budget() -> None:
    exact = np.array([2 / np.sqrt(2) + 1 / np.sqrt(3)] * 2 + [0.0, 1 + 1 / np.sqrt(3), 0.0])
    counts = np.tile(np.diff(LIKED.indptr), 10_000)
    many = CsrPattern(np.concatenate([[0], np.cumsum(counts)]), np.tile(LIKED.items, 10_000))
    assert private_counts(many, 5, Budget(1.0)) / 10_000 == pytest.approx(exact, abs=0.01)
    wide = CsrPattern(np.array([0, 1]), np.array([0], np.int32))
    spread = {
        how: float(np.std(private_counts(wide, 20_000, Budget(1.0, neighbours=how))))
        for how in ("add-remove", "replace")
    }
    assert spread["add-remove"] == pytest.approx(4.2248, rel=0.03)  # what (1, 1e-6)-DP takes for sensitivity 1
    assert spread["replace"] == pytest.approx(4.2248 * np.sqrt(2), rel=0.03)


def test_all_peers_find_something(small_ratings: Ratings) -> None:
    train, people = split_users(small_ratings, NewUsers(share=0.3, seed=1))
    liked = positives_of(train, 4.0)
    popularity = count_items(liked, train.n_items)
    found = {
        name: measure_ranker(
            train_peer(name, liked, train.n_items, budget=Budget(5.0), n_threads=1), people, popularity
        )
        for name in peer_names(with_budget=True)
        if name != peers.IMPLICIT
    }
    assert list(found) == ["popular", "private-popular", "exact-ease"]
    assert all(figures["recall@20"] > 0 for figures in found.values())  # type: ignore[operator]


def test_implicit_ranks_where_it_is_installed(small_ratings: Ratings) -> None:
    pytest.importorskip("implicit")
    train, people = split_users(small_ratings, NewUsers(share=0.3, seed=1))
    lists = implicit_ranker(positives_of(train, 4.0), train.n_items, 1)(*people.known, 5)
    assert lists.shape == (len(people), 5)
    for row, items in enumerate(lists.tolist()):
        assert not set(items) & set(people.known.items[people.known.indptr[row] : people.known.indptr[row + 1]])
