"""What a ranking is held against: popularity, exact and private, and rankings without privacy.

Peers learn from the positive ratings of the people that a release learns from, whatever the rating, and rank for
those who are held out (`dpmf.evaluation.new_users`). The figures are for the holder of the data, and so is the noise of
private popularity, which shows what a budget leaves of it: it is not that of a release.

>>> liked = CsrPattern(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32))
>>> ranker = popularity_ranker(count_items(liked, 3))
>>> ranker(np.array([0, 1]), np.array([1], np.int32), np.ones(1, np.float32), 3).tolist()
[[0, 2, -1]]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.layout import equal_masses
from dpmf.engine.threads import run_tasks, thread_count
from dpmf.evaluation.implicit_peer import implicit_ranker, is_installed
from dpmf.evaluation.new_users import Ranker
from dpmf.kernels.best_items import find_best_items
from dpmf.kernels.cooccurrence import count_pairs
from dpmf.kernels.csr import CsrPattern
from dpmf.kernels.scores import NEVER, keep_best
from dpmf.kernels.sort import kept_pointers
from dpmf.kernels.tiles import pack_items
from dpmf.privacy import Budget
from dpmf.privacy.calibration import Part, gaussian_events
from dpmf.ratings import Ratings

POPULAR, PRIVATE_POPULAR, EXACT_EASE, IMPLICIT = "popular", "private-popular", "exact-ease", "implicit-als"
"""The names of peers: popularity, the same under a budget, EASE, and the package implicit."""
MOST_ITEMS = 4_000
"""The items that EASE ranks at most, the most popular ones: its matrices have a number for each pair of them."""
_PENALTY = 500.0
_BLOCK = 1 << 22  # ratings that are counted at a time
_PEOPLE_PER_TASK = 256


def positives_of(ratings: Ratings, least: float) -> CsrPattern:
    """Return which items each person rated with `least` or more."""
    liked = ratings.values >= least
    return CsrPattern(kept_pointers(ratings.indptr, liked), ratings.items[liked])


def count_items(liked: CsrPattern, n_items: int) -> NDArray[np.int64]:
    """Return how many people like each item."""
    counts = np.zeros(n_items, np.int64)
    for begin in range(0, len(liked.items), _BLOCK):
        counts += np.bincount(liked.items[begin : begin + _BLOCK], minlength=n_items)
    return counts


def private_counts(liked: CsrPattern, n_items: int, budget: Budget) -> NDArray[np.float64]:
    """Return how popular each item is, with noise that uses up the budget.

    Everybody adds 1 / √n to each of the n items that they like, a vector of length 1, and Gaussian noise is added to
    the sum.
    """
    sums = np.zeros(n_items)
    for first, last in _blocks(liked):
        counts = np.diff(liked.indptr[first : last + 1])
        weights = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts)
        part = liked.items[liked.indptr[first] : liked.indptr[last]]
        sums += np.bincount(part, weights, minlength=n_items)
    (event,) = gaussian_events(budget, [Part("popularity", share=1, coordinates=n_items)])
    sensitivity = 1.0 if budget.neighbours == "add-remove" else math.sqrt(2)  # of vectors without negative numbers
    return sums + np.random.default_rng().normal(0, event.noise_multiplier * sensitivity, n_items)


def popularity_ranker(popularity: NDArray[Any], n_threads: int | None = None) -> Ranker:
    """Return how everybody gets the same list, of the items with the highest popularity, without what they have."""
    n_threads, offsets = thread_count(n_threads), popularity.astype(np.float32)
    tiles = pack_items(np.zeros((len(offsets), 0), np.float32))

    def rank(indptr: NDArray[np.int64], items: NDArray[np.int32], _: object, k: int) -> NDArray[np.int32]:
        n_people, known = len(indptr) - 1, CsrPattern(indptr, items)
        best = np.empty((n_people, k), np.int32)
        scores, nothing = np.empty((n_people, k), np.float32), np.zeros((n_people, 0), np.float32)

        def work(task: int) -> None:
            first, last = task * _PEOPLE_PER_TASK, min((task + 1) * _PEOPLE_PER_TASK, n_people)
            find_best_items(nothing, tiles, offsets, known, first, last, best, scores)

        run_tasks(work, -(-n_people // _PEOPLE_PER_TASK), n_threads)
        return best

    return rank


def ease_ranker(liked: CsrPattern, n_items: int, *, penalty: float = _PENALTY, n_threads: int | None = None) -> Ranker:
    """Return how EASE ranks, trained without privacy: Steck's closed form, on the `MOST_ITEMS` most popular items.

    With X the people's liked items as ones and P = (X'X + penalty · I)⁻¹, the weights are -P_ij / P_jj off the diagonal
    and 0 on it, and a person's scores are the sums of the weights of what they have. Items outside the head are
    recommended to nobody.

    Args:
        liked: what those who are learnt from like.
        n_items: the size of the catalogue.
        penalty: 500 is Steck's for MovieLens 20M, and next to the best for MovieLens 100K and 1M as well.
        n_threads: all CPUs by default.
    """
    n_threads = thread_count(n_threads)
    head = np.argsort(-count_items(liked, n_items), kind="stable")[:MOST_ITEMS].astype(np.int32)
    places = np.full(n_items, -1, np.int32)
    places[head] = np.arange(len(head), dtype=np.int32)
    weights = _weights(_within(liked, places), len(head), penalty, n_threads)

    def rank(indptr: NDArray[np.int64], items: NDArray[np.int32], _: object, k: int) -> NDArray[np.int32]:
        from scipy.sparse import csr_array

        known = _within(CsrPattern(indptr, items), places)
        ones = np.ones(len(known.items), np.float32)
        owned = csr_array((ones, known.items, known.indptr), shape=(len(indptr) - 1, len(head)))
        best = np.full((len(indptr) - 1, k), -1, np.int32)

        def work(task: int) -> None:
            first, last = task * _PEOPLE_PER_TASK, min((task + 1) * _PEOPLE_PER_TASK, len(best))
            some = owned[first:last]
            scores = some @ weights
            scores[some.nonzero()] = NEVER
            found = np.empty(min(k, len(head)), np.int32)
            highest = np.empty(len(found), np.float32)
            for row in range(last - first):
                keep_best(scores[row], found, highest)
                best[first + row, : len(found)] = np.where(found >= 0, head[found], -1)

        run_tasks(work, -(-len(best) // _PEOPLE_PER_TASK), n_threads)
        return best

    return rank


def peer_names(*, with_budget: bool) -> tuple[str, ...]:
    """Return the peers that there are: `IMPLICIT` where it is installed, `PRIVATE_POPULAR` where there is a budget."""
    names = POPULAR, PRIVATE_POPULAR, EXACT_EASE, IMPLICIT
    missing = {PRIVATE_POPULAR: not with_budget, IMPLICIT: not is_installed()}
    return tuple(name for name in names if not missing.get(name))


def train_peer(
    name: str, liked: CsrPattern, n_items: int, *, budget: Budget | None = None, n_threads: int | None = None
) -> Ranker:
    """Return how a peer ranks.

    Args:
        name: one of `peer_names`.
        liked: what those who are learnt from like.
        n_items: the size of the catalogue.
        budget: that of private popularity.
        n_threads: all CPUs by default.
    """
    if name == PRIVATE_POPULAR:
        assert budget is not None
        return popularity_ranker(private_counts(liked, n_items, budget), n_threads)
    if name == EXACT_EASE:
        return ease_ranker(liked, n_items, n_threads=n_threads)
    if name == IMPLICIT:
        return implicit_ranker(liked, n_items, n_threads)
    return popularity_ranker(count_items(liked, n_items), n_threads)


def _weights(liked: CsrPattern, n_items: int, penalty: float, n_threads: int) -> NDArray[np.float32]:
    starts = equal_masses(np.diff(liked.indptr) ** 2, n_threads)
    parts = [np.zeros((n_items, n_items), np.int32) for _ in range(n_threads)]
    run_tasks(lambda task: count_pairs(liked, starts[task], starts[task + 1], parts[task]), n_threads, n_threads)
    gram = parts[0].astype(np.float64)
    for part in parts[1:]:
        gram += part
    gram += gram.T.copy()
    np.fill_diagonal(gram, gram.diagonal() / 2 + penalty)
    inverse = np.linalg.inv(gram)
    weights = np.asarray(inverse / -inverse.diagonal(), np.float32)
    np.fill_diagonal(weights, 0)
    return weights


def _within(liked: CsrPattern, places: NDArray[np.int32]) -> CsrPattern:
    """Return the items that have a place, by their places."""
    found = places[liked.items]
    return CsrPattern(kept_pointers(liked.indptr, found >= 0), found[found >= 0])


def _blocks(liked: CsrPattern) -> Iterator[tuple[int, int]]:
    """Yield the first user of a block, and the first after it."""
    first, n_users = 0, len(liked.indptr) - 1
    while first < n_users:
        reach = int(np.searchsorted(liked.indptr, liked.indptr[first] + _BLOCK, "right")) - 1
        last = min(max(first + 1, reach), n_users)
        yield first, last
        first = last
