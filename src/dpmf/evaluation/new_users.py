"""Rankings for new users: people are held out whole, folded in with a part of what they like, and asked for the rest.

This is how rankings are judged in the literature (Liang et al. 2018, "Variational autoencoders for collaborative
filtering"; Steck 2019, "Embarrassingly shallow autoencoders for sparse data"). Who is held out depends on the seed and
on their own id alone, so that adding or removing a person changes nobody else's side. The figures are for the holder of
the data: no guarantee covers them.

>>> from dpmf.ratings.synthetic import make
>>> train, people = split_users(make(200, 40, mean_ratings=15), NewUsers(share=0.2, seed=1))
>>> train.n_users + people.n_held_out
200
>>> everybody_the_same = lambda indptr, items, values, k: np.tile(np.arange(k, dtype=np.int32), (len(indptr) - 1, 1))
>>> figures = measure_ranker(everybody_the_same, people, np.ones(40))
>>> figures["ndcg@10"] > 0, len(figures["ndcg@10_interval"])
(True, 2)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.threads import thread_count
from dpmf.errors import InvalidArgument
from dpmf.evaluation.metrics import coverage, hits
from dpmf.kernels.csr import Csr, CsrPattern
from dpmf.model import Release
from dpmf.model.batch import recommend_many
from dpmf.model.person import fold_in_many
from dpmf.ratings import Ratings, Scale
from dpmf.ratings.ids import Ids
from dpmf.ratings.split import draw_uniforms, rank_within_user
from dpmf.ratings.subset import keep_users, select_users
from dpmf.streams import mix, stream_key

Ranker: TypeAlias = Callable[[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int], NDArray[np.int32]]
"""Called with people's known ratings (CSR) and k; returns rows of item positions, best first, -1 where a list is short.

Nobody's list has an item that they are known to have."""
Figures: TypeAlias = dict[str, float | list[float]]

MOST_PEOPLE = 10_000
"""Held-out people for whom lists are made at most, chosen by the seed: further ones would hardly change a figure."""
RECALLS, NDCGS, SHOWN = (20, 50), (10, 100), 20
_LONGEST = max(*RECALLS, *NDCGS, SHOWN)
FIGURES = (
    *(f"recall@{k}" for k in RECALLS),
    *(f"ndcg@{k}" for k in NDCGS),
    f"coverage@{SHOWN}",
    f"tail@{SHOWN}",
)
"""The figures; those of recall and ndcg also come with `_interval`, [low, high]."""
_TAIL = 0.8  # of the catalogue, the least popular items
_QUANTILE = 1.959964  # of the normal distribution, for 95 %


@dataclass(frozen=True)
class NewUsers:
    """Who is held out, and what is folded in.

    Attributes:
        share: the part of the people that is held out, each independently of all others.
        fold_in: the part of what they like that is folded in; the rest is to be found.
        positive: the rating from which on a person likes an item: by default three quarters up the scale. -inf counts
            every rating, which is what implicit feedback means.
        seed: of both choices.
        least: how many items one has to like to be measured. Of somebody who likes two, one is known and one to be
            found, which says little; the literature leaves out whoever has fewer than five (Liang et al. 2018).
    """

    share: float = 0.1
    fold_in: float = 0.8
    positive: float | None = None
    seed: int = 0
    least: int = 5

    def __post_init__(self) -> None:
        for name in ("share", "fold_in"):
            if not 0 < getattr(self, name) < 1:
                raise InvalidArgument(f"{name}={getattr(self, name):g} should be between 0 and 1")
        if self.least < 2:
            raise InvalidArgument(
                f"least={self.least} should be 2 or more: of what a person likes, some is known and some is to be found"
            )
        if self.positive is not None and math.isnan(self.positive):
            raise InvalidArgument("positive=nan is not a rating: give the least rating of an item that a person likes")

    def least_positive(self, scale: Scale) -> float:
        """Return the least rating that counts; refuse one that nobody could give."""
        if self.positive is None:
            return scale.liked
        if self.positive > scale.hi:
            raise InvalidArgument(f"positive={self.positive:g} is above the scale {scale}: nobody would like anything")
        return self.positive

    def choose(self, user_ids: Ids) -> NDArray[np.bool_]:
        """Return who is held out: a hash of the seed and of one's own id decides."""
        return self._hashes(user_ids) < np.uint64(self.share * 2.0**64)

    def choose_measured(self, user_ids: Ids) -> NDArray[np.bool_]:
        """Return for whom lists are made: all who are held out, or the `MOST_PEOPLE` with the least hashes."""
        chosen, hashes = self.choose(user_ids), self._hashes(user_ids)
        if np.count_nonzero(chosen) > MOST_PEOPLE:
            chosen &= hashes <= np.partition(hashes, MOST_PEOPLE - 1)[MOST_PEOPLE - 1]
        return chosen

    def _hashes(self, user_ids: Ids) -> NDArray[np.uint64]:
        return mix(stream_key(self.seed, "new users") ^ user_ids.keys)


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """People who are held out, with what is known of them and what is to be found.

    Attributes:
        known: their ratings of the items that are folded in.
        sought: the items to be found.
        n_items: the size of the catalogue.
        n_held_out: people who were held out, measured or not.
        n_left_out: those among the measured who like fewer than `least` items, and are not in `known`.
        least: the fewest items that anybody in `known` likes.
    """

    known: Csr
    sought: CsrPattern
    n_items: int
    n_held_out: int
    n_left_out: int
    least: int

    def __len__(self) -> int:
        return len(self.known.indptr) - 1

    def __repr__(self) -> str:
        """Return sizes only: what single people like does not belong in a log."""
        return f"People({len(self):,} people, {self.n_items:,} items)"

    def counts(self) -> Figures:
        """Return how many people there are, as commands report it."""
        return {
            "users": len(self),
            "users_held_out": self.n_held_out,
            "users_left_out": self.n_left_out,
            "least_liked": self.least,
        }


def split_users(ratings: Ratings, new_users: NewUsers) -> tuple[Ratings, People]:
    """Return the ratings of those who are not held out, and the people to measure rankings with."""
    held_out = new_users.choose(ratings.user_ids)
    measured = select_users(ratings, np.flatnonzero(new_users.choose_measured(ratings.user_ids)))
    train = keep_users(ratings, ~held_out)
    if not len(train):
        raise InvalidArgument(
            f"holding out {new_users.share:g} of the people leaves nobody to learn from: hold out fewer"
        )
    return train, people_of(measured, new_users, n_held_out=int(np.count_nonzero(held_out)))


def people_of(measured: Ratings, new_users: NewUsers, *, n_held_out: int) -> People:
    """Return people with their positive ratings split into what is known and what is to be found.

    Args:
        measured: all ratings of those for whom lists are made.
        new_users: how.
        n_held_out: how many were held out.
    """
    liked = measured.select(measured.values >= new_users.least_positive(measured.scale))
    counts = np.diff(liked.indptr)
    enough = counts >= new_users.least
    if np.count_nonzero(enough) < 2:
        raise InvalidArgument(
            f"of {n_held_out:,} people held out, {np.count_nonzero(enough)} like {new_users.least} items or more, too "
            f"few for any figure: hold out more, count lower ratings as positive, or those who like fewer items"
        )
    liked = keep_users(liked, enough)
    counts = counts[enough]
    n_known = np.clip(np.rint(new_users.fold_in * counts), 1, counts - 1)
    chance = draw_uniforms(liked, stream_key(new_users.seed, "fold in"))
    is_known = rank_within_user(liked, chance) < np.repeat(n_known, counts)
    known, sought = liked.select(is_known), liked.select(~is_known)
    n_left_out = int(np.count_nonzero(~enough))
    return People(known.csr, sought.csr.pattern, measured.n_items, n_held_out, n_left_out, new_users.least)


def measure_ranker(ranker: Ranker, people: People, popularity: NDArray[Any]) -> Figures:
    """Return the figures of a ranker, see `FIGURES`.

    recall@k is the number of sought items among the first k, divided by the most there could be: k, or all that are
    sought if they are fewer (so `dpmf.evaluate`, which divides by all, has another recall@k). ndcg@k is as there.
    coverage@20 is the share of the catalogue that is in anybody's first 20; tail@20 is the share of tail items in
    these lists, where the tail is the least popular 80 % of the catalogue.

    Args:
        ranker: what is measured.
        people: for whom.
        popularity: shape (n_items,), how many of those who were learnt from like each item.
    """
    ranked = ranker(*people.known, min(_LONGEST, people.n_items))
    found = hits(ranked, people.sought.indptr, people.sought.items)
    n_sought = np.diff(people.sought.indptr)
    each = {f"recall@{k}": found[:, :k].sum(axis=1) / np.minimum(k, n_sought) for k in RECALLS}
    each |= {f"ndcg@{k}": _ndcg(found[:, :k], n_sought, k) for k in NDCGS}
    figures: Figures = {}
    for name, values in each.items():
        mean, half = float(np.mean(values)), _QUANTILE * float(np.std(values, ddof=1)) / math.sqrt(len(values))
        figures |= {name: mean, f"{name}_interval": [max(mean - half, 0.0), min(mean + half, 1.0)]}
    shown = ranked[:, :SHOWN]
    listed = shown[shown >= 0]
    figures[f"coverage@{SHOWN}"] = coverage(shown, people.n_items)
    figures[f"tail@{SHOWN}"] = float(np.mean(tail_of(popularity)[listed])) if len(listed) else math.nan
    return figures


def tail_of(popularity: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which items are in the tail: the least popular 80 % of the catalogue.

    >>> tail_of(np.array([7, 1, 9, 0, 3])).tolist()
    [True, True, False, True, True]
    """
    tail = np.ones(len(popularity), np.bool_)
    n_head = max(len(popularity) - round(_TAIL * len(popularity)), 1)
    tail[np.argsort(-popularity, kind="stable")[:n_head]] = False
    return tail


def release_ranker(release: Release, n_threads: int | None = None) -> Ranker:
    """Return how a release ranks: people are folded in, and get the first items by ranking part or expected rating."""
    n_threads = thread_count(n_threads)

    def rank(
        indptr: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.float32], k: int
    ) -> NDArray[np.int32]:
        biases, factors = fold_in_many(release, indptr, items, values, n_threads)
        weights = release.weigh(values)
        rated = None if weights is None else Csr(indptr, items, weights)
        return recommend_many(release, factors, biases, indptr, items, k, rated=rated, n_threads=n_threads).positions

    return rank


def _ndcg(found: NDArray[np.bool_], n_sought: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Return each person's normalized discounted cumulative gain at k."""
    gains = 1.0 / np.log2(np.arange(k) + 2.0)
    best = np.cumsum(gains)[np.minimum(n_sought, k) - 1]
    return np.asarray(found @ gains[: found.shape[1]] / best)
