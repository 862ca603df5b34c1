"""The ratings that a benchmark is given by name.

>>> len(load("made:50:20:5").catalogue)
20
"""

from __future__ import annotations

from dpmf import Ratings
from dpmf.ratings.synthetic import make


def load(data: str) -> Ratings:
    """Return synthetic ratings for made:USERS:ITEMS:RATINGS, RATINGS per user on average, or read what is named."""
    if data.startswith("made:"):
        users, items, mean = map(int, data.split(":")[1:])
        return make(users, items, mean_ratings=mean)
    return Ratings.read(data)
