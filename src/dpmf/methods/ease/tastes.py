"""Directions in which people's tastes differ, found by the ranking: factors of items that ratings can be fitted to.

People who like the same items also rate alike. The eigenvectors of Σ z z' that stand out from the noise are therefore
item factors that nobody has to measure again; this is post-processing of what the ranking has released.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.ease.certified import PublicEase

_LEAST_POPULARITY = 0.2  # of its median: by less nothing is divided


def taste_factors(public: PublicEase, most: int) -> NDArray[np.float32]:
    """Return up to `most` factors of all items, the largest first, shape (n_items, K); 0 for items outside the head.

    An eigenvector times the root of its eigenvalue is in proportion to how popular items are, the first one most of
    all. Ratings do not grow with popularity like that, so factors are divided by its root.
    """
    factors = np.zeros((public.plan.n_items, 0), np.float32)
    if public.spectrum is None:
        return factors
    vectors, values = public.spectrum
    if not len(values) or not most:
        return factors
    largest = slice(None, -min(most, len(values)) - 1, -1)
    found = vectors[:, largest] * np.sqrt(values[largest])
    popularity = np.abs(found[:, 0])
    popularity = np.maximum(popularity, _LEAST_POPULARITY * np.median(popularity))
    factors = np.zeros((public.plan.n_items, found.shape[1]), np.float32)
    factors[public.head] = found / np.sqrt(np.maximum(popularity, np.finfo(np.float32).tiny))[:, None]
    return factors
