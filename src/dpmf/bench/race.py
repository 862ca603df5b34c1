"""Alternating least squares for observations, dpmf and `implicit` in turns: how long each takes to the same objective.

An iteration each, so that a busy machine is busy for both; preparation (transposing, compiling, reading) is not
counted for either. Both start from random factors of their own and minimise the same function, which is measured by
the same code. An iteration of implicit takes three steps of conjugate gradients per row, its default, and one of dpmf
as many steps of another kind as a row needs: so not iterations are compared but the time to the same objective.

>>> fast, slow = [Point(1.0, 50.0), Point(2.0, 40.0)], [Point(3.0, 60.0), Point(6.0, 45.0)]
>>> Race(fast, slow).meeting()
Meeting(objective=45.0, dpmf_seconds=2.0, implicit_seconds=6.0)
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpmf.methods.als.plain import factorize_observations, observations_objective
from dpmf.model import EpochRecord
from dpmf.ratings import Ratings


class Point(NamedTuple):
    """Where a training is after an iteration: its seconds so far, and the objective."""

    seconds: float
    objective: float


class Meeting(NamedTuple):
    """An objective that both reached, and the seconds that each took to it."""

    objective: float
    dpmf_seconds: float
    implicit_seconds: float


@dataclass(frozen=True)
class Race:
    """A point per iteration of each."""

    dpmf: list[Point]
    implicit: list[Point]

    def meeting(self) -> Meeting:
        """Return the lowest objective that both reached, and when."""
        objective = max(self.dpmf[-1].objective, self.implicit[-1].objective)
        ours, theirs = seconds_to(objective, self.dpmf), seconds_to(objective, self.implicit)
        assert ours is not None
        assert theirs is not None
        return Meeting(objective, ours, theirs)


def seconds_to(objective: float, points: list[Point]) -> float | None:
    """Return the seconds of the iterations until one ended at the objective or below; None if none did."""
    return next((point.seconds for point in points if point.objective <= objective), None)


def iteration_seconds(points: list[Point]) -> float:
    """Return the median of the seconds of an iteration."""
    return float(np.median(np.diff([0.0, *(point.seconds for point in points)])))


def race(
    ratings: Ratings,
    *,
    n_factors: int,
    n_iterations: int = 15,
    alpha: float = 1.0,
    regularization: float = 0.01,
    seed: int = 0,
    n_threads: int,
    seconds: float = math.inf,
) -> Race:
    """Train both in turns; needs implicit, and OPENBLAS_NUM_THREADS=1 from the start of the process.

    Args:
        ratings: the pairs observed.
        n_factors, alpha, regularization, seed, n_threads: as in `factorize_observations`, for both.
        n_iterations: of each; the default is that of implicit.
        seconds: no iteration begins after both together have taken this long.
    """
    from implicit.cpu.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    same: dict[str, Any] = {"alpha": alpha, "regularization": regularization, "n_threads": n_threads}
    ours: list[Point] = []
    theirs: list[Point] = []
    peer = AlternatingLeastSquares(
        factors=n_factors,
        regularization=regularization,
        alpha=1.0,
        iterations=1,
        use_cg=True,
        num_threads=n_threads,
        random_state=seed,
    )
    # What it calls a confidence is the whole weight of an observed pair: 1 + alpha r.
    confidences = csr_matrix(
        (1 + np.float32(alpha) * ratings.values, ratings.items, ratings.indptr),
        shape=(ratings.n_users, ratings.n_items),
    )

    def add_theirs(_iteration: int, taken: float, _loss: float) -> None:
        objective = observations_objective(ratings, peer.user_factors, peer.item_factors, **same)
        theirs.append(Point(_last(theirs) + taken, objective))

    def take_turns(record: EpochRecord) -> bool:
        ours.append(Point(_last(ours) + record.seconds, record.train_rmse**2 * len(ratings)))
        peer.fit(confidences, show_progress=False, callback=add_theirs)  # resumes from the factors it has
        return _last(ours) + _last(theirs) >= seconds

    small = Ratings.of([1, 1, 2], [1, 2, 2], [1, 1, 1], scale=(0, 1))
    factorize_observations(small, n_factors=n_factors, n_epochs=1, **same)  # compiles
    factorize_observations(
        ratings, n_factors=n_factors, n_epochs=n_iterations, seed=seed, callbacks=[take_turns], **same
    )
    return Race(ours, theirs)


def _last(points: list[Point]) -> float:
    return points[-1].seconds if points else 0.0


def main() -> None:
    """Race on a file of users, items and values with settings as JSON, for `dpmf.bench.peers`."""
    path, settings = sys.argv[1:]
    columns = np.load(path)
    values = columns["values"]
    ratings = Ratings.of(columns["users"], columns["items"], values, scale=(0, max(1.0, float(values.max()))))
    found = race(ratings, **json.loads(settings))
    print("RESULT", json.dumps([found.dpmf, found.implicit]))  # noqa: T201
