"""Statistics of privacy attacks: lower bounds on ε from counts, each valid with a stated probability of error.

References: Nasr et al., "Tight auditing of differentially private machine learning", 2023 (Gaussian privacy from two
rates); Steinke, Nasr, Jagielski, "Privacy auditing with one (1) training run", 2023; Mahloujifar, Melis, Chaudhuri,
"Auditing f-differential privacy in one run", 2024.

>>> low, high = clopper_pearson(0, 100, error=0.05)
>>> low, round(high, 4)
(0.0, 0.0295)
>>> round(best_epsilon(100, 0.0, error=0.05), 2)
3.28
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.privacy.gaussian import gaussian_epsilon

Array = NDArray[np.float64]
READING = 0.05  # the probability of error of the intervals that are printed …
VERDICT = 0.001  # … and of a verdict that something is violated
_MOST_EPSILON, _MOST_GDP = 60.0, 30.0
_TIGHT = 1e-6


class Counts(NamedTuple):
    """How often an attack said "the second world".

    Attributes:
        hits, n_second: in the second world, and how many runs of it there were.
        alarms, n_first: in the first world, likewise.
    """

    hits: int
    n_second: int
    alarms: int
    n_first: int

    def rates(self, error: float) -> tuple[float, float]:
        """Return a lower bound on the rate of hits and an upper one on that of alarms, wrong together at most so often.

        >>> [round(rate, 3) for rate in Counts(50, 50, 0, 50).rates(0.05)]
        [0.929, 0.071]
        """
        least, _ = clopper_pearson(self.hits, self.n_second, error / 2)
        _, most = clopper_pearson(self.alarms, self.n_first, error / 2)
        return least, most

    def epsilon(self, delta: float, error: float) -> float:
        """Return a lower bound on ε: of (ε, δ)-privacy, hits ≤ e^ε alarms + δ, and misses and rejections likewise."""
        least, most = self.rates(error)
        return max(_log_ratio(least - delta, most), _log_ratio(1 - most - delta, 1 - least), 0.0)

    def gdp(self, error: float) -> float:
        """Return a lower bound on the parameter of Gaussian privacy, Φ⁻¹(hits) − Φ⁻¹(alarms)."""
        from scipy.special import ndtri

        least, most = self.rates(error)
        return max(float(ndtri(least) - ndtri(most)), 0.0)


def clopper_pearson(count: int, n: int, error: float) -> tuple[float, float]:
    """Return bounds on a probability, of which each alone is wrong with probability `error` at most."""
    from scipy.stats import beta

    low = 0.0 if count == 0 else float(beta.ppf(error, count, n - count + 1))
    high = 1.0 if count == n else float(beta.ppf(1 - error, count + 1, n - count))
    return low, high


def best_epsilon(n: int, delta: float, error: float) -> float:
    """Return the bound that an attack would show that is right in all of n runs of each world."""
    return Counts(n, n, 0, n).epsilon(delta, error)


def usual_counts(gdp: float, threshold: float, n: int) -> Counts:
    """Return the counts to be expected where scores are N(0, 1) in the first world and N(gdp, 1) in the second."""
    from scipy.special import ndtr

    return Counts(round(n * float(ndtr(gdp - threshold))), n, round(n * float(ndtr(-threshold))), n)


def best_threshold(gdp: float, n: int, delta: float, error: float) -> float:
    """Return the threshold on such scores above which the expected counts give the largest bound on ε."""
    middle, steps = gdp / 2, np.linspace(0.0, gdp / 2 + 4.0, 81)
    grid = [
        middle + sign * step for step in map(float, steps) for sign in (1, -1)
    ]  # the first of equals is nearest to the middle
    return max(grid, key=lambda threshold: usual_counts(gdp, threshold, n).epsilon(delta, error))


def gdp_at(epsilon: float, delta: float) -> float:
    """Return the parameter of Gaussian privacy that costs this ε at this δ, and 0 if δ is 0.

    >>> round(gdp_at(gaussian_epsilon(1.0, 1e-6), 1e-6), 6)
    1.0
    """
    return _largest(lambda gdp: gaussian_epsilon(gdp, delta) <= epsilon, _MOST_GDP) if delta > 0 else 0.0


def one_run_p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Return a bound on the probability of as many correct guesses in one (epsilon, delta)-private run.

    Theorem 5.2 of Steinke, Nasr and Jagielski: that of a binomial of rate e^ε / (1 + e^ε), plus what δ adds.

    >>> round(one_run_p_value(100, 10, 10, math.log(3), 0.0), 6) == round(0.75**10, 6)
    True
    """
    from scipy.special import expit
    from scipy.stats import binom

    rate = float(expit(epsilon))
    tail = float(binom.sf(correct - 1, guesses, rate))
    lower = np.arange(1, correct + 1)
    added = (binom.sf(correct - lower - 1, guesses, rate) - tail) / lower
    return min(1.0, tail + 2 * canaries * delta * float(added.max(initial=0.0)))


def one_run_epsilon(canaries: int, guesses: int, correct: int, delta: float, error: float) -> float:
    """Return a lower bound on ε from the guesses of one run."""
    return _largest(lambda one: one_run_p_value(canaries, guesses, correct, one, delta) <= error, _MOST_EPSILON)


def one_run_gdp(canaries: int, guesses: int, correct: int, error: float) -> float:
    """Return a lower bound on the parameter of Gaussian privacy from the guesses of one run.

    The recursion of Mahloujifar, Melis and Chaudhuri: r[i] bounds the probability of i correct guesses or more, and
    h[i] that of the other guesses; both grow as fast as the trade-off function allows, and may not exceed the whole.
    """
    return _largest(lambda gdp: _is_refuted(gdp, canaries, guesses, correct, error), _MOST_GDP)


def _is_refuted(gdp: float, canaries: int, guesses: int, correct: int, error: float) -> bool:
    from scipy.special import ndtr, ndtri

    right, wrong = error * correct / canaries, error * (guesses - correct) / canaries
    for place in range(correct - 1, -1, -1):
        grown = max(wrong, float(ndtr(ndtri(min(right, 1.0)) - gdp)))
        if grown == wrong:  # nothing changes any more
            break
        right, wrong = right + place / (guesses - place) * (grown - wrong), grown
    return right + wrong > guesses / canaries


def shift_of(first: Array, second: Array, error: float) -> tuple[float, float, float]:
    """Return how far apart two samples are in standard deviations, with an interval that is wrong so often."""
    from scipy.special import ndtri

    spread = math.sqrt((float(first.var(ddof=1)) + float(second.var(ddof=1))) / 2)
    shift = float(second.mean() - first.mean()) / spread
    half = float(ndtri(1 - error / 2)) * math.sqrt(1 / len(first) + 1 / len(second) + shift**2 / (4 * len(first)))
    return shift, shift - half, shift + half


def spread_of(values: Array, error: float) -> tuple[float, float, float]:
    """Return the root mean square of normal values of mean 0, with an exact interval that is wrong so often."""
    from scipy.stats import chi2

    total, n = float(np.square(values).sum()), values.size
    low, high = (math.sqrt(total / float(chi2.ppf(level, n))) for level in (1 - error / 2, error / 2))
    return math.sqrt(total / n), low, high


def too_small(values: Array) -> float:
    """Return the p-value of values as small as these, or smaller, if they are standard normal."""
    from scipy.stats import chi2

    return float(chi2.cdf(float(np.square(values).sum()), values.size))


def separation(members: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """Return the probability that a member scores above another (ties count half), and its standard error.

    The error is that of Hanley and McNeil (1982).

    >>> separation([3.0, 4.0], [1.0, 3.0])[0]
    0.875
    """
    from scipy.stats import rankdata

    n, m = len(members), len(others)
    ranks = rankdata([*members, *others])[:n]
    area = float((ranks.sum() - n * (n + 1) / 2) / (n * m))
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (n - 1) * (one - area**2) + (m - 1) * (two - area**2)
    return area, math.sqrt(max(variance, 0.0) / (n * m))


def _log_ratio(above: float, below: float) -> float:
    if above <= 0:
        return -math.inf
    return math.inf if below <= 0 else math.log(above / below)


def _largest(holds: Callable[[float], bool], most: float) -> float:
    """Return the largest number for which something holds that holds up to a point; 0 if it never does."""
    low, high = 0.0, most
    if not holds(low):
        return 0.0
    if holds(high):
        return high
    while high - low > _TIGHT:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
