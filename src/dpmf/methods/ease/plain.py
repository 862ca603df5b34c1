"""Plain EASE: the closed form on exact sums, not private.

Items beyond the head, which memory limits, are ranked by popularity.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpmf.engine.resources import Resources
from dpmf.engine.store import AnyRatings, StoredRatings
from dpmf.methods.base import RunOptions
from dpmf.methods.certified.answer import Answerer, Asked, RatingsAnswerer
from dpmf.methods.certified.workers import people_on
from dpmf.methods.ease.defaults import MOST_HEAD, ramp_of
from dpmf.methods.ease.item_item import estimate
from dpmf.methods.ease.questions import ItemPairs, Preferences
from dpmf.methods.ease.ranking import make_ranking, popularity_ranking, ranking_release
from dpmf.methods.foldin import folded
from dpmf.model import Model
from dpmf.privacy import Guarantee

_LIMITS = (256, 400)  # factors, and pairs of an item on average: nothing is hidden in noise, and more of them count
_STEPS = 2.0**30  # of sums in whole numbers, per unit: each person adds 1 at the most


def fit_plain(
    ratings: AnyRatings, head: int | None, implicit: bool, configuration: Mapping[str, Any], options: RunOptions
) -> Model:
    """Return a model that ranks by exact sums over everybody."""
    ramp, n_items = ramp_of(ratings.scale, implicit=implicit), ratings.n_items
    with _people(ratings, options) as people:
        (counted,) = people.answer([Asked(Preferences("item popularity", n_items, ramp), _STEPS)])
        counts = counted / _STEPS
        size = min(MOST_HEAD, int((counts > 0).sum())) if head is None else min(head, n_items)
        chosen = np.sort(np.argsort(-counts, kind="stable")[:size]).astype(np.int32)
        popularity = counts.astype(np.float32)
        if size:
            (summed,) = people.answer([Asked(ItemPairs("item pairs", n_items, chosen, ramp), _STEPS)])
    if size:
        least = np.maximum(counts[chosen], 1e-9)
        found = estimate(summed / _STEPS, 0.0, least, ratings.n_users, _LIMITS)
        ranking = make_ranking(chosen, found, popularity, ramp)
    else:
        ranking = popularity_ranking(popularity, ramp)
    facts = {**configuration, "head": size}
    release = ranking_release(ratings.catalogue, ratings.scale, ranking, facts, Guarantee.none(), implicit=implicit)
    return folded(release, ratings, (), Resources(options.n_threads), options.cluster)


@contextlib.contextmanager
def _people(ratings: AnyRatings, options: RunOptions) -> Iterator[Answerer]:
    """Yield everybody, here or on the workers of a cluster."""
    shares = np.ones(ratings.n_users)
    if options.cluster is None:
        yield RatingsAnswerer(ratings, shares, options.n_threads)
        return
    assert isinstance(ratings, StoredRatings)
    with people_on(options.cluster, ratings, shares, (None, None), 0) as people:
        yield people
