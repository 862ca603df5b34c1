"""The private rounds for implicit feedback: what people have counts, not how they rate it.

Released are, each with Gaussian noise: the number of users; how much weight items get, their popularity; and in every
round the second moment of x_i = (u_i, 1) over users, and for every item the sum of (u_i, height) over those who have
it, u_i being fitted without the item. All of them are sums of contributions that `dpmf.kernels.bounded_sums` and
`dpmf.kernels.implicit_sums` bound, and leave only through `Mechanism`. See docs/proofs/als.md.

Person i counts with the weight a_i = 1/√n_i, n_i being how many items they have: with it everybody's part in a sum over
items is bounded alike. Item factors solve the least squares in which person i's part weighs a_i, with one second moment
of users' factors for all items; measurements of all rounds are averaged and shrunk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import fill_randomly
from dpmf.kernels.als_implicit import common_of, missing_squares, solve_observers
from dpmf.kernels.bounded_sums import add_counts, symmetric
from dpmf.kernels.implicit_sums import Observing, add_observed, add_spreads, stretch_people
from dpmf.methods.als.implicit_plan import ObservedPlan
from dpmf.methods.als.plan import FACTORS, MOMENTS, POPULARITY, USERS, Stage
from dpmf.methods.certified.estimate import Estimate
from dpmf.methods.certified.sums import over_users, release_sum, release_user_count
from dpmf.privacy.mechanism import Mechanism
from dpmf.ratings import Ratings
from dpmf.streams import stream_key

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
_RADIUS = 1.0  # the longest factors of a user that count in full
_MEAN_SQUARE = 2.0  # of users' factors, to which they are scaled after every round
_SPREAD_OF_COUNTS = 1.5  # mean of √n times mean of 1/√n, n being how many items people have
_LIFT = 0.5  # of the mean of √n: people who have fewer items than its square count in full in moments
_LEAST_MEAN_GAIN = 1.0  # in likelihood, by the logarithm, of a mean of items' factors other than 0
_SAMPLING = 0.3  # of what a random choice of people would add to noise


@dataclass(eq=False)
class ObservedRounds:
    """The state of a run. Only `c` and `V` are released; everything about users stays here.

    Args:
        plan: the public facts.
        solving: all that people have, from which everybody computes their own factors.
        counted: what counts towards the sums, perhaps less.
        shares: what part of the full weight each user has, from 0 to 1.
        mechanism: adds the noise.
        seed: of the public start.
        n_threads: how many threads to use.
    """

    plan: ObservedPlan
    solving: Ratings
    counted: Ratings
    shares: Array
    mechanism: Mechanism
    seed: int
    n_threads: int
    c: Floats = field(init=False)
    V: Floats = field(init=False)
    U: Floats = field(init=False)

    def __post_init__(self) -> None:
        n_items = self.plan.n_items
        self.c, self._weights = np.zeros(n_items, np.float32), np.ones(n_items)
        self._counts = Estimate.nothing(n_items, 1)
        self.total = 1.0
        self._set_factors(0)

    def _set_factors(self, K: int) -> None:
        """Let there be so many factors, all of them 0."""
        self.V, self.U = (np.zeros((n, K), np.float32) for n in (self.plan.n_items, self.solving.n_users))
        self._factors = Estimate.nothing(self.plan.n_items, K)

    @property
    def ridge(self) -> float:
        """The penalty with which everybody's factors are fitted to the release.

        It is the variance of what is left unexplained over that of a factor, as if both were normal.
        """
        K = max(self.V.shape[1], 1)
        sizes = np.square(self.V, dtype=np.float64).sum(axis=1)
        error = float(sizes @ (self.c * (1.0 - self.c))) / max(float(sizes.sum()), 1e-12)
        return float(self.plan.user_ridge * max(error, 1e-6) * K / _MEAN_SQUARE)

    def measure(self, stage: Stage) -> None:
        """Release what a stage releases, and make of it what is public."""
        if stage.round is None:
            self._measure_popularity()
        else:
            self._measure_factors(stage.round)

    def settle(self, stage: Stage) -> None:
        """Let everybody compute their own part from what is public after a stage."""
        self.solve_users(final=stage.round == self.plan.n_rounds - 1)

    def released(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far, functions of noisy sums all of it; with it and the ratings a run can go on."""
        return {
            "c": self.c,
            "V": self.V,
            "numbers": np.array([self.n_users, self.total]),
            "counts": np.stack([self._counts.value, self._counts.variance]),
            "factors": np.stack([self._factors.value, self._factors.variance]),
        }

    def take_up(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `released` returned; `settle` then makes the users' part of it."""
        self._set_factors(tensors["V"].shape[1])
        self.c[:], self.V[:] = tensors["c"], tensors["V"]
        self.n_users, self.total = (float(number) for number in tensors["numbers"])
        self._counts = Estimate(*np.array(tensors["counts"]))
        self._factors = Estimate(*np.array(tensors["factors"]))

    def _measure_popularity(self) -> None:
        """Release the number of users, and how much weight items get."""
        bound = self.plan.count_replaced
        self.n_users = release_user_count(self.mechanism, USERS, bound, self.shares)
        self._set_factors(self.plan.factors(self.n_users))
        counts = self._release(POPULARITY, bound, self.plan.n_items, self._add_counts)
        self._refine_counts(counts, self.mechanism.sd(POPULARITY, bound))
        self.total = self.n_users * _SPREAD_OF_COUNTS / self._mean_root()
        self._set_popularity()

    def _mean_root(self) -> float:
        """Return the mean over users of √n, n being how many items they have: it is at least 1."""
        return max(float(self._counts.value.sum()) / self.n_users, 1.0)

    def _refine_counts(self, counts: Array, noise: float) -> None:
        variance = np.full((self.plan.n_items, 1), noise**2)
        self._counts = self._counts.refined(counts[:, None], variance)

    def _set_popularity(self) -> None:
        """Make item biases of what is known about counts: never below what noise alone makes of nothing."""
        value, noise = self._counts.value[:, 0], math.sqrt(float(self._counts.variance[0, 0]))
        self.counts = np.maximum(value, noise)
        self.c = np.minimum(self.counts / self.total, 1.0).astype(np.float32)

    def _measure_factors(self, number: int) -> None:
        """Release moments and sums, and make item factors of them; rounds count from 0."""
        K, plan = self.V.shape[1], self.plan
        first = not np.isfinite(self._factors.variance).any()  # round 0, unless that was lost
        length = math.sqrt(_MEAN_SQUARE) if first else 0.0
        if first:
            self._start(length)
        self._lift = max(_LIFT * self._mean_root(), 1.0)
        bound = (_RADIUS**2 + 1) * plan.replaced
        moments = symmetric(self._release(MOMENTS, bound, (K + 1) * (K + 2) // 2, self._add_spreads), K + 1)
        moments, moment_noise = moments / self._lift, self.mechanism.sd(MOMENTS, bound) / self._lift
        bound = math.hypot(_RADIUS, plan.height) * plan.replaced
        self._step = Observing(plan.alpha, length, _RADIUS, plan.height)
        self._common = common_of(self.V, self.c, self.ridge)
        sums = self._release(FACTORS, bound, (plan.n_items, K + 1), self._add_observed)
        noise = self.mechanism.sd(FACTORS, bound)
        self._refine_counts(sums[:, K] / plan.height, noise / plan.height)
        self.total = max(float(moments[K, K]), 3 * moment_noise, self.total / 3)
        self._set_popularity()
        mean = _likely(moments[:K, K], moment_noise / math.sqrt(2))
        self._refine_factors(sums[:, :K], noise, moments[:K, :K], mean, 2 * moment_noise)
        if not first:
            self._rescale(float(np.trace(moments[:K, :K])) / self.total)

    def _start(self, length: float) -> None:
        """Give users factors of one length that random item factors suggest."""
        keys = self.solving.catalogue.ids.keys
        fill_randomly(stream_key(self.seed, "item factors"), keys, self.V.shape[1], 1.0, self.V)
        self.solve_users()
        self._over_users(self.solving, lambda _, first, last: stretch_people(first, last, length, self.U))

    def _refine_factors(self, sums: Array, noise: float, moments: Array, mean: Array, floor: float) -> None:
        """Solve for item factors in the basis in which the second moment is diagonal, and average over rounds.

        Factors are about in proportion to popularity, and are compared among items relative to it.
        """
        spread, basis = np.linalg.eigh(moments)
        spread = np.maximum(spread, max(1e-3 * spread[-1], floor, 1e-9))
        c, alpha = self.c.astype(np.float64)[:, None], self.plan.alpha
        own = 1 + alpha * (1 - c)  # how much those who have the item count
        through = spread * (1 + alpha * c) * c
        measured = (own * sums - c * mean) @ basis / through
        before = self._factors.turned(basis)
        after = before.refined(measured, (own * noise / through) ** 2, self.plan.forget)
        sampling = _SAMPLING * own**2 * self.counts[:, None] * spread / self.total / self._mean_root() / through**2
        self._factors = after.turned(basis.T)
        likely = after.shrunk(
            np.zeros(self.plan.n_items), sampling, 0.0, _LEAST_MEAN_GAIN
        )  # more of a trend would be noise
        self.V = (c * (likely @ basis.T)).astype(np.float32)

    def _rescale(self, mean_square: float) -> None:
        """Scale item factors so that users' factors will have the mean square that the bound is made for."""
        factor = math.sqrt(max(mean_square, 1e-6) / _MEAN_SQUARE)
        self.V *= np.float32(factor)
        self._factors = self._factors.scaled(factor)

    def solve_users(self, final: bool = False) -> None:
        """Let everybody compute their own factors from the release so far and what they have; always as if final."""
        of = self.solving
        common, pull = common_of(self.V, self.c, self.ridge)

        def solve(_: int, first: int, last: int) -> None:
            solve_observers(of.indptr, of.items, first, last, self.V, self.c, common, pull, self.plan.alpha, self.U)

        self._over_users(of, solve)

    def training_error(self) -> float:
        """Return the root mean square of 1 less the scores of what people have, for the holder of the data."""
        of, n_tasks = self.solving, 16 * self.n_threads
        total = np.zeros(n_tasks)

        def add(task: int, first: int, last: int) -> None:
            total[task] = missing_squares(of.indptr, of.items, first, last, self.V, self.c, self.U)

        self._over_users(of, add)
        return math.sqrt(float(total.sum()) / max(len(of), 1))

    def _add_counts(self, first: int, last: int, steps: float, sums: NDArray[np.int64]) -> None:
        add_counts(self.counted.indptr, self.counted.items, first, last, self._weights, self.shares, steps, sums)

    def _add_spreads(self, first: int, last: int, steps: float, sums: NDArray[np.int64]) -> None:
        of = self.counted
        add_spreads(
            of.indptr, of.items, first, last, self._weights, self.shares, self.U, self._lift, _RADIUS, steps, sums
        )

    def _add_observed(self, first: int, last: int, steps: float, sums: NDArray[np.int64]) -> None:
        of, own = self.counted, self.solving
        add_observed(
            of.indptr, of.items, own.indptr, own.items, first, last, self._weights, self.shares, self.V, self.c,
            *self._common, self._step, steps, sums,
        )  # fmt: skip

    def _release(self, what: str, bound: float, shape: int | tuple[int, ...], add: Callable[..., None]) -> Array:
        return release_sum(self.mechanism, what, bound, shape, add, self.counted, self.n_threads)

    def _over_users(self, ratings: Ratings, work: Callable[[int, int, int], Any]) -> None:
        over_users(ratings, work, 16 * self.n_threads, self.n_threads)


def _likely(noisy: Array, sd: float) -> Array:
    """Return numbers shrunk as far as noise of this standard deviation alone could have made them so long (Stein)."""
    length = float(noisy @ noisy)
    return noisy * max(0.0, 1.0 - len(noisy) * sd**2 / max(length, 1e-300))
