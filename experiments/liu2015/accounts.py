"""Shilling profiles: fake accounts that push an item, appended to the users of a rating set in memory.

Each gives the target the highest rating. To look like an honest user it also rates other items, popular ones more
often, near the mean of each: the "average attack" of Mobasher et al. (2007), whom the paper cites. "ordinary" accounts
have the number of ratings of a random user; "short" ones have a few, so that the target is a large part of their
ratings, which matters to methods that bound a user as a whole.

>>> from dpmf.ratings.synthetic import make
>>> honest = make(50, 40)
>>> pushed = with_accounts(honest, target=7, n_accounts=3, kind="short", seed=0)
>>> pushed.n_users, [float(pushed.of_user(place)[1][pushed.of_user(place)[0] == 7][0]) for place in (50, 51, 52)]
(53, [5.0, 5.0, 5.0])
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpmf import Ratings
from dpmf.model import Model
from dpmf.ratings.ids import Ids
from dpmf.streams import generator

KINDS = ("ordinary", "short")
SHARE = 0.01
"""Fake accounts, as a fraction of the number of users."""

N_TARGETS = 5
_FILLERS = 5  # other ratings of a short account
_FROM, _TO = 0.2, 0.7  # unpopular to middling: between these quantiles of the rated items, the rarest first


def targets_of(ratings: Ratings, seed: int) -> NDArray[np.int64]:
    """Return positions of items to push, the rarest first: one at random from each range of popularity."""
    counts = np.bincount(ratings.items, minlength=ratings.n_items)
    rated = np.flatnonzero(counts)
    by_popularity = rated[np.argsort(counts[rated], kind="stable")]
    random, ends = generator(seed, "items to push"), np.linspace(_FROM, _TO, N_TARGETS + 1) * len(rated)
    places = [random.integers(int(low), max(int(high), int(low) + 1)) for low, high in pairwise(ends)]
    return by_popularity[places].astype(np.int64)


def n_accounts(ratings: Ratings) -> int:
    """Return the number of fake accounts."""
    return max(1, round(SHARE * ratings.n_users))


def with_accounts(honest: Ratings, *, target: int, n_accounts: int, kind: str, seed: int) -> Ratings:
    """Return the ratings followed by those of fake accounts; users keep their positions."""
    random = generator(seed, f"{kind} accounts that push {target}")
    counts = np.bincount(honest.items, minlength=honest.n_items)
    means = np.bincount(honest.items, honest.values, honest.n_items) / np.maximum(counts, 1)
    spread = float(np.std(honest.values - means[honest.items]))
    possible = np.unique(honest.values)
    others = np.flatnonzero((counts > 0) & (np.arange(honest.n_items) != target))
    lengths = np.minimum(_lengths(honest, n_accounts, kind, random), len(others))
    items, values = [honest.items], [honest.values]
    for length in lengths:
        # The Gumbel trick: distinct items, drawn in proportion to their numbers of ratings.
        keys = np.log(counts[others]) + random.gumbel(size=len(others))
        chosen = np.append(others[np.argpartition(keys, -length)[-length:]], target)
        given = _nearest(possible, means[chosen] + random.normal(0.0, spread, len(chosen)))
        given[-1] = honest.scale.hi
        order = np.argsort(chosen)
        items.append(chosen[order].astype(np.int32))
        values.append(given[order].astype(np.float32))
    return replace(
        honest,
        indptr=np.concatenate([honest.indptr, honest.indptr[-1] + np.cumsum(lengths + 1)]),
        items=np.concatenate(items),
        values=np.concatenate(values),
        timestamps=None,
        user_ids=_ids(honest.user_ids, n_accounts),
    )


def of_people(model: Model, honest: Ratings) -> Model:
    """Return the model without the fake accounts."""
    n, end = honest.n_users, int(honest.indptr[-1])
    return replace(
        model,
        user_ids=honest.user_ids,
        user_factors=model.user_factors[:n],
        user_biases=model.user_biases[:n],
        seen_indptr=model.seen_indptr[: n + 1],
        seen_items=model.seen_items[:end],
    )


def _lengths(honest: Ratings, n_accounts: int, kind: str, random: np.random.Generator) -> NDArray[np.int64]:
    """Return the number of items that each account rates besides the target."""
    if kind == "short":
        return np.full(n_accounts, _FILLERS)
    lengths = np.diff(honest.indptr)
    return np.maximum(random.choice(lengths[lengths > 0], n_accounts).astype(np.int64) - 1, 1)


def _nearest(possible: NDArray[np.float32], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    middles = (possible[1:] + possible[:-1]) / 2
    return possible[np.searchsorted(middles, wanted)].astype(np.float64)


def _ids(people: Ids, count: int) -> Ids:
    if people.array.dtype.kind == "i":
        return Ids(np.concatenate([people.array, people.array.max() + 1 + np.arange(count)]))
    return Ids(np.concatenate([people.array, np.array([f"made-up account {one}" for one in range(count)], object)]))
