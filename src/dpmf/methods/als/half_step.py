"""Half a step of alternating least squares for observations: all rows of one side, the other side held.

>>> import numpy as np
>>> from dpmf.ratings import Ratings
>>> users = SparseRows.by_user(Ratings.of([1, 2], [7, 8], [1, 1], scale=(0, 1)))
>>> V, U = np.eye(2, 16, dtype=np.float32), np.zeros((2, 16), np.float32)
>>> round(improve_rows(users, V, U, 1.0, n_threads=1), 3)
3.333
>>> U[:, :2].round(3).tolist()
[[0.6669999957084656, 0.0], [0.0, 0.6669999957084656]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import factor_rows
from dpmf.engine.sparse import SparseRows
from dpmf.engine.threads import run_tasks
from dpmf.kernels.als import add_gramian
from dpmf.kernels.conjugate import improve_observed
from dpmf.kernels.whitening import transform_rows, whitening_of

Array = NDArray[np.float32]
_TASKS = 32  # from the data alone, so that any number of threads adds up the same parts


def gramian_of(rows: Array, n_threads: int) -> NDArray[np.float64]:
    """Return Σ v v' over all rows, the same for any number of threads."""
    bounds = _bounds(len(rows))
    parts = np.zeros((_TASKS, rows.shape[1], rows.shape[1]))

    def work(task: int) -> None:
        add_gramian(rows, bounds[task], bounds[task + 1], parts[task])

    run_tasks(work, _TASKS, n_threads)
    return np.asarray(parts.sum(axis=0))


def improve_rows(side: SparseRows, others: Array, factors: Array, ridge: float, n_threads: int) -> float:
    """Improve the factors of one side and return the objective; rows without observations get zeros.

    Args:
        side: the observations of each row; its values are weights.
        others: factors of the other side, without gaps.
        factors: (out) where to start, and the improved factors.
        ridge: the penalty on both sides.
        n_threads: changes the speed, never the result.
    """
    gramian = gramian_of(others, n_threads)
    white = whitening_of(gramian, ridge)
    whitened, bounds = factor_rows(*others.shape), _bounds(len(others))

    def whiten(task: int) -> None:
        transform_rows(others, bounds[task], bounds[task + 1], white.turned, False, whitened)

    def improve(start: int, stop: int) -> float:
        transform_rows(factors, start, stop, white.root, True, factors)
        objective = improve_observed(side.csr, start, stop, whitened, factors)
        transform_rows(factors, start, stop, white.inverse, True, factors)
        return objective

    run_tasks(whiten, _TASKS, n_threads)
    return side.visit(improve, n_threads) + ridge * float(np.trace(gramian))


def _bounds(n_rows: int) -> NDArray[np.int64]:
    return np.linspace(0, n_rows, _TASKS + 1).astype(np.int64)
