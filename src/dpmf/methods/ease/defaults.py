"""What the ranking method chooses where nothing was given: from epsilon and the number of people, declared or noisy.

The constants were chosen on MovieLens 100K and Anime, those of links and groups on Anime, whole, with its popularity
made flat and with its people cut into short ones, and on synthetic catalogues of series.

>>> [head_size(1.0, n_users, 20_000) for n_users in (500, 5_000, 400_000)]
[0, 282, 2529]
"""

from __future__ import annotations

import math

from dpmf.kernels.item_pairs import Ramp
from dpmf.ratings import Scale

MOST_HEAD = 8_000  # a matrix of 64 million numbers
LEAST_MASS = 1_800.0  # epsilon times people, below which pairs of items are noise, and popularity gets all the budget
RELEASES = ("number of users", "item popularity", "linked pairs", "item pairs")
_SHARES = (0.0005, 0.1195, 0.0, 0.88)  # of the budget, where no links are measured
_LINKED_SHARES = (0.0005, 0.25, 0.2, 0.5495)  # where they are
LEAST_COVERAGE = 0.2  # of a catalogue by close links, from which on they are worth a share of the budget
LEAST_IN_HEAD = 0.4  # of what people like, below which links are worth more than pairs of the head
FEW_LIKES = 25.0  # of a person: if they are fewer, pairs of groups are worth more than those of the head
GROUPED_MASS = 8_000.0  # epsilon times people, below which pairs of groups are noise
ALL_GROUPED_MASS = 80_000.0  # and from which on they are worth more than links, however little the head is
_HEAD = 4.0  # times the root of epsilon times people
_QUARTER = 0.25  # up the scale: where ratings begin to count; the highest counts in full
_COUNTS = Ramp(-4.0, 4.0, counts=True)  # half of 1 + log2(count) / 4, and no more from 16 on: see benchmarks/counts.py


def shares_of(*, linked: bool) -> dict[str, float]:
    """Return which part of the budget each release gets, with or without linked pairs."""
    return dict(zip(RELEASES, _LINKED_SHARES if linked else _SHARES, strict=True))


def head_size(epsilon: float, n_users: float, n_items: int) -> int:
    """Return how many items have pairs that are worth measuring; 0 if there is nothing but noise to be found."""
    mass = epsilon * n_users
    return 0 if mass < LEAST_MASS else min(int(_HEAD * math.sqrt(mass)), MOST_HEAD, n_items)


def ramp_of(scale: Scale, *, implicit: bool) -> Ramp:
    """Return the weight of a rating: for implicit feedback, always 1, unless there are counts."""
    if implicit and scale.counts:
        return _COUNTS
    if implicit:
        return Ramp(-math.inf, -math.inf)
    return Ramp(scale.lo + _QUARTER * (scale.hi - scale.lo), scale.hi)
