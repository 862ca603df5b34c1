"""A rating model that expects the same of all items: its lists are ordered by popularity, the same for everybody.

By expected ratings, they would be in the order of the catalogue. How popular items are was released anyway, with noise,
so this costs nothing.

>>> from dpmf.methods.als import ALS
>>> from dpmf.privacy import Budget
>>> from dpmf.ratings.synthetic import make
>>> release = ALS(budget=Budget(epsilon=0.01), noise_seed=1).fit(make(200, 40), n_threads=1).release
>>> release.ranks, release.predicts_ratings, len(release.ranking.items)
(True, True, 0)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmf.model import Release
from dpmf.model.learnt import Learnt
from dpmf.model.ranking import Ranking
from dpmf.model.ranking_tensors import rounded

_POPULARITY = "the popularity of items"


def orders_by_ratings(learnt: Learnt, biases: NDArray[np.float32]) -> bool:
    """Return whether expected ratings order items: by tastes, or by how well everybody likes them, if that is known.

    If nothing is known at all, biases that are noise order them, and a release says so.
    """
    differ = bool(np.ptp(biases) > 0)
    return learnt.factors > 0 or learnt.beside > 0 or (differ and bool(learnt.rated or not learnt.popular))


def by_popularity(release: Release, counts: NDArray[np.float64]) -> Release:
    """Return a release that ranks by noisy counts, and predicts as before."""
    guarantee = release.guarantee
    *others, configuration = guarantee.releases
    return replace(
        with_columns(release),
        ranking=rounded(Ranking.by_popularity(counts)),
        guarantee=replace(guarantee, releases=(*others, _POPULARITY, configuration)),
    )


def with_columns(release: Release) -> Release:
    """Return a release that is seen to have a rating model, though all items are alike: with a column of zeros."""
    if release.n_factors or release.item_biases.any():
        return release
    return replace(release, item_factors=np.zeros((len(release.items), 1), np.float32))
