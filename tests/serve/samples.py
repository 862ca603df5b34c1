"""Releases of random factors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpmf.model import Release, Ridge
from dpmf.privacy import Budget, GaussianEvent, Guarantee
from dpmf.ratings import Items, Scale

CERTIFIED = Guarantee.certified_by(
    Budget(1.0), [GaussianEvent("item sums", noise_multiplier=5.0, coordinates=10**6)], releases=["item factors"]
)
RATED = {"Film 3": 5, "Film 8": 1, "Film 21": 4}  # stars that a visitor gives
IMPLICIT: dict[str, Any] = {"mean": 0.0, "scale": Scale(0, 1), "feedback": "implicit", "alpha": 2.0}
_GENRES = ("Space", "Heist", "Romance", "Horror|Space", "")


def random_release(n: int = 60, K: int = 4, *, seed: int = 0, **changes: Any) -> Release:
    """Return a certified release of random factors. Titles are "Film 0", "Film 1", …"""
    rng = np.random.default_rng(seed)
    release = Release(
        items=Items.of(
            np.arange(100, 100 + n), [f"Film {j}" for j in range(n)], [_GENRES[j % len(_GENRES)] for j in range(n)]
        ),
        scale=Scale(1, 5),
        mean=3.4,
        item_factors=rng.normal(0, 0.5, (n, K)).astype(np.float32),
        item_biases=rng.normal(0, 0.3, n).astype(np.float32),
        ridge=Ridge(bias=2.0, factors=5.0),
        configuration={"method": "als"},
        guarantee=CERTIFIED,
    )
    return replace(release, **changes)
