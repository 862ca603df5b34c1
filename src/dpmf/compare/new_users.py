"""Rankings for new users in a comparison: those of methods, and those of peers, which learn from the same people.

>>> from dpmf.evaluation.new_users import NewUsers
>>> from dpmf.ratings.synthetic import make
>>> parts, peers = NewUserParts.of(make(120, 40), NewUsers(0.3)), peers_of([1.0])
>>> peers[:3]
(('popular', inf), ('exact-ease', inf), ('private-popular', 1.0))
>>> row = measure_peer(Row("popular", "none", math.inf, 0, 7), parts, 4.0, Budget(1.0), n_threads=1)
>>> row.figure("ndcg@100") > 0
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from dpmf.compare.results import PRIVATE_POPULAR, Row
from dpmf.errors import DpmfError, InvalidArgument
from dpmf.evaluation.new_users import Figures, Ranker, measure_ranker, release_ranker
from dpmf.evaluation.peers import peer_names, positives_of, train_peer
from dpmf.model import Release
from dpmf.privacy import Budget
from dpmf.ratings import Ratings
from dpmf.runs.parts import NewUserParts


def rank_for_new_users(release: Release, parts: NewUserParts, n_threads: int | None) -> dict[str, Any]:
    """Return the figures of a release, and how many people they are of."""
    if not (np.isfinite(release.item_factors).all() and np.isfinite(release.item_biases).all()):
        raise InvalidArgument("it has diverged: factors are not numbers any more")
    return _figures(release_ranker(release, n_threads), parts)


def peers_of(epsilons: Iterable[float]) -> tuple[tuple[str, float], ...]:
    """Return the name of every peer and its epsilon: infinity, or one of these for private popularity."""
    exact = tuple((name, math.inf) for name in peer_names(with_budget=False))
    return *exact, *((PRIVATE_POPULAR, epsilon) for epsilon in sorted(set(epsilons)))


def measure_peer(row: Row, parts: NewUserParts, least: float, budget: Budget, *, n_threads: int | None = None) -> Row:
    """Return the row with the figures of the peer that it names, or with what kept the peer from ending.

    Args:
        row: which peer it is.
        parts: what to learn from, in memory, and whom to rank for.
        least: the rating from which on somebody likes an item.
        budget: that of private popularity.
        n_threads: all CPUs by default.
    """
    assert isinstance(parts.train, Ratings)
    try:
        liked = positives_of(parts.train, least)
        ranker = train_peer(row.method, liked, parts.people.n_items, budget=budget, n_threads=n_threads)
        return replace(row, ranking=_figures(ranker, parts))
    except DpmfError as error:
        return replace(row, error=str(error))


def _figures(ranker: Ranker, parts: NewUserParts) -> dict[str, Any]:
    found: Figures = {**parts.people.counts(), **measure_ranker(ranker, parts.people, parts.popularity)}
    return {name: _known(value) for name, value in found.items()}


def _known(value: float | list[float]) -> float | list[float] | None:
    return None if isinstance(value, float) and math.isnan(value) else value
