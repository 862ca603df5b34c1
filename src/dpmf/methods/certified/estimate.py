"""Making the best of noisy measurements: averaging them, and shrinking the average towards what is likely.

Everything here works on numbers that are released already, noise included, so it costs no privacy.

>>> first = Estimate(np.array([[4.0]]), np.array([[1.0]]))
>>> both = first.refined(np.array([[2.0]]), np.array([[1.0]]))
>>> both.value.item(), both.variance.item()
(3.0, 0.5)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.methods.certified.described import Prediction, predicted

Array = NDArray[np.float64]
_DEGREE = 2  # of the trend along popularity
_LEAST_VARIANCE = 1e-60  # what is scaled down in hundreds of rounds would come to 0
_SMALL = 1e-12
_LEAST_TOTAL, _TOTALS, _TURNS = 1e-2, 60, 100  # of the noise, the least total; how many are tried; steps to the best
_SPREADS = 60  # how many are tried, a constant factor apart


@dataclass(frozen=True, eq=False)
class Estimate:
    """What noisy measurements say about some numbers, one row per item.

    Attributes:
        value: shape (n_items, n).
        variance: of the noise in it, same shape; infinite where nothing is known.
    """

    value: Array
    variance: Array

    @classmethod
    def nothing(cls, n_items: int, n: int) -> Estimate:
        """Return an estimate that knows nothing."""
        return cls(np.zeros((n_items, n)), np.full((n_items, n), np.inf))

    def refined(self, measured: Array, variance: Array, forget: float = 0.0) -> Estimate:
        """Return the average of this and a new measurement, each weighted by the inverse of its variance.

        Args:
            measured, variance: the measurement and the variance of its noise.
            forget: how much of the old knowledge is given up first, from 0 to below 1, because what it was about may
                have moved.
        """
        precision, new = (1 - forget) / self.variance, 1 / variance
        total = precision + new
        return Estimate((precision * self.value + new * measured) / total, 1 / total)

    def less(self, known: Array) -> Estimate:
        """Return the estimate of the numbers less others, which are known exactly."""
        return replace(self, value=self.value - known)

    def turned(self, rotation: Array) -> Estimate:
        """Return the estimate in another orthogonal basis, whose vectors are the columns of `rotation`."""
        known = np.isfinite(self.variance)
        variance = np.where(known, self.variance, 0.0) @ rotation**2
        return Estimate(self.value @ rotation, np.where(known.all(axis=1, keepdims=True), variance, np.inf))

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate of `factor` times the numbers; a variance never falls so low that its inverse is lost."""
        return Estimate(self.value * factor, np.maximum(self.variance * factor**2, _LEAST_VARIANCE))

    def shrunk(
        self,
        popularity: Array,
        sampling: Array,
        least_gain: float,
        least_trend_gain: float,
        features: Array | None = None,
        further: Sequence[Array] = (),
        least_predicted: float = 1.0,
    ) -> Array:
        """Return the likeliest numbers, if they lie around a trend along popularity with normal deviations.

        Trend and size of the deviations are found for each column from all items; so is what features of the items
        say about deviations from the trend, and how much they are to be trusted.

        Args:
            popularity: shape (n_items,), a measure of how often items are rated.
            sampling: variance besides that of the noise: people are many, but not all there could be.
            least_gain: how much likelier (by the logarithm) deviations must be than none; below it there are none.
            least_trend_gain: likewise for the trend; noise alone would make half of the coefficients, 1.5.
            features: of the items, shape (n_items, F), each with a standard deviation of about 1.
            further: other descriptions of the items; see `dpmf.methods.certified.described.predicted`.
            least_predicted: how much likelier deviations must be with what features predict than without.
        """
        likely, variance = self.trends(popularity, sampling, least_trend_gain), self.variance + sampling
        if features is not None and (features.shape[1] or further):
            columns = zip((self.value - likely).T, variance.T, strict=True)
            likely += np.stack(
                [predicted(features, further, *column, least_predicted).values for column in columns], axis=1
            )
        deviations = self.value - likely
        spreads = _spreads(deviations, variance, least_gain)
        return np.asarray(likely + deviations * spreads / (spreads + variance))

    def described(
        self, popularity: Array, sampling: Array, least_trend_gain: float, features: Array, further: Sequence[Array]
    ) -> Prediction:
        """Return what each description says about the first column; the arguments are those of `shrunk`."""
        deviations = self.value - self.trends(popularity, sampling, least_trend_gain)
        return predicted(features, further, deviations[:, 0], (self.variance + sampling)[:, 0])

    def stands_out(
        self, popularity: Array, sampling: Array, least_gain: float, least_trend_gain: float
    ) -> NDArray[np.bool_]:
        """Return which numbers are known: more of what `shrunk` takes for their deviation is signal than noise.

        The arguments are those of `shrunk`.
        """
        deviations = self.value - self.trends(popularity, sampling, least_trend_gain)
        variance = self.variance + sampling
        spreads = _spreads(deviations, variance, least_gain)
        return np.asarray((spreads >= variance) & (spreads > 0))

    def trends(self, popularity: Array, sampling: Array, least_gain: float) -> Array:
        """Return the trend along popularity of every column, 0 where it may be noise; the arguments are as above."""
        trends = np.empty_like(self.value)
        for column, noise in enumerate((self.variance + sampling).T):
            trends[:, column] = _trend(popularity, self.value[:, column], noise, least_gain)
        return trends


def _spreads(deviations: Array, variance: Array, least_gain: float) -> Array:
    """Return the likeliest variance of the deviations in each column, without the noise in them."""
    columns = zip(deviations.T, variance.T, strict=True)
    return np.array([_spread(column**2, noise, least_gain) for column, noise in columns])


def _spread(squares: Array, noise: Array, least_gain: float) -> float:
    """Return the likeliest variance of deviations whose squares are given with noise in them.

    Items with little noise decide as far as they can. A plain mean of squares less noise would be lost in the noise of
    the many rare items, and with it what is clear about the popular ones.
    """
    ratios = np.linspace(math.log(0.01 * noise.min()), math.log(max(squares.max(), noise.max())), _SPREADS)
    spreads = np.exp(ratios)
    gains = np.array([_gain(squares, noise, noise + spread) for spread in spreads])  # not at once: items may be many
    best = int(gains.argmax())
    return float(spreads[best]) if gains[best] > least_gain else 0.0


def _gain(squares: Array, noise: Array, total: Array) -> float:
    """Return how much likelier, by the logarithm, squares are with a variance of `total` than with that of noise."""
    return float(0.5 * (squares / noise - squares / total - np.log(total / noise)).sum())


def _trend(popularity: Array, value: Array, noise: Array, least_gain: float) -> Array:
    """Return a polynomial in popularity, fitted to values with noise of different sizes; 0 if it may be noise."""
    powers = np.stack([popularity**degree for degree in range(_DEGREE + 1)], axis=1)
    spread = float((value**2 / noise).sum() / (1 / noise).sum())  # about that of items with little noise
    weights = 1 / (noise + spread + _SMALL)
    normal = powers.T @ (weights[:, None] * powers)
    normal += 1e-6 * np.trace(normal) * np.eye(_DEGREE + 1)
    fitted: Array = powers @ np.linalg.solve(normal, powers.T @ (weights * value))
    gain = 0.5 * float(((value**2 - (value - fitted) ** 2) / noise).sum())
    return fitted if gain > least_gain else np.zeros_like(fitted)


def standardized(numbers: Array) -> Array:
    """Return numbers less their mean, over their standard deviation."""
    result: Array = (numbers - numbers.mean()) / max(float(numbers.std()), _SMALL)
    return result


class Totals(NamedTuple):
    """How often items are rated, as far as noise lets it be known; each has shape (n_items,).

    Attributes:
        steps: what noisy sums are divided by: E[T²]/E[T], as a total that may be small must not make steps too long.
        levels: logarithms, where items that nobody seems to have rated are in part what they are if they are new.
    """

    steps: Array
    levels: Array


def likely_totals(noisy: Array, noise: Array, share_of_new: float = 0.0) -> Totals:
    """Return how often items are rated, given noisy numbers, each with a standard deviation of its own.

    How totals are distributed is the likeliest distribution over a grid, given all of them. So where noise hides how
    often each of many rare items is rated, each gets about their mean, and not what noise alone would make of it.

    Args:
        noisy, noise: shape (n_items,).
        share_of_new: of all items, those that nobody could have rated yet: they are like any others. How much they
            count is how often they will be rated, beside how often those are that look alike.
    """
    least = float(noise.min()) * _LEAST_TOTAL
    grid = np.exp(np.linspace(math.log(least), math.log(max(float(noisy.max()), 2 * least)), _TOTALS))
    apart = np.square((noisy[:, None] - grid) / noise[:, None])
    closest = apart.min(axis=1, keepdims=True)
    likelihood = np.exp(-0.5 * (apart - closest))
    shares = np.full(len(grid), 1 / len(grid))
    for _ in range(_TURNS):
        parts = likelihood * shares
        shares = (parts / parts.sum(axis=1, keepdims=True)).mean(axis=0)
    parts = likelihood * shares
    means = parts @ grid / parts.sum(axis=1)
    steps = parts @ grid**2 / (parts @ grid)
    none = np.exp(-0.5 * (np.square(noisy / noise) - closest[:, 0]))
    new = share_of_new * none / parts.sum(axis=1) * means.mean()
    usual = float(steps @ np.log(steps) / steps.sum())
    return Totals(steps, (means * np.log(steps) + new * usual) / (means + new))
