"""Learning rate and penalty that fit the data.

The fewer ratings there are for each user and each item, the more their factors must be held back, and the larger the
steps must be to get anywhere. Both follow from x = 1 / (ratings per user) + 1 / (ratings per item), by rules fitted to
the best settings found on MovieLens 100K and 1M, Goodbooks, Anime, a tenth of Netflix and all of it (64 and 128
factors, linear decay), which x orders from 0.07 to 0.005.

>>> from dpmf.ratings.synthetic import make
>>> rate, penalty = suggested(make(50, 40))
>>> round(rate, 3), round(penalty, 3)
(0.02, 0.065)
"""

from __future__ import annotations

import numpy as np

from dpmf.ratings import Ratings

_RATES = (0.008, 0.02)  # lowest and highest
_MOST_PENALTY = 0.065


def suggested(ratings: Ratings) -> tuple[float, float]:
    """Return a learning rate and a penalty for these ratings; both stated for a scale as wide as 1 to 5."""
    users = np.count_nonzero(np.diff(ratings.indptr))
    items = np.count_nonzero(np.bincount(ratings.items))
    sparsity = float(users / len(ratings) + items / len(ratings))
    rate = float(np.clip(400 * sparsity**2, *_RATES))
    return rate, min(216 * sparsity**1.85, _MOST_PENALTY)
