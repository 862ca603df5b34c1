"""Synthetic rating sets of many kinds, for choosing a method's settings without looking at anyone's ratings.

Nothing in them is fitted to a real set. They follow common knowledge about ratings from 1 to 5: errors of about 0.9 if
only biases are known and a little less if tastes are known too, tastes in a few strong and many weak directions,
popularity that falls as a power law, popular items liked somewhat better, and people who differ in how much they care
for popularity and quality, and who choose items they will like.

>>> ratings = World(200, 100, mean_ratings=20.0).ratings()
>>> ratings.n_users, ratings.n_items
(200, 100)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf import Items, Ratings
from dpmf.streams import generator

_DIRECTIONS = 24
_AT_ONCE = 1000


@dataclass(frozen=True)
class World:
    """Sizes and proportions of a synthetic rating set.

    Attributes:
        n_users, n_items: sizes.
        mean_ratings: about the mean number of ratings of a person; log-normal.
        taste: variance of ratings that tastes explain.
        decay: taste direction k is k^-decay times as strong as the first.
        noise: variance of ratings that nothing explains.
        fall: the k-th most popular item is chosen in proportion to (k + 10)^-fall.
        pull: standard deviation of what taste adds to the logarithm of an item's chance of being chosen.
        least: the fewest ratings of a person.
        seed: fixes everything.
    """

    n_users: int
    n_items: int
    mean_ratings: float = 80.0
    taste: float = 0.4
    decay: float = 0.8
    noise: float = 0.65
    fall: float = 0.9
    pull: float = 0.7
    least: int = 8
    seed: int = 0

    def with_seed(self, seed: int) -> World:
        """Return another world of the same kind."""
        return replace(self, seed=seed)

    def ratings(self) -> Ratings:
        """Return the rating set: whole stars from 1 to 5."""
        return self._parts(0)[0]

    def with_random_items(self, n_items: int) -> tuple[Ratings, Ratings]:
        """Return the rating set, and ratings by the same people of items that were drawn for them, not chosen."""
        rated, others = self._parts(n_items)
        return rated, others

    def _parts(self, n_random: int) -> list[Ratings]:
        rng, at_random = generator(self.seed, "world"), generator(self.seed, "random items")
        strengths = np.arange(1, _DIRECTIONS + 1) ** -self.decay
        strengths *= np.sqrt(self.taste / np.square(strengths).sum())
        popularity = (np.arange(self.n_items) + 10.0) ** -self.fall
        logs = np.log(popularity)
        fame = (logs - logs.mean()) / logs.std()
        quality = 0.4 * rng.normal(size=self.n_items) + 0.2 * fame
        traits = rng.normal(size=(self.n_items, _DIRECTIONS))
        for place, trend in enumerate((fame, quality / quality.std())):
            traits[:, place] = 0.6 * trend + 0.8 * traits[:, place]
        spread = 0.9
        lengths = self.mean_ratings * np.exp(spread * rng.normal(size=self.n_users) - spread**2 / 2)
        counts = np.clip(lengths, self.least, 0.4 * self.n_items).astype(np.int64)
        parts = [_Rows([], [], []) for _ in range(2 if n_random else 1)]
        for first in range(0, self.n_users, _AT_ONCE):
            some = counts[first : first + _AT_ONCE]
            likings = (rng.normal(size=(len(some), _DIRECTIONS)) * strengths) @ traits.T
            weights = logs + self.pull / np.sqrt(self.taste) * likings
            chosen = _choose(weights + rng.gumbel(size=weights.shape), some)
            generosity = 0.4 * rng.normal(size=len(some))
            likings += generosity[:, None] + quality
            drawn = at_random.permuted(np.tile(np.arange(self.n_items), (len(some) if n_random else 0, 1)), axis=1)
            whose = np.repeat(np.arange(len(some)), some), np.repeat(np.arange(len(drawn)), n_random)
            which = chosen, drawn[:, :n_random].ravel()
            for rows, who, items, source in zip(parts, whose, which, (rng, at_random), strict=False):
                clean = 3.5 + likings[who, items]
                rows.users.append(first + who)
                rows.items.append(items)
                rows.values.append(np.clip(np.rint(clean + np.sqrt(self.noise) * source.normal(size=len(who))), 1, 5))
        catalogue = Items.of(np.arange(self.n_items))
        return [
            Ratings.of(*map(np.concatenate, rows), scale=(1, 5), items=catalogue)  # type: ignore[arg-type]
            for rows in parts
        ]


class _Rows(NamedTuple):
    """Ratings of one kind, a thousand people at a time."""

    users: list[NDArray[np.int64]]
    items: list[NDArray[np.int64]]
    values: list[NDArray[np.float64]]


def _choose(keys: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the positions of the `count` largest keys of each row, row after row."""
    order = np.argsort(-keys, axis=1)
    return np.concatenate([np.sort(row[:count]) for row, count in zip(order, counts, strict=True)])
