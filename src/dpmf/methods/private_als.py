"""The rounds of private alternating least squares; see docs/proofs/als.md for why they are private.

Released are, each with Gaussian noise: the number of users; how often items are rated, twice; sums that item biases
are made of; and in every round second moments of the users' factors and sums that item factors are made of. All of
them are sums of contributions that `dpmf.kernels.bounded` bounds, and leave only through `Mechanism`. What is done with
them afterwards (averaging over rounds, shrinking) costs nothing.

Rounds do not start over. Each measures what is still missing, with residuals small enough to be clipped tightly, and
the measurements of all rounds are averaged: so the noise of all rounds together counts, not that of the last alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import fill_randomly
from dpmf.kernels.bounded import add_counts, add_item_moments, add_moments, symmetric
from dpmf.kernels.heldout import HeldOut, add_held_out_residuals
from dpmf.kernels.ridge import solve_people, squared_errors
from dpmf.methods.estimating import Estimate, standardized
from dpmf.methods.private_plan import BIASES, FACTORS, MOMENTS, POPULARITY, USERS, WEIGHTS, Plan, Stage
from dpmf.methods.summing import over_users, release_sum, release_user_count
from dpmf.privacy.mechanism import Mechanism
from dpmf.ratings import Ratings
from dpmf.streams import stream_key

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
_RADIUS = 1.0  # the longest factors of a user that count in full
_MEAN_SQUARE = 1.0  # of users' factors, to which they are scaled after every round
_ERROR = 0.7  # about the standard deviation of a residual, for a scale as wide as 1 to 5
_CLIP = 0.5  # likewise
_USUAL_WIDTH = 4.0
_SAMPLING = 0.03  # of the variance of a rating counts beside noise, as if people were a sample
_LEAST_TREND_GAIN = 6.0  # in likelihood, by the logarithm, of the trend of a factor along popularity
_LEAST_BIAS_GAIN, _LEAST_LEVEL_GAIN = 2.0, 12.0  # likewise, of biases: of deviations from their trend, and of the trend
_START_SD, _START_REACH = 0.1, 5.0
_RARE_EXPONENT = 0.3
_EARLY_RIDGE = 0.2  # the penalty on users' factors until the release is final: what is held down is not measured
_USER_BIAS_RIDGE = 3.0
_LONE_BIAS_RIDGE = 0.1  # the same as long as the common level is not known: the middle of the scale is a poor guess


@dataclass(eq=False)
class PrivateRounds:
    """The state of a run. Only `c` and `V` are released; everything about users stays here.

    Args:
        plan: the public facts.
        solving: all ratings, from which everybody computes their own bias and factors.
        counted: the ratings that count towards the sums, perhaps fewer.
        shares: what part of the full weight each user has, from 0 to 1.
        mechanism: adds the noise.
        seed: of the public start.
        n_threads: how many threads to use.
    """

    plan: Plan
    solving: Ratings
    counted: Ratings
    shares: Array
    mechanism: Mechanism
    seed: int
    n_threads: int
    c: Floats = field(init=False)
    V: Floats = field(init=False)
    b: Floats = field(init=False)
    U: Floats = field(init=False)

    def __post_init__(self) -> None:
        n_users, n_items = self.solving.n_users, self.plan.n_items
        scale = self.solving.scale
        self.mean, self.unit = scale.middle, (scale.hi - scale.lo) / _USUAL_WIDTH
        self.clip, self.error = _CLIP * self.unit, _ERROR * self.unit
        self.c, self.b = np.zeros(n_items, np.float32), np.zeros(n_users, np.float32)
        self._biases, self._level_known = Estimate.nothing(n_items, 1), False
        self._set_factors(0)
        self._passing = math.erf(_CLIP / _ERROR / math.sqrt(2))  # how much of a small shift clipping lets through

    def _set_factors(self, K: int) -> None:
        """Let there be so many factors, all of them 0."""
        self.V, self.U = (np.zeros((n, K), np.float32) for n in (self.plan.n_items, self.solving.n_users))
        self._factors = Estimate.nothing(self.plan.n_items, K)

    @property
    def ridge(self) -> tuple[float, float]:
        """The penalties with which everybody's bias and factors are fitted to the release."""
        return self._bias_penalty, self._penalty(self.plan.user_ridge)

    @property
    def _bias_penalty(self) -> float:
        return _USER_BIAS_RIDGE if self._level_known else _LONE_BIAS_RIDGE

    def _penalty(self, relative: float) -> float:
        """Return the penalty on factors, given relative to what the assumed spread of errors and factors suggests."""
        return float(relative * max(self.V.shape[1], 1) / _MEAN_SQUARE * self.error**2)

    def measure(self, stage: Stage) -> None:
        """Release what a stage releases, and make of it what is public."""
        if stage.round is not None:
            self._measure_factors(stage.round)
        elif BIASES in stage.releases:
            self._measure_biases()
        else:
            self._measure_popularity()

    def settle(self, stage: Stage) -> None:
        """Let everybody compute their own part from what is public after a stage."""
        self.solve_users(biases_only=stage.round is None, final=stage.round == self.plan.n_rounds - 1)

    def released(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far, functions of noisy sums all of it; with it and the ratings a run can go on."""
        return {
            "c": self.c,
            "V": self.V,
            "n_users": np.array([self.n_users]),
            "weights": self.weights,
            "totals": self.totals,
            "popularity": self.popularity,
            "biases": np.stack([self._biases.value, self._biases.variance]),
            "factors": np.stack([self._factors.value, self._factors.variance]),
        }

    def take_up(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `released` returned; `settle` then makes the users' part of it."""
        self._set_factors(tensors["V"].shape[1])
        self.c[:], self.V[:], self.n_users = tensors["c"], tensors["V"], float(tensors["n_users"][0])
        self.weights, self.totals = np.array(tensors["weights"]), np.array(tensors["totals"])
        self.popularity = np.array(tensors["popularity"])
        self._biases = Estimate(*np.array(tensors["biases"]))
        self._level_known = bool(np.isfinite(self._biases.variance).any()) and self._has_level()
        self._factors = Estimate(*np.array(tensors["factors"]))

    def _measure_popularity(self) -> None:
        """Release the number of users and how much weight items get; choose factors and weights in between."""
        n_items, bound = self.plan.n_items, self.plan.count_replaced
        self.n_users = release_user_count(self.mechanism, USERS, bound, self.shares)
        self._set_factors(self.plan.factors(self.n_users))
        weights, floor = np.ones(n_items), self.mechanism.sd(POPULARITY, bound)
        first = self._release(POPULARITY, bound, n_items, lambda *a: self._counts(weights, *a))
        self.weights = np.maximum(first, 2 * floor) ** -_RARE_EXPONENT
        self.weights /= self.weights.max()
        second = self._release(WEIGHTS, bound, n_items, lambda *a: self._counts(self.weights, *a))
        self.totals = np.maximum(second, self.mechanism.sd(WEIGHTS, bound))
        self.popularity = standardized(np.log(self.totals))

    def _measure_biases(self, what: str = BIASES) -> None:
        """Release sums of residuals, and make item biases of them."""
        bound = self.clip * self.plan.replaced
        nothing = np.zeros((self.plan.n_items, 0), np.float32)
        sums = self._release(what, bound, (self.plan.n_items, 1), lambda *a: self._residuals(nothing, 0.0, 1.0, *a))
        self._refine_biases(sums[:, 0], self.mechanism.sd(what, bound), 1.0)

    def _measure_factors(self, number: int) -> None:
        """Release moments and sums, and make item factors and biases of them; rounds count from 0."""
        K = self.V.shape[1]
        if not K:  # it was not known when the budget was shared out: all that is left goes into biases
            self.mechanism.forfeit(MOMENTS)
            self._measure_biases(FACTORS)
            return
        first = not np.isfinite(self._factors.variance).any()  # round 0, unless that was lost
        V, length = (self._start(), math.sqrt(_MEAN_SQUARE)) if first else (self.V, 0.0)
        moment_bound = _RADIUS**2 * self.plan.replaced
        size = (self.plan.n_items, K * (K + 1) // 2) if self.plan.per_item else K * (K + 1) // 2
        moments = symmetric(self._release(MOMENTS, moment_bound, size, self._moments), K)
        height = self.plan.height(self.n_users)
        bound = self.clip * math.hypot(_RADIUS, height) * self.plan.replaced
        sums = self._release(
            FACTORS, bound, (self.plan.n_items, K + 1), lambda *a: self._residuals(V, length, height, *a)
        )
        noise = self.mechanism.sd(FACTORS, bound)
        self._refine_biases(sums[:, K], noise, height)
        shared = self._shared_moment(moments)
        if self.plan.per_item:
            self._refine_per_item(sums[:, :K], noise, moments)
        else:
            self._refine_factors(sums[:, :K], noise, shared, self._moment_floor(moment_bound))
        if not first and number < self.plan.n_rounds - 1:
            self._rescale(float(np.trace(shared)))

    def solve_users(self, biases_only: bool = False, final: bool = False) -> None:
        """Let everybody compute their own bias and factors from the release so far and their own ratings."""
        ratings, bias = self.solving, self._bias_penalty
        factors = self._penalty(self.plan.user_ridge if final else _EARLY_RIDGE)
        V = self.V[:, :0] if biases_only else self.V
        U = self.U[:, :0] if biases_only else self.U
        V, c = np.ascontiguousarray(V), self.c

        def solve(first: int, last: int) -> None:
            solve_people(
                ratings.indptr, ratings.items, ratings.values, first, last, V, c, self.mean, bias, factors, 0.0,
                self.b, U,
            )  # fmt: skip

        self._over_users(ratings, lambda _, first, last: solve(first, last), n_tasks=16 * self.n_threads)

    def training_error(self) -> float:
        """Return the root mean squared error on all ratings, for the holder of the data."""
        ratings, total = self.solving, np.zeros(self.n_threads)

        def add(task: int, first: int, last: int) -> None:
            total[task] = squared_errors(
                ratings.indptr, ratings.items, ratings.values, first, last, self.V, self.c, self.mean, self.b, self.U
            )

        self._over_users(ratings, add, n_tasks=self.n_threads)
        return math.sqrt(float(total.sum()) / max(len(ratings), 1))

    def _start(self) -> Floats:
        """Give users factors of one length that first item factors suggest; return those, and leave items none.

        What is released already suggests a few directions: people differ in how much they care for what is popular and
        for what is well liked. The others are random.
        """
        keys = self.solving.catalogue.ids.keys
        fill_randomly(stream_key(self.seed, "item factors"), keys, self.V.shape[1], 1.0, self.V)
        guesses = _directions(self.popularity, standardized(self.c.astype(np.float64)))[:, : self.V.shape[1]]
        self.V[:, : guesses.shape[1]] = guesses
        self.V *= np.float32(_START_SD * self.unit)
        self.solve_users()
        with np.errstate(all="ignore"):  # a warning would tell of a person
            lengths = np.linalg.norm(self.U, axis=1, keepdims=True)
            scales = np.where(lengths > 0, math.sqrt(_MEAN_SQUARE) / np.maximum(lengths, 1e-30), 0.0)
            self.U *= scales.astype(np.float32)
        guessed, self.V = self.V, np.zeros_like(self.V)
        return guessed

    def _refine_biases(self, sums: Array, noise: float, height: float) -> None:
        through = self._passing * self.totals * height
        measured, variance = self.c + sums / through, (noise / through) ** 2
        self._biases = self._biases.refined(measured[:, None], variance[:, None])
        likely = self._biases.shrunk(self.popularity, self._bias_sampling, _LEAST_BIAS_GAIN, _LEAST_LEVEL_GAIN)
        self.c = likely[:, 0].astype(np.float32)
        self._level_known = self._has_level()

    @property
    def _bias_sampling(self) -> Array:
        return _SAMPLING * self.error**2 / self.totals[:, None]

    def _has_level(self) -> bool:
        """Return whether more is known of the biases than how items differ."""
        return bool(self._biases.trends(self.popularity, self._bias_sampling, _LEAST_LEVEL_GAIN).any())

    def _shared_moment(self, moments: Array) -> Array:
        """Return the mean of u u' over users."""
        return moments.sum(axis=0) / self.totals.sum() if self.plan.per_item else moments / self.n_users

    def _moment_floor(self, bound: float) -> float:
        """Return what noise alone may make of an eigenvalue of the shared moment."""
        return 2 * self.mechanism.sd(MOMENTS, bound) / self.n_users

    def _refine_factors(self, sums: Array, noise: float, shared: Array, floor: float) -> None:
        """Take a step with one second moment for all items, in the basis in which it is diagonal."""
        spread, basis = np.linalg.eigh(shared)
        spread = np.maximum(spread, max(1e-3 * spread[-1], floor, 1e-9))
        through = self._passing * self.totals[:, None] * spread
        before = self._factors.turned(basis)
        after = before.refined(self.V @ basis + sums @ basis / through, (noise / through) ** 2)
        sampling = _SAMPLING * self.error**2 / (self.totals[:, None] * spread)
        self._factors = after.turned(basis.T)
        self.V = (after.shrunk(self.popularity, sampling, 0.0, _LEAST_TREND_GAIN) @ basis.T).astype(np.float32)

    def _refine_per_item(self, sums: Array, noise: float, moments: Array) -> None:
        """Take a step with a second moment of its own for every item."""
        spread, basis = np.linalg.eigh(self._passing * moments)
        floor = self._passing * self.mechanism.sd(MOMENTS, _RADIUS**2 * self.plan.replaced)
        spread = np.maximum(spread, floor)
        inverse = np.einsum("jab,jb,jcb->jac", basis, 1 / spread, basis)
        variance = noise**2 * np.einsum("jab,jb->ja", basis**2, 1 / spread**2)
        measured = self.V + np.einsum("jab,jb->ja", inverse, sums)
        self._factors = self._factors.refined(measured, variance)
        sampling = _SAMPLING * self.error**2 * np.einsum("jaa->ja", inverse)
        self.V = self._factors.shrunk(self.popularity, sampling, 0.0, _LEAST_TREND_GAIN).astype(np.float32)

    def _rescale(self, mean_square: float) -> None:
        """Scale item factors so that users' factors will have the mean square that the bound is made for."""
        factor = math.sqrt(max(mean_square, 1e-6) / _MEAN_SQUARE)
        self.V *= np.float32(factor)
        self._factors = self._factors.scaled(factor)

    def _counts(self, weights: Array, first: int, last: int, steps: float, sums: NDArray[np.int64]) -> None:
        add_counts(self.counted.indptr, self.counted.items, first, last, weights, self.shares, steps, sums)

    def _residuals(
        self, V: Floats, length: float, height: float, first: int, last: int, steps: float, sums: NDArray[np.int64]
    ) -> None:
        of, own = self.counted, self.solving
        public = HeldOut(
            self.mean,
            self._bias_penalty,
            self._penalty(_EARLY_RIDGE),
            length,
            self.clip,
            _RADIUS,
            height,
        )
        add_held_out_residuals(
            of.indptr, of.items, of.values, own.indptr, own.items, own.values, first, last,
            self.weights, self.shares, self.c, V, public, steps, sums,
        )  # fmt: skip

    def _moments(self, first: int, last: int, steps: float, sums: NDArray[np.int64]) -> None:
        if not self.plan.per_item:
            add_moments(first, last, self.shares, self.U, _RADIUS, steps, sums)
            return
        of = self.counted
        add_item_moments(of.indptr, of.items, first, last, self.weights, self.shares, self.U, _RADIUS, steps, sums)

    def _release(self, what: str, bound: float, shape: int | tuple[int, ...], add: Callable[..., None]) -> Array:
        """Sum everybody's contributions, and release the sum."""
        return release_sum(self.mechanism, what, bound, shape, add, self.counted, self.n_threads)

    def _over_users(self, ratings: Ratings, work: Callable[[int, int, int], Any], n_tasks: int) -> None:
        over_users(ratings, work, n_tasks, self.n_threads)


def _directions(popularity: Array, liking: Array) -> Array:
    """Return columns of mean 0 and variance about 1, nearly at right angles, made of two such columns."""
    columns: list[Array] = []
    for guess in (popularity, liking, popularity * liking, popularity**2, liking**2):
        left = guess - guess.mean()
        for column in columns:
            left = left - (left @ column) / max(float(column @ column), 1.0) * column
        columns.append(np.clip(standardized(left), -_START_REACH, _START_REACH))
    return np.stack(columns, axis=1)
