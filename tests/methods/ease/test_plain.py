"""Plain EASE: the textbook on exact sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf.methods import EASE
from dpmf.methods.ease import item_item
from dpmf.privacy import Budget
from dpmf.ratings import Ratings

N_USERS, N_ITEMS = 40, 8


def taste() -> NDArray[np.float64]:
    """Return ratings from 1 to 5 of people by items; 0 where there is none."""
    generator = np.random.default_rng(6)
    ratings = generator.integers(1, 6, (N_USERS, N_ITEMS)) * (generator.random((N_USERS, N_ITEMS)) < 0.6)
    ratings[:, 0] = 5
    return ratings.astype(np.float64)


def plain(**fields: Any) -> EASE:
    return EASE(budget=Budget(math.inf), **fields)


def textbook(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return B of the closed form, for people whose weights are scaled to length 1."""
    z = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    G = z.T @ z
    ridge = item_item._RIDGE * N_USERS / N_ITEMS + item_item._DIAGONAL_RIDGE * np.diag(G)
    P = np.linalg.inv(G + np.diag(ridge))
    B = -P / np.diag(P) ** item_item._EXPONENT
    np.fill_diagonal(B, 0.0)
    return B


@pytest.mark.parametrize("feedback", ["explicit", "implicit"])
def test_scores_are_those_of_the_textbook(feedback: str) -> None:
    R = taste()
    users, items = np.nonzero(R)
    ratings = Ratings.of(users, items, R[users, items], scale=(1, 5), items=range(N_ITEMS))
    model = plain(feedback=feedback).fit(ratings, n_threads=2)
    ranking = model.release.ranking
    assert ranking is not None
    assert ranking.items.tolist() == list(range(N_ITEMS))
    weights = np.clip((R - 2) / 3, 0, 1) if feedback == "explicit" else (R > 0).astype(np.float64)
    expected = weights @ textbook(weights)
    found = ranking.scores_of_people(ranking.restrict(model.rated()), 0, N_USERS)
    others = weights == 0  # of an item that a person has, a score means nothing
    assert others.any()
    off = np.abs(found - expected)[others].max() / np.abs(expected[others]).max()
    assert off < 4e-3  # the release has 12 bits a number
    popularity = (weights / np.linalg.norm(weights, axis=1, keepdims=True)).sum(axis=0)
    np.testing.assert_allclose(ranking.popularity, popularity, rtol=1e-4)


def test_the_head_is_what_people_like_most() -> None:
    R = taste()
    users, items = np.nonzero(R)
    ratings = Ratings.of(users, items, R[users, items], scale=(1, 5), items=range(N_ITEMS + 3))
    model = plain(head=3).fit(ratings)
    ranking = model.release.ranking
    assert ranking is not None
    assert set(ranking.items) == set(np.argsort(-ranking.popularity)[:3])
    assert model.release.configuration["head"] == 3
    assert plain().fit(ratings).release.configuration["head"] == N_ITEMS  # nobody rated the others
    assert (model.history, model.guarantee.mode) == ((), "none")
