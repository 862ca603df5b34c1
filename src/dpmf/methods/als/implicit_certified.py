"""Certified least squares on implicit feedback, the public half: what people have counts, not how they rate it.

Released are, each with Gaussian noise: the number of users; how much weight items get, their popularity; and in every
round the second moment of x_i = (u_i, 1) over users, and for every item the sum of (u_i, height) over those who have
it, u_i being fitted without the item. All of them are answers to questions in which everybody's part is bounded
(`dpmf.methods.als.implicit_questions`). See docs/proofs/als.md.

Person i counts with the weight a_i = 1/√n_i, n_i being how many items they have: with it everybody's part in a sum over
items is bounded alike. Item factors solve the least squares in which person i's part weighs a_i, with one second moment
of users' factors for all items; measurements of all rounds are averaged, and shrunk towards
what descriptions of the items predict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.engine.factors import fill_randomly
from dpmf.kernels.bounded_sums import symmetric
from dpmf.methods.als.implicit_questions import RADIUS, HeldOutFactors, ImplicitFit, ImplicitMoments, ImplicitScript
from dpmf.methods.als.plan import FACTORS, MOMENTS, POPULARITY, USERS, ImplicitPlan
from dpmf.methods.certified.conversation import Conversation
from dpmf.methods.certified.estimate import Estimate
from dpmf.methods.certified.plan import Stage
from dpmf.methods.certified.questions import Array, Counts, Floats, Headcount
from dpmf.methods.certified.script import within_reach
from dpmf.model.learnt import BEYOND, Learnt
from dpmf.streams import stream_key

_MEAN_SQUARE = 2.0  # of users' factors, to which they are scaled after every round
_SPREAD_OF_COUNTS = 1.5  # mean of √n times mean of 1/√n, n being how many items people have
_LIFT = 0.5  # of the mean of √n: people who have fewer items than its square count in full in moments
_FORGET = 0.3  # of what earlier rounds found: it was about other factors of people
_LEAST_MEAN_GAIN = 1.0  # in likelihood, by the logarithm, of a mean of items' factors other than 0
_LEAST_FACTOR_GAIN = 4.0  # likewise, of factors with what is said about items
_SAMPLING = 0.3  # of what a random choice of people would add to noise


@dataclass(eq=False)
class PublicImplicitALS:
    """What a run asks people for, and what it makes of noisy sums. It knows no ratings.

    Args:
        plan: the public facts.
        keys: of the catalogue's items, from which the start is drawn.
        seed: of the public start.
        features: what the catalogue says about items, shape (n_items, F); see `dpmf.ratings.features`.
        further: other descriptions of them, one matrix each; see `dpmf.ratings.described`.
    """

    plan: ImplicitPlan
    keys: NDArray[np.uint64]
    seed: int
    features: Array = field(default_factory=lambda: np.zeros((0, 0)))
    further: Sequence[Array] = ()
    c: Floats = field(init=False)
    V: Floats = field(init=False)

    def __post_init__(self) -> None:
        n_items = self.plan.n_items
        self.features = self.features if self.features.size else np.zeros((n_items, 0))
        self.c, self._weights = np.zeros(n_items, np.float32), np.ones(n_items)
        self._counts = Estimate.nothing(n_items, 1)
        self.total = 1.0
        self._set_factors(0)

    def _set_factors(self, K: int) -> None:
        """Set the number of factors, all of them 0."""
        self.V = np.zeros((self.plan.n_items, K), np.float32)
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

    @property
    def script(self) -> ImplicitScript:
        """What may be asked, where people answer for themselves."""
        return ImplicitScript(self.plan)

    def converse(self, stage: Stage) -> Conversation:
        """Yield the questions of a stage, and make public state of the noisy answers."""
        return self._measure_popularity() if stage.round is None else self._measure_factors()

    def fit_after(self, stage: Stage) -> ImplicitFit:
        """Return what everybody fits their own factors to once a round is over."""
        return self._fit()

    def _fit(self, length: float = 0.0) -> ImplicitFit:
        return ImplicitFit(within_reach(self.V), within_reach(self.c), self.ridge, self.plan.confidence, length)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what is public so far, functions of noisy sums all of it."""
        return {
            "c": self.c,
            "V": self.V,
            "numbers": np.array([self.n_users, self.total]),
            "counts": np.stack([self._counts.value, self._counts.variance]),
            "factors": np.stack([self._factors.value, self._factors.variance]),
        }

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Set what `state` returned."""
        self._set_factors(tensors["V"].shape[1])
        self.c[:], self.V[:] = tensors["c"], tensors["V"]
        self.n_users, self.total = (float(number) for number in tensors["numbers"])
        self._counts = Estimate(*np.array(tensors["counts"]))
        self._factors = Estimate(*np.array(tensors["factors"]))

    def _measure_popularity(self) -> Conversation:
        """Ask for the number of users, and how much weight items get."""
        if self.plan.crowd is None:
            (count,) = yield (Headcount(USERS),)
            self.n_users = max(float(count.values[0]), 3 * count.sd, 1.0)  # never less than noise alone may say
        else:
            self.n_users = float(self.plan.crowd.n_users)
        self._set_factors(self.plan.n_factors(self.n_users))
        (counts,) = yield (Counts(POPULARITY, self._weights),)
        self._refine_counts(counts.values, counts.sd)
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

    def _measure_factors(self) -> Conversation:
        """Ask for moments and sums, and make item factors of them."""
        K, plan = self.V.shape[1], self.plan
        first = not np.isfinite(self._factors.variance).any()  # round 0, unless that was lost
        fit = self._start() if first else self._fit()
        lift = max(_LIFT * self._mean_root(), 1.0)
        spreads, sums = yield (
            ImplicitMoments(MOMENTS, fit, self._weights, lift, RADIUS),
            HeldOutFactors(FACTORS, fit, self._weights, RADIUS, plan.height),
        )
        moments, moment_noise = symmetric(spreads.values, K + 1) / lift, spreads.sd / lift
        self._refine_counts(sums.values[:, K] / plan.height, sums.sd / plan.height)
        self.total = max(float(moments[K, K]), 3 * moment_noise, self.total / 3)
        self._set_popularity()
        mean = _likely(moments[:K, K], moment_noise / math.sqrt(2))
        self._refine_factors(sums.values[:, :K], sums.sd, moments[:K, :K], mean, 2 * moment_noise)
        if not first:
            self._rescale(float(np.trace(moments[:K, :K])) / self.total)

    def _start(self) -> ImplicitFit:
        """Return random item factors, to which people fit factors of one length."""
        fill_randomly(stream_key(self.seed, "item factors"), self.keys, self.V.shape[1], 1.0, self.V)
        return self._fit(math.sqrt(_MEAN_SQUARE))

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
        after = before.refined(measured, (own * noise / through) ** 2, _FORGET)
        sampling = _SAMPLING * own**2 * self.counts[:, None] * spread / self.total / self._mean_root() / through**2
        self._factors = after.turned(basis.T)
        # More of a trend than a mean would be noise.
        nowhere = np.zeros(self.plan.n_items)
        described = self.features, self.further, _LEAST_FACTOR_GAIN
        likely = after.shrunk(nowhere, sampling, 0.0, _LEAST_MEAN_GAIN, *described)
        self.V = (c * (likely @ basis.T)).astype(np.float32)

    def learnt(self) -> Learnt:
        """Return what stands out from the noise."""
        value, variance = self._counts.value[:, 0], self._counts.variance[:, 0]
        popular = value > BEYOND * np.sqrt(variance)
        with_factors = np.zeros((self.plan.n_items, 1), np.bool_)
        if self.V.any() and np.isfinite(self._factors.variance).all():
            relative = (self.V / np.maximum(self.c, np.finfo(np.float32).tiny)[:, None]).astype(np.float64)
            _, basis = np.linalg.eigh(relative[popular].T @ relative[popular])
            turned = self._factors.turned(basis)
            nowhere = np.zeros(self.plan.n_items)
            found = turned.stands_out(nowhere, np.zeros_like(turned.value), 0.0, _LEAST_MEAN_GAIN)
            with_factors = found & popular[:, None]
        return Learnt(
            n_items=self.plan.n_items,
            factors=int(with_factors.any(axis=0).sum()),
            pairs=0,
            popular=int(np.count_nonzero(popular)),
            with_factors=np.asarray(with_factors.any(axis=1)) if self.V.any() else None,
        )

    def _rescale(self, mean_square: float) -> None:
        """Scale item factors so that users' factors will have the mean square that the bound is made for."""
        factor = math.sqrt(max(mean_square, 1e-6) / _MEAN_SQUARE)
        self.V *= np.float32(factor)
        self._factors = self._factors.scaled(factor)


def _likely(noisy: Array, sd: float) -> Array:
    """Return numbers shrunk as far as noise of this standard deviation alone could have made them so long (Stein)."""
    length = float(noisy @ noisy)
    return noisy * max(0.0, 1.0 - len(noisy) * sd**2 / max(length, 1e-300))
