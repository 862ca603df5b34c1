"""The error of ratings that `als` had elsewhere, with about as much epsilon times people.

Measured on MovieLens 100K, Anime and synthetic ratings, with nothing looked at of what it is compared with in
docs/choosing.md; made by `python benchmarks/expected.py references`.

>>> expected_of(6000.0, genres=True)
Expected(least=0.869, most=0.934, references=('synthetic ratings of 6,000 people at epsilon 1', \
'synthetic ratings of 1,000 people at epsilon 5', 'MovieLens 100K at epsilon 5'))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_SPREAD = 5.0  # references with as many times more, or less, epsilon times people
_NAMED = 3


class Reference(NamedTuple):
    """What was measured with the defaults of `ALS`, at delta 10⁻⁶, per person, add-remove.

    Attributes:
        name: of the ratings.
        people: their number.
        epsilon: of the release.
        share: the error, relative to that of the per-user mean, of a list of items without genres.
        with_genres: the same, of one with genres; None if it has none.
    """

    name: str
    people: int
    epsilon: float
    share: float
    with_genres: float | None

    @property
    def mass(self) -> float:
        """Epsilon times people, on which the error depends most."""
        return self.epsilon * self.people


REFERENCES = (
    Reference("MovieLens 100K", 943, 0.2, 1.000, 0.998),
    Reference("MovieLens 100K", 943, 0.5, 0.992, 0.986),
    Reference("MovieLens 100K", 943, 1, 0.961, 0.931),
    Reference("MovieLens 100K", 943, 2, 0.943, 0.921),
    Reference("MovieLens 100K", 943, 5, 0.908, 0.894),
    Reference("MovieLens 100K", 943, 10, 0.891, 0.877),
    Reference("MovieLens 100K", 943, 20, 0.883, 0.869),
    Reference("MovieLens 100K", 943, 50, 0.880, 0.868),
    Reference("Anime", 4_714, 0.2, 0.990, 0.960),
    Reference("Anime", 4_714, 0.5, 0.961, 0.927),
    Reference("Anime", 4_714, 1, 0.945, 0.910),
    Reference("Anime", 4_714, 2, 0.924, 0.899),
    Reference("Anime", 4_714, 5, 0.894, 0.874),
    Reference("Anime", 4_714, 10, 0.890, 0.869),
    Reference("Anime", 4_714, 20, 0.872, 0.852),
    Reference("synthetic ratings of 1,000 people", 1_000, 1, 0.973, None),
    Reference("synthetic ratings of 1,000 people", 1_000, 5, 0.934, None),
    Reference("synthetic ratings of 1,000 people", 1_000, 20, 0.904, None),
    Reference("synthetic ratings of 6,000 people", 6_000, 1, 0.931, None),
    Reference("synthetic ratings of 6,000 people", 6_000, 5, 0.880, None),
    Reference("synthetic ratings of 6,000 people", 6_000, 20, 0.866, None),
    Reference("synthetic ratings of 48,000 people", 48_000, 1, 0.878, None),
    Reference("synthetic ratings of 48,000 people", 48_000, 5, 0.851, None),
    Reference("synthetic ratings of 48,000 people", 48_000, 20, 0.839, None),
)


class Expected(NamedTuple):
    """What to expect of an error, relative to that of the per-user mean.

    Attributes:
        least, most: of what was measured.
        references: the nearest of what was measured.
    """

    least: float
    most: float
    references: tuple[str, ...]


def expected_of(mass: float, *, genres: bool, references: Sequence[Reference] = REFERENCES) -> Expected | None:
    """Return what to expect with this epsilon times people, or None if nothing near was measured.

    Args:
        mass: epsilon times people.
        genres: whether the list of items has genres, and the method goes by them.
        references: what was measured.
    """
    near = [one for one in references if 1 / _SPREAD <= one.mass / mass <= _SPREAD]
    if not near:
        return None
    shares = [one.with_genres if genres and one.with_genres is not None else one.share for one in near]
    least_measured = min(one.mass for one in references)
    most = 1.0 if mass < least_measured else max(shares)  # with less than was ever measured, perhaps nothing is found
    nearest = sorted(near, key=lambda one: abs(math.log(one.mass / mass)))[:_NAMED]
    return Expected(min(shares), most, tuple(f"{one.name} at epsilon {one.epsilon:g}" for one in nearest))
