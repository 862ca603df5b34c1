"""Biased matrix factorization by stochastic gradient descent. Fast, accurate, and not private.

A rating is predicted as mean + b_i + c_j + u_i·v_j; squared error with an L2 penalty per rating is minimised by
visiting all ratings once per epoch in the order of the block grid. The same seed gives the same bits for any number
of threads.

>>> from dpmf.ratings import Ratings
>>> ratings = Ratings.of([1, 1, 2, 2], [1, 2, 1, 2], [5, 1, 4, 2], scale=(1, 5))
>>> model = SGD(n_factors=2, n_epochs=5).fit(ratings, n_threads=1)
>>> len(model.history)
5
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import random_factors
from dpmf.engine.grid import BlockGrid
from dpmf.engine.threads import run_blocks, run_tasks, thread_count
from dpmf.errors import DpmfError, InvalidArgument
from dpmf.kernels.scoring import predict_pairs
from dpmf.kernels.sgd import sgd_block
from dpmf.methods.checks import not_negative, positive, whole
from dpmf.model import EpochRecord, Model, Release, Ridge
from dpmf.privacy import Guarantee
from dpmf.ratings import Ratings
from dpmf.streams import stream_key

Callback = Callable[[EpochRecord], bool | None]
_LAST_RATE = 0.02  # of the first, where a linear decay ends
_USUAL_WIDTH = 4.0  # of the scale 1 to 5, for which learning rate and penalty are stated; others are converted


@dataclass(frozen=True)
class SGD:
    """Configuration of the method.

    Attributes:
        n_factors: K, the length of the factor vectors.
        n_epochs: how often every rating is visited.
        learning_rate: eta, in the first epoch, for a scale as wide as 1 to 5; other scales are converted to it.
        regularization: lambda, the penalty on squared factors and biases per rating, likewise.
        decay: "linear" lets eta fall in a straight line towards 0; a number gamma gives eta / epoch^gamma.
        initial_sd: standard deviation of u_i·v_j before the first update, likewise.
        validation: the fraction of the ratings kept apart to stop early; 0 for none.
        patience: how many epochs without a better validation error end the training.
        seed: fixes initial factors and the validation part.
    """

    n_factors: int = 64
    n_epochs: int = 30
    learning_rate: float = 0.02
    regularization: float = 0.06
    decay: float | Literal["linear"] = "linear"
    initial_sd: float = 0.05
    validation: float = 0.0
    patience: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        whole("n_factors", self.n_factors)
        whole("n_epochs", self.n_epochs)
        whole("patience", self.patience)
        whole("seed", self.seed, least=0)
        positive("learning_rate", self.learning_rate)
        positive("initial_sd", self.initial_sd)
        not_negative("regularization", self.regularization)
        if not 0 <= self.validation < 1:
            raise InvalidArgument(
                f"validation={self.validation} is not a fraction: give 0 or a number below 1, such as 0.1"
            )
        if self.decay != "linear":
            not_negative("decay", self.decay)

    def fit(self, ratings: Ratings, *, n_threads: int | None = None, callbacks: Iterable[Callback] = ()) -> Model:
        """Train on ratings.

        Args:
            ratings: what to learn from.
            n_threads: all CPUs this process may use by default. It changes the speed, never the result.
            callbacks: called with the record of each epoch when it ends; one that returns True ends the training.
        """
        n_threads = thread_count(n_threads)
        if not len(ratings):
            raise InvalidArgument("there are no ratings to train on")
        training, held_out = ratings, None
        if self.validation:
            training, held_out = ratings.split(self.validation, seed=self.seed)
            if not len(training) or not len(held_out):
                raise InvalidArgument(f"validation={self.validation} leaves nothing to train on or to validate with")
        state = _State.start(self, training, n_threads)
        watch = None if held_out is None else _Validation(state, held_out, self.patience, n_threads)
        history: list[EpochRecord] = []
        for epoch in range(1, self.n_epochs + 1):
            record = state.run_epoch(epoch, self.rate(epoch), self.regularization, n_threads)
            if watch is not None:
                record = watch.measure(record)
            history.append(record)
            stops = [callback(record) is True for callback in callbacks]
            if any(stops) or (watch is not None and watch.exhausted):
                break
        if watch is not None:
            watch.restore_best()
        return self._model(ratings, state, tuple(history))

    def rate(self, epoch: int) -> float:
        """Return eta in an epoch, counted from 1."""
        if self.decay == "linear":
            return self.learning_rate * max(1 - (epoch - 1) / self.n_epochs, _LAST_RATE)
        return float(self.learning_rate / epoch**self.decay)

    def _model(self, ratings: Ratings, state: _State, history: tuple[EpochRecord, ...]) -> Model:
        K = self.n_factors
        user_factors, item_factors = (
            np.empty((ratings.n_users, K), np.float32),
            np.empty((ratings.n_items, K), np.float32),
        )
        user_biases, item_biases = np.empty(ratings.n_users, np.float32), np.empty(ratings.n_items, np.float32)
        user_factors[state.grid.user_order], user_biases[state.grid.user_order] = state.U[:, :K], state.b
        item_factors[state.grid.item_order], item_biases[state.grid.item_order] = state.V[:, :K], state.c
        release = Release(
            items=ratings.catalogue,
            scale=ratings.scale,
            mean=state.mean,
            item_factors=item_factors,
            item_biases=item_biases,
            # SGD applies the penalty once per rating, so a person's own fit does the same.
            ridge=Ridge(bias=self.regularization, factors=self.regularization * state.unit, per_rating=True),
            configuration={"method": "sgd", **asdict(self)},
            guarantee=Guarantee.none(),
        )
        return Model(release, ratings.user_ids, user_factors, user_biases, ratings.indptr, ratings.items, history)


@dataclass(eq=False)
class _State:
    """What training changes, in the grid's numbering: U, V factors, b, c biases; `unit` as in the kernel."""

    grid: BlockGrid
    U: NDArray[np.float32]
    V: NDArray[np.float32]
    b: NDArray[np.float32]
    c: NDArray[np.float32]
    mean: float
    unit: float

    @classmethod
    def start(cls, method: SGD, ratings: Ratings, n_threads: int) -> _State:
        grid = BlockGrid.build(ratings, n_threads=n_threads)
        unit = (ratings.scale.hi - ratings.scale.lo) / _USUAL_WIDTH
        sd = math.sqrt(method.initial_sd * unit) / method.n_factors**0.25
        user_keys, item_keys = ratings.user_ids.keys[grid.user_order], ratings.catalogue.ids.keys[grid.item_order]
        return cls(
            grid,
            random_factors(stream_key(method.seed, "user factors"), user_keys, method.n_factors, sd),
            random_factors(stream_key(method.seed, "item factors"), item_keys, method.n_factors, sd),
            np.zeros(ratings.n_users, np.float32),
            np.zeros(ratings.n_items, np.float32),
            float(ratings.values.mean(dtype=np.float64)),
            unit,
        )

    def run_epoch(self, epoch: int, rate: float, regularization: float, n_threads: int) -> EpochRecord:
        grid = self.grid
        mean, eta, lam, unit = (np.float32(one) for one in (self.mean, rate, regularization, self.unit))

        def visit(strip: int, tier: int) -> float:
            block = strip * grid.size + tier
            return sgd_block(
                grid.users, grid.items, grid.values, grid.pointers[block], grid.pointers[block + 1],
                self.U, self.V, self.b, self.c, mean, eta, lam, unit,
            )  # fmt: skip

        began = time.perf_counter()
        squared = float(run_blocks(visit, grid.size, n_threads).sum())
        seconds = time.perf_counter() - began
        if not math.isfinite(squared):
            raise DpmfError(f"training diverged in epoch {epoch}: use a smaller learning_rate than the one given")
        return EpochRecord(epoch, seconds, math.sqrt(squared / len(grid)))


class _Validation:
    """Watches the error on ratings kept apart, and remembers the best state."""

    def __init__(self, state: _State, held_out: Ratings, patience: int, n_threads: int) -> None:
        grid = state.grid
        self._state = state
        self._users = np.argsort(grid.user_order)[held_out.users].astype(np.int32)
        self._items = np.argsort(grid.item_order)[held_out.items].astype(np.int32)
        self._ratings = held_out
        self._patience = patience
        self._n_threads = n_threads
        self._best = math.inf
        self._since_best = 0
        self._kept: list[NDArray[np.float32]] = []

    @property
    def exhausted(self) -> bool:
        return self._since_best >= self._patience

    def measure(self, record: EpochRecord) -> EpochRecord:
        state, scale = self._state, self._ratings.scale
        predicted = np.empty(len(self._users), np.float32)
        chunk = 1 << 16

        def predict(task: int) -> None:
            first = task * chunk
            last = min(first + chunk, len(predicted))
            predict_pairs(
                self._users, self._items, state.U, state.V, state.b, state.c, state.mean, first, last, predicted
            )

        run_tasks(predict, -(-len(predicted) // chunk), self._n_threads)
        errors = np.clip(predicted, scale.lo, scale.hi).astype(np.float64) - self._ratings.values
        rmse = math.sqrt(float(np.mean(errors**2)))
        self._since_best += 1
        if rmse < self._best:
            self._best, self._since_best = rmse, 0
            self._kept = [state.U.copy(), state.V.copy(), state.b.copy(), state.c.copy()]
        return EpochRecord(record.epoch, record.seconds, record.train_rmse, rmse)

    def restore_best(self) -> None:
        state = self._state
        for target, kept in zip((state.U, state.V, state.b, state.c), self._kept, strict=True):
            target[:] = kept
