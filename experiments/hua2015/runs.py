"""One run of S1, S2, S3 or plain factorization, with its errors at several points along the way.

S1 first fits users and items without noise, which is the baseline; then it keeps the users and restarts the items, with
one draw of noise on the objective. Its iterations are the steps of the items. S2 and S3 are `Rounds`. Settings are the
published ones: 50 factors, steps of 2⁻⁵, penalties of 0.001; in S3 at most 1,000 people take part in a round for
Netflix and 100 for MovieLens, who come with probability 0.005 and leave with 0.01.

>>> composed("S1", 0.1, 100), composed("S3", 0.5, 9)
(0.1, 5.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmf import Ratings
from dpmf.engine.sparse import SparseRows
from dpmf.errors import InvalidArgument
from dpmf.evaluation import baseline_errors
from dpmf.evaluation.metrics import rmse
from dpmf.federated.published import Scenario
from dpmf.methods.gaussian.descent import Floats
from dpmf.methods.objective import PUBLISHED
from dpmf.methods.objective.items import PerturbedItems, noise_vectors, plain_fit
from dpmf.privacy.noise import Noise
from experiments.hua2015.data import is_large
from experiments.hua2015.errors import BOUNDS, column, figures_of, predictions
from experiments.hua2015.rounds import Rounds

K: int = PUBLISHED["n_factors"]
ITERATIONS: int = PUBLISHED["n_epochs"]
_RATE, _PENALTY = PUBLISHED["learning_rate"], PUBLISHED["regularization"]
NONE, WHOLE, DIVIDED = "none", "as claimed", "divided by the ratings"
"""Noise: none; as the theorem requires; and divided by the number of ratings, which protects no one."""


@dataclass(frozen=True)
class Trial:
    """A run of one scenario.

    Attributes:
        scenario: "plain", "S1", "S2" or "S3".
        epsilon: the claimed ε.
        noise: `WHOLE` or `DIVIDED`; `NONE` with an infinite epsilon.
        come, leave: probabilities, for S3.
    """

    scenario: str
    epsilon: float = math.inf
    noise: str = NONE
    come: float = 0.005
    leave: float = 0.01


def composed(scenario: str, epsilon: float, iterations: int) -> float:
    """Return the composed ε: the claim itself for S1; (T + 1) ε for T rounds, if profiles never moved."""
    return epsilon * (iterations + 1) if scenario in ("S2", "S3") else epsilon


@dataclass(frozen=True)
class Plain:
    """Plain factorization: the ratings by item, the initial items, and the factors after 100 iterations."""

    items: SparseRows
    start: Floats
    U: Floats
    V: Floats


@dataclass(frozen=True, eq=False)
class Part:
    """Training ratings, and held-out ratings if there are any.

    Attributes:
        train: the training ratings.
        per_round: the number of people in a round of S3.
        seed: of initial factors, and of who is online.
        n_threads: the number of threads.
        test: the held-out ratings.
    """

    train: Ratings
    per_round: int
    seed: int
    n_threads: int
    test: Ratings | None = None

    @classmethod
    def of(cls, train: Ratings, whole: Ratings, seed: int, n_threads: int, test: Ratings | None = None) -> Part:
        """Return a part of the ratings of a whole set."""
        return cls(train, 1000 if is_large(whole) else 100, seed, n_threads, test)

    @cached_property
    def plain(self) -> Plain:
        """Plain factorization: the baseline, and S1's users."""
        state = plain_fit(self.train, K, _RATE, _PENALTY, seed=self.seed, n_threads=self.n_threads)
        start = state.X.copy()
        for number in range(ITERATIONS):
            state.advance(number, self.n_threads)
        return Plain(state.items, start, state.T, state.X)

    def curve(self, trial: Trial, at: Sequence[int]) -> list[dict[str, Any]]:
        """Return the errors after each of these numbers of iterations, ascending."""
        if trial.scenario == "plain":
            return [self._figures(ITERATIONS, self.plain.U, self.plain.V, 1.0)]
        return self._trusted(trial, at) if trial.scenario == "S1" else self._rounds(trial, at)

    def _trusted(self, trial: Trial, at: Sequence[int]) -> list[dict[str, Any]]:
        plain, of = self.plain, self.train
        eta = np.zeros((of.n_items, K))
        if trial.noise != NONE:
            eta = noise_vectors(Noise(None), 2 * (of.scale.hi - of.scale.lo) / trial.epsilon, eta.shape)
        if trial.noise == DIVIDED:  # steps divide by the number of ratings of an item
            eta *= np.diff(plain.items.indptr)[:, None] / len(of)
        items = PerturbedItems(plain.items, plain.start.copy(), eta, _RATE, _PENALTY)

        def advance(count: int) -> tuple[Floats, Floats, float]:
            for _ in range(count):
                items.advance(plain.U, self.n_threads)
            return plain.U, items.V, 1.0

        return self._curve(at, advance)

    def _rounds(self, trial: Trial, at: Sequence[int]) -> list[dict[str, Any]]:
        epsilon = math.inf if trial.noise == NONE else trial.epsilon
        scenario = Scenario(
            "s2" if trial.scenario == "S2" else "s3",
            max(at),
            epsilon,
            per_round=self.per_round,
            come=trial.come,
            leave=trial.leave,
            n_factors=K,
            learning_rate=_RATE,
            regularization=_PENALTY,
            seed=self.seed,
        )
        rounds = Rounds(self.train, scenario, divided=trial.noise == DIVIDED)

        def advance(count: int) -> tuple[Floats, Floats, float]:
            rounds.play(count)
            return *rounds.profiles(self.n_threads), float(rounds.asked.mean())

        return self._curve(at, advance)

    def _curve(self, at: Sequence[int], advance: Callable[[int], tuple[Floats, Floats, float]]) -> list[dict[str, Any]]:
        rows, done = [], 0
        for iterations in at:
            try:
                rows.append(self._figures(iterations, *advance(iterations - done)))
            except InvalidArgument:  # it has diverged
                rows.append(self._diverged(iterations))
            done = iterations
        return rows

    def _figures(self, iterations: int, U: Floats, V: Floats, took_part: float) -> dict[str, Any]:
        U, V, of = U[:, :K], V[:, :K], self.train
        found = figures_of(predictions(U, V, of), of.values, (of.scale.lo, of.scale.hi))
        tested = {}
        if self.test is not None:
            predicted = predictions(U, V, self.test)
            clamped = np.clip(predicted, of.scale.lo, of.scale.hi)
            tested = {
                "rmse": rmse(predicted - self.test.values),
                "clamped_rmse": rmse(clamped - self.test.values),
                "baseline_rmse": rmse(baseline_errors(of, self.test)),
            }
        return {"iterations": iterations, "took_part": took_part, **found, **tested}

    def _diverged(self, iterations: int) -> dict[str, Any]:
        tested = ("rmse", "clamped_rmse", "baseline_rmse") if self.test is not None else ()
        names = ("mean_error", "clamped_mean_error", *tested)
        return {
            "iterations": iterations,
            "took_part": 1.0,
            **dict.fromkeys(names, math.inf),
            **dict.fromkeys(map(column, BOUNDS), 0.0),
        }
