"""Sums over people that leave through the mechanism, formed by several threads.

Integers add up to the same total in any order, so the sums are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.layout import equal_masses
from dpmf.engine.threads import run_tasks
from dpmf.methods.certified.questions import add_people
from dpmf.privacy.mechanism import Mechanism
from dpmf.ratings import Ratings

Array = NDArray[np.float64]
Add = Callable[[int, int, float, NDArray[np.int64]], None]


def over_users(ratings: Ratings, work: Callable[[int, int, int], Any], n_tasks: int, n_threads: int) -> None:
    """Call work(task, first, last) for ranges of users with about the same number of ratings."""
    starts = equal_masses(np.diff(ratings.indptr) + 1, n_tasks).tolist()
    run_tasks(lambda task: work(task, starts[task], starts[task + 1]), n_tasks, n_threads)


def release_sum(
    mechanism: Mechanism,
    what: str,
    bound: float,
    shape: int | tuple[int, ...],
    add: Add,
    counted: Ratings,
    n_threads: int,
) -> Array:
    """Sum everybody's contributions, and release the sum.

    Args:
        mechanism: adds the noise.
        what: the name of the event.
        bound: the L2 sensitivity.
        shape: of the sum.
        add: called with first and last user, steps of the grid per unit, and the sums to add to.
        counted: the ratings, to share out by.
        n_threads: how many threads to use.
    """
    return release_sum_of_parts(mechanism, what, bound, shape, [(counted, add)], n_threads)


def release_sum_of_parts(
    mechanism: Mechanism,
    what: str,
    bound: float,
    shape: int | tuple[int, ...],
    parts: Iterable[tuple[Ratings, Add]],
    n_threads: int,
) -> Array:
    """Sum everybody's contributions where not all people are in memory at once, and release the sum.

    Args:
        mechanism, what, bound, shape, n_threads: as in `release_sum`.
        parts: ratings of some people at a time, each with what adds their contributions; nobody comes twice.
    """
    steps = mechanism.steps(what, bound)
    sums = [np.zeros(shape, np.int64) for _ in range(n_threads)]
    for counted, add in parts:

        def add_some(task: int, first: int, last: int, add: Add = add) -> None:
            add(first, last, steps, sums[task])

        over_users(counted, add_some, n_threads, n_threads)
    while len(sums) > 1:
        sums[0] += sums.pop()
    return mechanism.release(what, sums[0], bound)


def release_user_count(mechanism: Mechanism, what: str, bound: float, shares: Array) -> float:
    """Release how many users there are, everybody counted by their share; never less than noise alone may make it."""
    steps = mechanism.steps(what, bound)
    total = np.zeros(1, np.int64)
    add_people(shares, steps, total)
    noise = 3 * mechanism.sd(what, bound)
    return max(float(mechanism.release(what, total, bound)[0]), noise, 1.0)
