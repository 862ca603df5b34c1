"""Figures of a release on held-out ratings, found by the workers of a cluster, where the ratings are.

Each worker splits the ratings of its own users as one machine would, folds these users in, and returns sums over them.
Figures are those of `dpmf.evaluation.evaluate`, up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.cluster import Ray
from dpmf.engine.shares import Share, shares_of
from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.evaluation import baseline_errors, evaluate
from dpmf.evaluation.accuracy import popularity_figures, relevant_items
from dpmf.evaluation.leak import frequent
from dpmf.evaluation.metrics import rmse
from dpmf.model import Release
from dpmf.ratings import Ratings
from dpmf.runs.parts import Split
from dpmf.runs.reading import as_weighed


class Found(NamedTuple):
    """What a worker found.

    Attributes:
        n_ratings: held out from its users.
        n_asked: its users with held-out items that should be in their lists.
        figures: means, over ratings or over those users.
    """

    n_ratings: int
    n_asked: int
    figures: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Tester:
    """The users of a share, with what is held out from them."""

    share: Share
    release: Release
    split: Split
    n_threads: int

    def popularity(self) -> NDArray[np.int64]:
        """Return how many of the ratings that are not held out each item has."""
        known, _ = self._parts()
        return np.bincount(known.items, minlength=known.n_items)

    def test(self, k: int, least: int, popularity: NDArray[np.int64]) -> Found:
        """Return the figures of the worker's users.

        Args:
            k: the length of the lists.
            least: test ratings whose user or item has fewer known ratings are left out.
            popularity: of items, with everybody.
        """
        known, test = self._parts()
        test = frequent(known, test, least, popularity)
        if not len(test):
            return Found(0, 0, {})
        figures = evaluate(self.release, test, known=known, k=k, n_threads=self.n_threads)
        if self.release.predicts_ratings:
            figures["baseline_rmse"] = rmse(baseline_errors(known, test))
        if _lists(self.release):
            popular = popularity_figures(self.release, known, test, k=k, counts=popularity)
            figures |= {f"popularity_{name}": popular[name] for name in (f"recall@{k}", f"ndcg@{k}")}
        asked = int(np.count_nonzero(np.diff(relevant_items(self.release, test)[0])))
        return Found(len(test), asked, figures)

    def _parts(self) -> tuple[Ratings, Ratings]:
        """Return the ratings to fold in, and those to test on."""
        ratings = as_weighed(self.release, str(self.share.folder), self.share.read(with_times=True))
        return ratings.split(self.split.holdout, seed=self.split.seed, how=self.split.how)


def _lists(release: Release) -> bool:
    """Return whether lists are what a release is for, which are compared with those of popularity."""
    return release.is_implicit or release.ranks


def evaluate_on(
    executor: Ray,
    store: StoredRatings,
    release: Release,
    split: Split,
    *,
    k: int = 10,
    least_ratings: int = 0,
    n_threads: int | None = None,
) -> dict[str, float]:
    """Return rmse, mae and baseline_rmse, unless there are no ratings to predict, recall@k, ndcg@k and hit_rate@k.

    If the release ranks, also popularity_recall@k and popularity_ndcg@k, of the most popular items for everybody.

    Args:
        executor: the cluster.
        store: the ratings, in a catalogue that is the release's.
        release: into which people are folded with what is not held out.
        split: what is held out.
        k: the length of the lists.
        least_ratings: test ratings whose user or item has fewer ratings that are not held out are left out.
        n_threads: of each worker.
    """
    executor.check()
    if not np.array_equal(store.catalogue.ids.keys, release.items.ids.keys):
        raise InvalidArgument(
            "the store has another catalogue than the release: ingest the ratings again, with the items of the release"
        )
    with executor.start(n_threads) as cluster:
        shares = shares_of(store, cluster.n_workers)
        with cluster.team(Tester, [(share, release, split, cluster.n_threads) for share in shares]) as team:
            popularity = sum(team.ask("popularity"), start=np.zeros(store.n_items, np.int64))
            found = list(team.ask("test", k, least_ratings, popularity))
    if not sum(one.n_ratings for one in found):
        remedy = "hold out a larger part" + (", or ask for fewer known ratings" if least_ratings else "")
        raise InvalidArgument(f"there are no test ratings: {remedy}")
    figures: dict[str, float] = {}
    if release.predicts_ratings:
        figures = {
            "rmse": math.sqrt(_mean(found, "rmse", over_ratings=True, power=2)),
            "mae": _mean(found, "mae", over_ratings=True),
            "baseline_rmse": math.sqrt(_mean(found, "baseline_rmse", over_ratings=True, power=2)),
        }
    names = [f"recall@{k}", f"ndcg@{k}", f"hit_rate@{k}"]
    if _lists(release):
        names += [f"popularity_recall@{k}", f"popularity_ndcg@{k}"]
    return figures | {name: _mean(found, name) for name in names}


def _mean(found: list[Found], name: str, *, over_ratings: bool = False, power: int = 1) -> float:
    """Return the mean of a figure's power over all ratings, or all users who count."""
    weights = [(one.n_ratings if over_ratings else one.n_asked, one) for one in found]
    total = sum(weight for weight, _ in weights)
    if not total:
        return math.nan
    return sum(weight * one.figures[name] ** power for weight, one in weights if weight) / total
