"""Accuracy and ranking metrics on plain arrays.

Ranked lists are rows of item numbers, best first, -1 where a list is short. Relevant items are given per person as in
`Ratings`: an `indptr` and a flat, per person ascending list of items. People without a relevant item are left out.

>>> ranked = np.array([[3, 1, 2]])
>>> recall(ranked, np.array([0, 2]), np.array([1, 5]))
0.5
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def rmse(errors: NDArray[np.floating[Any]]) -> float:
    """Return the root of the mean squared error."""
    return math.sqrt(float(np.mean(np.square(errors, dtype=np.float64))))


def mae(errors: NDArray[np.floating[Any]]) -> float:
    """Return the mean absolute error."""
    return float(np.mean(np.abs(errors), dtype=np.float64))


def gaussian_divergence(mean: float, variance: float, other_mean: float, other_variance: float) -> float:
    """Return the Kullback-Leibler divergence of a Gaussian from another, in nats; NaN if a variance is not above 0.

    >>> gaussian_divergence(0.0, 1.0, 0.0, 1.0), round(gaussian_divergence(0.0, 1.0, 1.0, 2.0), 4)
    (0.0, 0.3466)
    """
    if not (variance > 0 and other_variance > 0):
        return math.nan
    ratio = variance / other_variance
    return 0.5 * (ratio + (mean - other_mean) ** 2 / other_variance - 1 - math.log(ratio))


def error_cdf(errors: NDArray[np.floating[Any]], at: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the share of errors whose absolute value is at most each given value.

    >>> error_cdf(np.array([0.5, -1.0, 2.0, 0.0]), np.array([0.0, 1.0])).tolist()
    [0.25, 0.75]
    """
    ordered = np.sort(np.abs(errors))
    return np.searchsorted(ordered, at, side="right") / len(ordered)


def hits(ranked: NDArray[Any], indptr: NDArray[np.int64], relevant: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries of the ranked lists are relevant to their person, shape of `ranked`."""
    if not len(relevant):
        return np.zeros(ranked.shape, np.bool_)
    width = np.int64(max(int(ranked.max(initial=0)), int(relevant.max())) + 1)
    people = np.arange(len(ranked))
    wanted = np.repeat(people, np.diff(indptr)) * width + relevant
    offered = people[:, None] * width + ranked
    places = np.minimum(np.searchsorted(wanted, offered), len(wanted) - 1)
    return np.asarray((wanted[places] == offered) & (ranked >= 0))


def recall(ranked: NDArray[Any], indptr: NDArray[np.int64], relevant: NDArray[Any]) -> float:
    """Return the mean share of a person's relevant items that are in their list."""
    counts, asked = _counts(indptr)
    found = hits(ranked, indptr, relevant).sum(axis=1)
    return float(np.mean(found[asked] / counts[asked])) if asked.any() else math.nan


def ndcg(ranked: NDArray[Any], indptr: NDArray[np.int64], relevant: NDArray[Any]) -> float:
    """Return the mean normalized discounted cumulative gain.

    A relevant item at rank p, from 1, gains 1 / log2(p + 1); the sum is divided by that of an ideal list.
    """
    counts, asked = _counts(indptr)
    gains = 1.0 / np.log2(np.arange(ranked.shape[1]) + 2.0)
    got = hits(ranked, indptr, relevant) @ gains
    best = np.concatenate([[0.0], np.cumsum(gains)])[np.minimum(counts, ranked.shape[1])]
    return float(np.mean(got[asked] / best[asked])) if asked.any() else math.nan


def hit_rate(ranked: NDArray[Any], indptr: NDArray[np.int64], relevant: NDArray[Any]) -> float:
    """Return the share of people with at least one relevant item in their list."""
    _, asked = _counts(indptr)
    found = hits(ranked, indptr, relevant).sum(axis=1) > 0
    return float(np.mean(found[asked])) if asked.any() else math.nan


def coverage(ranked: NDArray[Any], n_items: int) -> float:
    """Return the share of all items that appear in any list."""
    return len(np.unique(ranked[ranked >= 0])) / n_items


def _counts(indptr: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    counts = np.diff(indptr)
    return counts, counts > 0
