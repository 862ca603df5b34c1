"""The published descent in several readings, one iteration at a time.

The paper's iteration is known only second-hand, from its pseudocode, and with the published step sizes some readings of
it do not converge. `GaussianGD` has the first two of `READINGS`; the others are tried only here. All compute both
gradients from the same factors, with the published noise on that of users.

>>> from dpmf.ratings.synthetic import make
>>> moments = descend(make(50, 40), Trial(n_factors=4, eps_i=math.inf), n_threads=1)
>>> next(moments).iterations, next(moments).iterations
(1, 2)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmf import Ratings
from dpmf.methods.gaussian.claim import Claim
from dpmf.methods.gaussian.defaults import PUBLISHED
from dpmf.methods.gaussian.descent import FullGradients, Pace, drawn_noise
from dpmf.privacy.noise import Noise

Floats = NDArray[np.float32]
_CLIP = PUBLISHED["clip"]


@dataclass(frozen=True)
class Reading:
    """One reading of the pseudocode.

    Attributes:
        centred: whether the mean of the training ratings is subtracted; the paper uses raw ratings.
        users_clipped: whether user factors are shortened to C in the gradient of item factors, as item factors are in
            that of user factors.
        projected: whether item factors themselves are shortened to C after every step.
        averaged: whether gradients are means over the ratings of a row, not sums.
    """

    centred: bool = False
    users_clipped: bool = False
    projected: bool = False
    averaged: bool = False


READINGS: Mapping[str, Reading] = {
    "published, raw": Reading(),
    "published, mean": Reading(centred=True),
    "both clipped, raw": Reading(users_clipped=True),
    "both clipped, mean": Reading(centred=True, users_clipped=True),
    "projected, raw": Reading(projected=True),
    "averaged, raw": Reading(averaged=True),
}


@dataclass(frozen=True)
class Trial:
    """A run: a reading of the pseudocode, and its parameters.

    Attributes:
        reading: one of `READINGS`.
        eps_i: the ε of one iteration; infinity for no noise.
        n_factors: the paper's n.
        step: the paper's mu.
        seed: of the initial factors; noise is seeded only by `noise_seed`.
        noise_seed: for tests.
    """

    reading: str = "published, raw"
    eps_i: float = PUBLISHED["eps_i"]
    n_factors: int = PUBLISHED["n_factors"]
    step: float = PUBLISHED["learning_rate"]
    seed: int = 0
    noise_seed: int | None = None

    def claimed(self, width: float, n_iterations: int) -> float:
        """Return the overall ε that the paper claims after `n_iterations` on a scale of this width."""
        return math.inf if math.isinf(self.eps_i) else self._claim(width, n_iterations).by_renyi

    def sigma(self, width: float) -> float:
        """Return the standard deviation of the noise."""
        return 0.0 if math.isinf(self.eps_i) else self._claim(width, 1).sigma

    def _claim(self, width: float, n_iterations: int) -> Claim:
        return Claim(self.eps_i, PUBLISHED["delta_i"], PUBLISHED["delta_r"], width, _CLIP, n_iterations)


@dataclass(frozen=True, eq=False)
class Moment:
    """The state of a run after some iterations.

    Attributes:
        iterations: their number.
        train_rmse: on the training ratings, before the last iteration.
        T, X: factors of users and of items.
        centre: the constant term of predictions.
    """

    iterations: int
    train_rmse: float
    T: Floats
    X: Floats
    centre: float


def descend(train: Ratings, trial: Trial, *, n_threads: int) -> Iterator[Moment]:
    """Yield the state of a run after each iteration, without end; raise `InvalidArgument` when it diverges.

    The factors are not copied: they change with the next iteration.
    """
    reading, noise = READINGS[trial.reading], Noise(trial.noise_seed)
    centre = float(train.values.mean(dtype=np.float64)) if reading.centred else 0.0
    pace = Pace.constant(train, trial.step, PUBLISHED["regularization"])
    weights = np.ones((train.n_users, 1), np.float32)  # of the noise
    if reading.averaged:
        pace, weights = _averaged(train, pace)
    state = FullGradients.start(
        train,
        trial.n_factors,
        pace,
        centre=centre,
        unit=1.0,
        length=1.0,
        seed=trial.seed,
        clip=_CLIP,
        user_clip=_CLIP if reading.users_clipped else math.inf,
        n_threads=n_threads,
    )
    sigma, number = trial.sigma(train.scale.hi - train.scale.lo), 0
    while True:
        drawn = None
        if sigma:
            drawn = weights * drawn_noise(noise, sigma, number, (train.n_users, trial.n_factors), n_threads)
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run raises an error of its own
            error = state.advance(number, n_threads, drawn)
        if reading.projected:
            state.X *= np.minimum(1, _CLIP / np.maximum(np.linalg.norm(state.X, axis=1, keepdims=True), 1e-30))
        number += 1
        yield Moment(number, error, state.T, state.X, centre)


def _averaged(train: Ratings, pace: Pace) -> tuple[Pace, Floats]:
    """Return the pace and noise weights of mean gradients: gradients stay sums, so penalties and noise are scaled."""
    users = np.maximum(np.diff(train.indptr), 1).astype(np.float32)
    items = np.maximum(np.bincount(train.items, minlength=train.n_items), 1).astype(np.float32)
    slower = replace(
        pace,
        user_steps=pace.user_steps / users,
        user_penalties=pace.user_penalties * users,
        item_steps=pace.item_steps / items,
        item_penalties=pace.item_penalties * items,
    )
    return slower, users[:, None]
