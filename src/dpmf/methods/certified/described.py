"""What descriptions of items say about noisy numbers of them: a regression whose strength the numbers decide.

All of it is made of released numbers and of public descriptions, so it costs no privacy. A prediction is linear, with
normal coefficients, and what it leaves over is normal. The variances are the likeliest ones given all numbers
(empirical Bayes), one for the coefficients of each description: one that says little has little influence, and one
that says no more than chance would is left out.

>>> rng = np.random.default_rng(1)
>>> listed, noise = np.zeros((200, 0)), np.full(200, 0.01)
>>> telling, idle = (rng.normal(size=(200, 2)) for _ in range(2))
>>> found = predicted(listed, (telling, idle), telling[:, 0] + 0.1 * rng.normal(size=200), noise)
>>> [bool(gain > LEAST_FURTHER_GAIN) for gain in found.gains]
[False, True, False]
>>> bool(np.corrcoef(found.values, telling[:, 0])[0, 1] > 0.9)
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LEAST_FURTHER_GAIN = 4.0  # in likelihood, by the logarithm, of a further description beside those used already
_SHARES = np.concatenate([[0.0], np.exp(np.linspace(-10.0, 2.0, 25))])  # of what is explained, to a mean square
_FEW_SPREADS = 25
_TURNS = 4  # in which each variance is chosen, given the others


class Prediction(NamedTuple):
    """What descriptions predict.

    Attributes:
        values: shape (n_items,).
        gains: how much likelier, by the logarithm, the numbers are with each description than without it, given those
            before it: first that by the list's own features, then that by each further one.
        sizes: about how much each adds to the prediction, a standard deviation; 0 for those that are left out.
    """

    values: Array
    gains: tuple[float, ...]
    sizes: tuple[float, ...]


def predicted(
    listed: Array, further: Sequence[Array], deviations: Array, noise: Array, least_gain: float = 1.0
) -> Prediction:
    """Return what descriptions predict of deviations with noise of different sizes; 0 if it may be chance.

    Args:
        listed: what the list of items says by itself, shape (n_items, F), standardised.
        further: other descriptions, each with squared lengths of 1 on average.
        deviations, noise: the numbers and the variances of the noise in them, shape (n_items,).
        least_gain: how much likelier (by the logarithm) deviations must be with what the list says than without.
    """
    values, likelihood, without, strength = _by_listed(listed, deviations, noise)
    gains, sizes = [likelihood - without], np.zeros(1 + len(further))
    used: dict[int, Array] = {}
    if gains[0] > least_gain:
        used[0], sizes[0] = listed / math.sqrt(listed.shape[1]), math.sqrt(strength)
    else:
        values, likelihood = np.zeros(len(deviations)), without
    for place, one in enumerate(further, start=1):
        together = _Together([*used.values(), one], deviations, noise)
        gains.append(together.likelihood - likelihood)
        if gains[-1] > LEAST_FURTHER_GAIN:
            used[place] = one
            values, likelihood = together.values(), together.likelihood
            sizes[list(used)] = together.sizes
    return Prediction(values, tuple(gains), tuple(sizes.tolist()))


def _by_listed(features: Array, deviations: Array, noise: Array) -> tuple[Array, float, float, float]:
    """Return what one description predicts, how likely deviations are with it and without, and its strength."""
    n_features = max(features.shape[1], 1)
    scaled, strengths = features / math.sqrt(n_features), _strengths_to_try(deviations, noise)
    best, without, strength, coefficients = -math.inf, -math.inf, 0.0, np.zeros(features.shape[1])
    for spread in _spreads_to_try(deviations, noise):
        precision = 1 / (noise + spread)
        alone = 0.5 * float(np.log(precision).sum() - (precision * deviations**2).sum())
        without = max(without, alone)
        if not features.shape[1]:
            best = without
            continue
        curvatures, basis = np.linalg.eigh(scaled.T @ (precision[:, None] * scaled))
        curvatures, pulls = np.maximum(curvatures, 0.0), basis.T @ (scaled.T @ (precision * deviations))
        damped = 1 + strengths[:, None] * curvatures
        gains = alone + 0.5 * (strengths[:, None] * pulls**2 / damped - np.log(damped)).sum(axis=1)
        found = int(gains.argmax())
        if gains[found] > best:
            best, strength = float(gains[found]), float(strengths[found])
            coefficients = basis @ (strengths[found] * pulls / damped[found])
    return np.asarray(scaled @ coefficients), best, without, strength


def _spreads_to_try(deviations: Array, noise: Array) -> tuple[float, ...]:
    smallest = float(noise.min())
    largest = max(float(np.square(deviations).max()), smallest)
    return (0.0, *np.exp(np.linspace(math.log(0.01 * smallest), math.log(largest), _FEW_SPREADS)))


def _strengths_to_try(deviations: Array, noise: Array) -> Array:
    """Return variances of what is predicted, relative to how large deviations are where there is little noise."""
    return np.asarray(_SHARES * float((deviations**2 / noise).sum() / (1 / noise).sum()))


@dataclass(eq=False)
class _Together:
    """Several descriptions at once, each with a strength of its own, all of them the likeliest."""

    blocks: Sequence[Array]
    deviations: Array
    noise: Array
    likelihood: float = field(init=False)

    def __post_init__(self) -> None:
        self._X = np.hstack(self.blocks)
        self._of = np.repeat(np.arange(len(self.blocks)), [block.shape[1] for block in self.blocks])
        self._spreads = _spreads_to_try(self.deviations, self.noise)
        self._sums: dict[int, tuple[Array, Array, float]] = {}
        self._strengths = np.zeros(len(self.blocks))
        self._spread = max(range(len(self._spreads)), key=self._alone)
        self.likelihood = self._alone(self._spread)
        for _ in range(_TURNS):
            before = self.likelihood
            for block in range(len(self.blocks)):
                self._choose_strength(block)
            self._choose_spread()
            if self.likelihood - before < 1e-3:
                break

    @property
    def sizes(self) -> Array:
        """About how much each adds to the prediction, a standard deviation."""
        return np.sqrt(self._strengths)

    def values(self) -> Array:
        """Return what they predict."""
        return np.asarray(self._X @ self._solved(self._strengths, self._spread)[0])

    def _alone(self, spread: int) -> float:
        precision = 1 / (self.noise + self._spreads[spread])
        return 0.5 * float(np.log(precision).sum() - (precision * self.deviations**2).sum())

    def _choose_strength(self, block: int) -> None:
        for strength in _strengths_to_try(self.deviations, self.noise):
            tried = self._strengths.copy()
            tried[block] = strength
            found = self._solved(tried, self._spread)[1]
            if found > self.likelihood:
                self._strengths, self.likelihood = tried, found

    def _choose_spread(self) -> None:
        """Go to the next spread, up or down, as long as that is likelier."""
        for step in (-1, 1):
            while 0 <= self._spread + step < len(self._spreads):
                found = self._solved(self._strengths, self._spread + step)[1]
                if found <= self.likelihood:
                    break
                self._spread, self.likelihood = self._spread + step, found

    def _solved(self, strengths: Array, spread: int) -> tuple[Array, float]:
        """Return the likeliest coefficients, and how likely deviations are, by the logarithm."""
        if spread not in self._sums:
            weighted = self._X / (self.noise + self._spreads[spread])[:, None]
            self._sums[spread] = self._X.T @ weighted, weighted.T @ self.deviations, self._alone(spread)
        gramian, pulls, alone = self._sums[spread]
        sizes = np.sqrt(strengths)[self._of]
        factor = np.linalg.cholesky(np.eye(len(sizes)) + sizes[:, None] * gramian * sizes)
        half = np.linalg.solve(factor, sizes * pulls)
        coefficients = sizes * np.linalg.solve(factor.T, half)
        return coefficients, alone + 0.5 * float(half @ half) - float(np.log(np.diag(factor)).sum())
