"""What noisy sums over linked pairs say about Σ z z' at these pairs: empirical Bayes, by degrees of similarity.

How often people like both items of a pair is, in the first place, a matter of how many like the rarer of the two: the
prior of a pair is normal, with a mean and a standard deviation in proportion to that. Both proportions are estimated
for each degree of similarity from all pairs of that degree. A degree whose sums do not stand out from the noise counts
as nothing, so links that say nothing change nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.kernels.linked_pairs import MASS, MOST_MASS
from dpmf.methods.ease.questions import link_weights
from dpmf.methods.ease.shrinkage import Array, posterior_means
from dpmf.ratings.titles import Links

_DEGREES = (0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8)  # of similarity, where the next one begins
_STANDS_OUT = 3.0  # standard deviations: what links say at all
_DEGREE_STANDS_OUT = 1.0  # and what those of one degree say beside the others
_LEAST_COUNT = 1e-3
_LEAST_SPREAD = 0.05  # of a prior, relative to its mean
_ROUNDS = 30  # of estimating the mean and the spread of a prior in turn


class LinkedSums(NamedTuple):
    """Estimates of Σ z z' over the whole catalogue, at linked pairs that have any.

    Attributes:
        first, second: catalogue positions, shape (P,).
        values: above 0, shape (P,).
        sds: how uncertain they are, shape (P,).
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    values: Array
    sds: Array


def likely_counts(noisy: Array, sd: float) -> Array:
    """Return about how much people like every item, above 0: posterior means of noisy counts."""
    return np.asarray(np.maximum(posterior_means(noisy, sd), _LEAST_COUNT))


def linked_sums(measured: Array, sd: float, links: Links, counts: Array) -> LinkedSums | None:
    """Return what is known of Σ z z' at linked pairs; None if nothing stands out from the noise.

    Args:
        measured: noisy sums over linked pairs, and their mass, as `add_linked_pairs` forms them.
        sd: of the noise on each of them.
        links: the pairs.
        counts: above 0: about how much people like every item.
    """
    weights = link_weights(links).astype(np.float64) * (1 - MASS**2) ** 0.5
    noisy, sds = measured[:-1] / weights, sd / weights
    expected = np.minimum(counts[links.first], counts[links.second])
    degrees = np.searchsorted(_DEGREES, links.similarity, side="right")
    means, spreads, total = np.zeros(len(noisy)), np.zeros(len(noisy)), 0.0
    for degree in range(len(_DEGREES) + 1):
        chosen = degrees == degree
        found = _posterior(noisy[chosen], sds[chosen], expected[chosen])
        total += float(noisy[chosen].sum() if found is None else found[0].sum())
        if found is not None:
            means[chosen], spreads[chosen] = found
    unit = MOST_MASS / MASS  # the mass is Σ z z' over all linked pairs: it says how the two normalizations compare
    mass, known = float(measured[-1]) * unit, np.flatnonzero(means > 0)
    if mass < _STANDS_OUT * sd * unit or not len(known) or total <= 0:
        return None
    scale = mass / total
    return LinkedSums(links.first[known], links.second[known], scale * means[known], scale * spreads[known])


def _posterior(noisy: Array, sds: Array, expected: Array) -> tuple[Array, Array] | None:
    """Return posterior means, not below 0, and standard deviations of pairs of one degree; None if there is only noise.

    Args:
        noisy: the sums.
        sds: of their noise.
        expected: to which means and standard deviations of the prior are in proportion.
    """
    squares, noise = expected**2, sds**2
    precision = float((squares / noise).sum())
    ratio = float((expected * noisy / noise).sum()) / precision if precision else 0.0
    if ratio * precision**0.5 < _DEGREE_STANDS_OUT:
        return None
    spread = 0.5 * ratio
    for _ in range(_ROUNDS):
        weights = 1 / (noise + spread**2 * squares)
        ratio = max(float((weights * expected * noisy).sum() / (weights * squares).sum()), 0.0)
        excess, influence = (noisy - ratio * expected) ** 2 - noise, weights**2 * squares
        variance = float((influence * excess).sum() / (influence * squares).sum())
        spread = max(variance, (_LEAST_SPREAD * ratio) ** 2) ** 0.5
    signal = spread**2 * squares
    trust = signal / (signal + noise)
    means = ratio * expected + trust * (noisy - ratio * expected)
    return np.maximum(means, 0.0), np.sqrt(trust * noise)
