"""People whose ratings are on the workers of a cluster: each worker sums the answers of its own, and this adds up.

What passes from a worker to whoever asks is a sum over all people of the worker, in whole numbers, and nothing else: no
ratings, and nobody's factors. A sum holds no noise, so a worker that is lost is asked again for the same sum; noise is
drawn once, by the mechanism, when all sums are there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.cluster import Cluster, Team
from dpmf.engine.shares import Share, positions_in, shares_of
from dpmf.engine.store import StoredRatings
from dpmf.methods.certified.answer import Answered, Asked, Errors, RatingsAnswerer
from dpmf.methods.certified.questions import Array, Fit, Integers
from dpmf.methods.counted import counted_ratings


class ClusterAnswerer:
    """People on the workers of a cluster, as `dpmf.methods.certified.answer.Answerer` says.

    Args:
        team: a `RatingsAnswerer` on each worker, for the people of its share.
        n_users: how many people there are on all workers.
    """

    def __init__(self, team: Team, n_users: int) -> None:
        self._team, self._n_users = team, n_users
        self._last = Errors()

    @property
    def n_users(self) -> int:
        """How many people there are."""
        return self._n_users

    def answer(self, asked: Sequence[Asked]) -> list[Integers]:
        """Return the exact sum of everybody's answers to each question, in steps of its grid."""
        total = Answered([np.zeros(one.question.shape, np.int64) for one in asked], Errors())
        for answered in self._team.ask("answered", asked):
            total += answered
        if total.errors.n_ratings:
            self._last = total.errors
        return total.sums

    def error(self, fit: Fit | None) -> float:
        """Return the root mean squared error of a fit over all ratings, or of those who answered last."""
        if fit is not None:
            return sum(self._team.ask("errors", fit), start=Errors()).root_mean
        return self._last.root_mean


@contextlib.contextmanager
def people_on(
    cluster: Cluster,
    ratings: StoredRatings,
    shares: NDArray[np.float64],
    caps: tuple[int | None, int | None],
    seed: int,
) -> Iterator[ClusterAnswerer]:
    """Yield people on the workers of a cluster.

    Args:
        cluster: its workers.
        ratings: which each worker reads its own part of.
        shares: what part of the full weight each user has.
        caps: how many ratings of a user count: at all, and towards sums; None for all.
        seed: of the choice of those that count.
    """
    dealt = shares_of(ratings, cluster.n_workers)
    positions = [positions_in(ratings, share) for share in dealt]
    arguments = [
        (share, where, shares[where], caps, seed, cluster.n_threads)
        for share, where in zip(dealt, positions, strict=True)
    ]
    with cluster.team(people_of, arguments) as team:
        yield ClusterAnswerer(team, ratings.n_users)


def people_of(
    share: Share, positions: Integers, shares: Array, caps: tuple[int | None, int | None], seed: int, n_threads: int
) -> RatingsAnswerer:
    """Return the people of a share, on the worker whose share it is."""
    with counted_ratings(share.read(), caps[0], seed=seed) as held:
        return RatingsAnswerer(held, shares, n_threads, cap=caps[1], seed=seed, positions=positions)
