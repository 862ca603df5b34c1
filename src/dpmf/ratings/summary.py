"""A few figures about a set of ratings, for whoever holds it.

>>> from dpmf.ratings import Ratings
>>> describe(Ratings.of([1, 1, 2], [1, 2, 1], [5, 3, 4], scale=(1, 5)))["mean_rating"]
4.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmf.ratings.table import Ratings


def describe(ratings: Ratings) -> dict[str, Any]:
    """Return sizes, scale, density, and how ratings are spread over users and items."""
    per_user = np.diff(ratings.indptr)
    per_item = np.bincount(ratings.items, minlength=ratings.n_items)
    return {
        "ratings": len(ratings),
        "users": ratings.n_users,
        "items": ratings.n_items,
        "rated_items": int(np.count_nonzero(per_item)),
        "scale": str(ratings.scale) + ("" if ratings.scale.declared else " (seen in the data, not declared)"),
        "catalogue": "declared" if ratings.catalogue.declared else "seen in the data, not declared",
        "timestamps": ratings.timestamps is not None,
        "mean_rating": float(ratings.values.mean(dtype=np.float64)),
        "density": len(ratings) / (ratings.n_users * ratings.n_items),
        "ratings_per_user_median": float(np.median(per_user)),
        "ratings_per_user_most": int(per_user.max()),
        "ratings_per_item_median": float(np.median(per_item)),
        "ratings_per_item_most": int(per_item.max()),
    }
