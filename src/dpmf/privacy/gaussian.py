"""The exact privacy of the Gaussian mechanism.

A mechanism is gdp-Gaussian-private if telling two neighbouring data sets apart from its output is at least as hard as
telling N(0, 1) from N(gdp, 1). One release with noise multiplier s has gdp = 1/s, and releases, each of which may
depend on those before it, compose to sqrt(Σ gdp²). Such a mechanism is (ε, δ)-private exactly for

    δ ≥ Φ(gdp/2 − ε/gdp) − e^ε · Φ(−gdp/2 − ε/gdp).

All results are rounded to the safe side.

References: Balle, Wang, "Improving the Gaussian mechanism for differential privacy", 2018; Dong, Roth, Su,
"Gaussian differential privacy", 2019; Smith, Thakurta, "Fully adaptive composition for Gaussian differential
privacy", 2022.

>>> round(gaussian_epsilon(1.0, 1e-6), 4)
4.8866
"""

from __future__ import annotations

import math

_ROUNDING = 1e-15  # a few units in the last place of the logarithms below, relative to their size
_TIGHT = 1e-13


def gaussian_delta(gdp: float, epsilon: float) -> float:
    """Return the smallest δ for which gdp-Gaussian privacy implies (epsilon, δ)-privacy."""
    return math.exp(log_gaussian_delta(gdp, epsilon))


def log_gaussian_delta(gdp: float, epsilon: float) -> float:
    """Return the logarithm of `gaussian_delta`: neither e^ε nor the tails of Φ overflow or vanish."""
    from scipy.special import log_ndtr

    if gdp == 0:
        return -math.inf
    if gdp == math.inf:
        return 0.0
    far = gdp / 2 + epsilon / gdp
    first = float(log_ndtr(gdp / 2 - epsilon / gdp))
    second = epsilon + float(log_ndtr(-far))
    if first == -math.inf:
        return first
    # first - second may be tiny beside either: add the error that its rounding can have made
    kept = -math.expm1(min(second - first, 0.0)) + _ROUNDING * (4 + far * far)
    return min(first + math.log(kept), 0.0)


def gaussian_epsilon(gdp: float, delta: float) -> float:
    """Return the smallest ε ≥ 0 for which gdp-Gaussian privacy implies (ε, delta)-privacy."""
    if gdp == math.inf or delta <= 0:
        return 0.0 if gdp == 0 else math.inf
    target = math.log(delta)
    if log_gaussian_delta(gdp, 0.0) <= target:
        return 0.0
    low, high = 0.0, gdp * gdp / 2 + gdp * math.sqrt(-2 * target)  # there Φ(gdp/2 − ε/gdp) alone is below delta
    while log_gaussian_delta(gdp, high) > target:
        high *= 1.01
    while high - low > _TIGHT * high:
        middle = (low + high) / 2
        if log_gaussian_delta(gdp, middle) > target:
            low = middle
        else:
            high = middle
    return high
