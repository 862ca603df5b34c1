"""Early stopping: measure the error on held-out ratings, and return to the best state.

>>> from dpmf.methods import SGD
>>> from dpmf.ratings.synthetic import make
>>> model = SGD(n_factors=4, n_epochs=50, learning_rate=0.1, validation=0.2, patience=2).fit(make(60, 40), n_threads=1)
>>> len(model.history) < 50
True
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.checkpoints import Snapshot
from dpmf.engine.threads import run_tasks
from dpmf.kernels.scores import predict_pairs
from dpmf.methods.sgd.descent import Descent
from dpmf.model import EpochRecord
from dpmf.ratings import Ratings

_PAIRS_PER_TASK = 1 << 16


class EarlyStopping:
    """Measures a descent after each epoch."""

    def __init__(self, state: Descent, held_out: Ratings, patience: int, n_threads: int) -> None:
        layout = state.grid.layout
        self._state = state
        self._users = np.argsort(layout.user_order)[held_out.users].astype(np.int32)
        self._items = np.argsort(layout.item_order)[held_out.items].astype(np.int32)
        self._ratings = held_out
        self._patience = patience
        self._n_threads = n_threads
        self._best = math.inf
        self._since_best = 0
        self._best_state: dict[str, NDArray[Any]] = {}

    @property
    def exhausted(self) -> bool:
        """Whether the error has not improved for `patience` epochs."""
        return self._since_best >= self._patience

    def measure(self, record: EpochRecord) -> EpochRecord:
        """Return the record with the validation error, and copy the state if it is the best so far."""
        state, scale = self._state, self._ratings.scale
        predicted = np.empty(len(self._users), np.float32)
        V = state.item_factors

        def predict(task: int) -> None:
            part = slice(task * _PAIRS_PER_TASK, (task + 1) * _PAIRS_PER_TASK)
            pairs = self._users[part], self._items[part]
            predict_pairs(*pairs, state.U, V, state.b, state.c, state.grid.mean, predicted[part])

        run_tasks(predict, -(-len(predicted) // _PAIRS_PER_TASK), self._n_threads)
        errors = np.clip(predicted, scale.lo, scale.hi).astype(np.float64) - self._ratings.values
        rmse = math.sqrt(float(np.mean(errors**2)))
        self._since_best += 1
        if rmse < self._best:
            self._best, self._since_best = rmse, 0
            self._best_state = {name: array.copy() for name, array in state.parameters().items()}
        return replace(record, validation_rmse=rmse)

    def restore_best(self) -> None:
        """Return to the best state."""
        for name, array in self._state.parameters().items():
            array[:] = self._best_state[name]

    def progress(self) -> tuple[dict[str, NDArray[Any]], dict[str, float]]:
        """Return what a snapshot must hold: the best state, and how many epochs ago it was."""
        tensors = {f"best_{name}": array for name, array in self._best_state.items()}
        return tensors, {"best": self._best, "since_best": self._since_best}

    def restore(self, found: Snapshot) -> None:
        """Restore what `progress` returned, from a snapshot that has it as `stopping`."""
        facts = found.facts["stopping"]
        self._best_state = {name: found.tensors[f"best_{name}"] for name in self._state.parameters()}
        self._best, self._since_best = float(facts["best"]), int(facts["since_best"])
