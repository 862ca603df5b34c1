"""From a release to a model: everybody's own bias and factors, fitted to all of their ratings.

>>> import math
>>> from dpmf.methods import SGLD
>>> from dpmf.privacy import Budget
>>> from dpmf.ratings.synthetic import make
>>> ratings = make(50, 40)
>>> model = SGLD(n_factors=2, n_epochs=1, budget=Budget(math.inf)).fit(ratings, n_threads=1)
>>> bool((folded(model.release, ratings, (), Resources(1)).user_factors == model.user_factors).all())
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.cluster import Cluster
from dpmf.engine.resources import Resources
from dpmf.engine.rowfile import MappedRows
from dpmf.engine.store import AnyRatings, StoredRatings, parts_of
from dpmf.model import EpochRecord, Model, Release
from dpmf.model.person import fold_in_many
from dpmf.ratings import Ratings


def folded(
    release: Release,
    ratings: AnyRatings,
    history: tuple[EpochRecord, ...],
    resources: Resources,
    cluster: Cluster | None = None,
) -> Model:
    """Return the model of a release; of ratings on disk, a piece at a time is in memory, and none from a cluster."""
    if cluster is not None:
        return Model.without_users(release, history)
    if not isinstance(ratings, StoredRatings):
        b, U = fold_in_many(release, ratings.indptr, ratings.items, ratings.values, resources.n_threads)
        weights = release.weigh(ratings.values)
        return Model(release, ratings.user_ids, U, b, ratings.indptr, ratings.items, history, weights)
    shape = (ratings.n_users, release.n_factors)
    rows = None if resources.user_folder is None else MappedRows(resources.user_folder, shape)
    U, b = np.empty(shape, np.float32) if rows is None else rows.array, np.empty(ratings.n_users, np.float32)
    for positions, piece in parts_of(ratings):
        b[positions], U[positions] = fold_in_many(release, piece.indptr, piece.items, piece.values, resources.n_threads)
        if rows is not None:
            rows.put_away(0, ratings.n_users)
    weights = None
    if release.ranks and (release.weighs_counts or not release.is_implicit):  # else all weights are 1, as without any
        weights = ratings.gathered(lambda piece: _weights(release, piece), np.float32)
    return Model(release, ratings.user_ids, U, b, *ratings.seen(), history, weights)


def _weights(release: Release, ratings: Ratings) -> NDArray[np.float32]:
    weights = release.weigh(ratings.values)
    assert weights is not None
    return weights
