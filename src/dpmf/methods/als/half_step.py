"""Half a step of alternating least squares: rows of one side are solved for, the other side held.

Every row is a problem of its own, so rows may be solved for in parts, anywhere, to the same bits.

>>> import numpy as np
>>> from dpmf.ratings import Ratings
>>> users = SparseRows.by_user(Ratings.of([1, 2], [7, 8], [1, 1], scale=(0, 1)))
>>> V, U = Rows.zeros(2, 2), Rows.zeros(2, 2)
>>> V.factors[:, :2] = np.eye(2)
>>> half = observed_half(1.0, V, n_threads=1)
>>> float((half.solve(users, U, 1).sum() + half.everywhere).round(3))
3.333
>>> U.factors[:, :2].round(3).tolist()
[[0.6669999957084656, 0.0], [0.0, 0.6669999957084656]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import factor_rows
from dpmf.engine.sparse import SparseRows
from dpmf.engine.threads import run_tasks
from dpmf.kernels.als import add_gramian, solve_rated
from dpmf.kernels.conjugate import improve_observed
from dpmf.kernels.ridge import Penalties
from dpmf.kernels.whitening import transform_rows, whitening_of

Array = NDArray[np.float32]
_TASKS = 32  # from the data alone, so that any number of threads adds up the same parts


class Rows(NamedTuple):
    """Factors, padded, and biases of users or of items."""

    factors: Array
    biases: Array

    @classmethod
    def zeros(cls, n_rows: int, n_factors: int) -> Rows:
        """Return rows of zeros."""
        return cls(factor_rows(n_rows, n_factors), np.zeros(n_rows, np.float32))


class Half(NamedTuple):
    """Half a step, the other side held.

    Attributes:
        solve: solve(side, own, n_threads) solves for all rows of one side, given their ratings, or weights of their
            observations, and returns what each adds to the objective.
        everywhere: what the objective has beside that.
    """

    solve: Callable[[SparseRows, Rows, int], NDArray[np.float64]]
    everywhere: float


class Problem(Protocol):
    """What is minimised: makes a half step of the side that is held."""

    def __call__(self, others: Rows, n_threads: int) -> Half:
        """Return the half step; others have the numbers that the ratings' columns have."""


def rated_half(mean: float, penalties: Penalties, others: Rows, n_threads: int) -> Half:
    """Return a half step for ratings, whose objective is the sum of squared errors: rows are solved exactly."""

    def solve(side: SparseRows, own: Rows, threads: int) -> NDArray[np.float64]:
        errors = np.empty(side.n_rows)

        def work(start: int, stop: int) -> float:
            held = others.factors, others.biases, mean, penalties
            solve_rated(side.csr, start, stop, *held, own.biases, own.factors, errors)
            return 0.0

        side.visit(work, threads)
        return errors

    return Half(solve, 0.0)


def observed_half(ridge: float, others: Rows, n_threads: int) -> Half:
    """Return a half step for observations: rows are improved from where they are; those without any get zeros.

    Args:
        ridge: the penalty on both sides.
        others: without gaps. Their biases are not used.
        n_threads: changes the speed, never the result.
    """
    held = others.factors
    gramian = gramian_of(held, n_threads)
    white = whitening_of(gramian, ridge)
    whitened, bounds = factor_rows(*held.shape), _bounds(len(held))

    def whiten(task: int) -> None:
        transform_rows(held, bounds[task], bounds[task + 1], white.turned, False, whitened)

    run_tasks(whiten, _TASKS, n_threads)

    def solve(side: SparseRows, own: Rows, threads: int) -> NDArray[np.float64]:
        factors, objectives = own.factors, np.empty(side.n_rows)

        def improve(start: int, stop: int) -> float:
            transform_rows(factors, start, stop, white.root, True, factors)
            improve_observed(side.csr, start, stop, whitened, factors, objectives)
            transform_rows(factors, start, stop, white.inverse, True, factors)
            return 0.0

        side.visit(improve, threads)
        return objectives

    return Half(solve, ridge * float(np.trace(gramian)))


def gramian_of(rows: Array, n_threads: int) -> NDArray[np.float64]:
    """Return Σ v v' over all rows, the same for any number of threads."""
    bounds = _bounds(len(rows))
    parts = np.zeros((_TASKS, rows.shape[1], rows.shape[1]))

    def work(task: int) -> None:
        add_gramian(rows, bounds[task], bounds[task + 1], parts[task])

    run_tasks(work, _TASKS, n_threads)
    return np.asarray(parts.sum(axis=0))


def _bounds(n_rows: int) -> NDArray[np.int64]:
    return np.linspace(0, n_rows, _TASKS + 1).astype(np.int64)
