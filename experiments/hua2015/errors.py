"""Errors as the paper defines them: |u·v - r| over the ratings, their mean, and the share within a bound.

>>> figures = figures_of(np.array([4.5, 7.0]), np.array([4.0, 5.0]), (1.0, 5.0))
>>> figures["mean_error"], figures["clamped_mean_error"], figures["within_0.6"], figures["within_2.0"]
(1.25, 0.25, 0.5, 1.0)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf import Ratings
from dpmf.evaluation.metrics import error_cdf
from experiments.figure import Row

BOUNDS = tuple(round(0.2 * number, 1) for number in range(1, 21))
"""The errors at which distributions are recorded; no clamped prediction is off by more than 4."""

_AT_ONCE = 1 << 18  # ratings


def predictions(U: NDArray[Any], V: NDArray[Any], ratings: Ratings) -> NDArray[np.float64]:
    """Return u·v for every rating, not clamped."""
    users, found = ratings.users, np.empty(len(ratings))
    for first in range(0, len(found), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        found[part] = np.einsum("nk,nk->n", U[users[part]], V[ratings.items[part]])
    return found


def figures_of(predicted: NDArray[np.float64], values: NDArray[Any], scale: tuple[float, float]) -> dict[str, float]:
    """Return mean errors, raw and clamped to the scale, and the share of raw errors within each bound.

    Predictions that are not finite have infinite errors.
    """
    errors = np.abs(predicted - values)
    errors[~np.isfinite(errors)] = math.inf
    clamped = np.abs(np.clip(np.nan_to_num(predicted, nan=math.inf), *scale) - values)
    return {
        "mean_error": float(errors.mean()),
        "clamped_mean_error": float(clamped.mean()),
        **dict(zip(map(column, BOUNDS), error_cdf(errors, np.array(BOUNDS)).tolist(), strict=True)),
    }


def column(bound: float) -> str:
    """Return the name of the column with the share of errors within a bound."""
    return f"within_{bound:.1f}"


def distribution(row: Mapping[str, Any]) -> list[float]:
    """Return the share of errors of a row within each bound."""
    return [row[column(bound)] for bound in BOUNDS]


def shortfall(row: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the largest gap by which the distribution of a row is below another's; 0 if it never is."""
    pairs = zip(distribution(row), distribution(other), strict=True)
    return max(0.0, *(theirs - ours for ours, theirs in pairs))


def with_increases(rows: list[Row]) -> list[Row]:
    """Return rows with the increases of their mean errors over plain factorization of the same draw."""
    plain = {row["draw"]: row for row in rows if row["scenario"] == "plain"}
    names = ("mean_error", "clamped_mean_error")
    return [
        {**row, **{name.replace("mean_error", "increase"): row[name] - plain[row["draw"]][name] for name in names}}
        for row in rows
    ]
