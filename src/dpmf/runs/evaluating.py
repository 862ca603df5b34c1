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

from dpmf.engine.cluster import Ray
from dpmf.engine.shares import Share, shares_of
from dpmf.engine.store import StoredRatings
from dpmf.errors import InvalidArgument
from dpmf.evaluation import baseline_errors, evaluate
from dpmf.evaluation.accuracy import relevant_items
from dpmf.evaluation.metrics import rmse
from dpmf.model import Release
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

    def test(self, k: int) -> Found:
        """Return the figures of the worker's users."""
        ratings = as_weighed(self.release, str(self.share.folder), self.share.read(with_times=True))
        known, test = ratings.split(self.split.holdout, seed=self.split.seed, how=self.split.how)
        if not len(test):
            return Found(0, 0, {})
        figures = evaluate(self.release, test, known=known, k=k, n_threads=self.n_threads)
        if self.release.predicts_ratings:
            figures["baseline_rmse"] = rmse(baseline_errors(known, test))
        asked = int(np.count_nonzero(np.diff(relevant_items(self.release, test)[0])))
        return Found(len(test), asked, figures)


def evaluate_on(
    executor: Ray, store: StoredRatings, release: Release, split: Split, *, k: int = 10, n_threads: int | None = None
) -> dict[str, float]:
    """Return rmse, mae and baseline_rmse, unless there are no ratings to predict, recall@k, ndcg@k and hit_rate@k.

    Args:
        executor: the cluster.
        store: the ratings, in a catalogue that is the release's.
        release: into which people are folded with what is not held out.
        split: what is held out.
        k: the length of the lists.
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
            found = list(team.ask("test", k))
    if not sum(one.n_ratings for one in found):
        raise InvalidArgument("there are no test ratings: hold out a larger part")
    figures: dict[str, float] = {}
    if release.predicts_ratings:
        figures = {
            "rmse": math.sqrt(_mean(found, "rmse", over_ratings=True, power=2)),
            "mae": _mean(found, "mae", over_ratings=True),
            "baseline_rmse": math.sqrt(_mean(found, "baseline_rmse", over_ratings=True, power=2)),
        }
    return figures | {name: _mean(found, name) for name in (f"recall@{k}", f"ndcg@{k}", f"hit_rate@{k}")}


def _mean(found: list[Found], name: str, *, over_ratings: bool = False, power: int = 1) -> float:
    """Return the mean of a figure's power over all ratings, or all users who count."""
    weights = [(one.n_ratings if over_ratings else one.n_asked, one) for one in found]
    total = sum(weight for weight, _ in weights)
    if not total:
        return math.nan
    return sum(weight * one.figures[name] ** power for weight, one in weights if weight) / total
