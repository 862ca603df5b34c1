"""How errors are distributed: which share of held-out ratings is predicted to within how much.

>>> mean_curve([[[0.0, 0.1], [1.0, 0.6]], [[0.0, 0.3], [1.0, 0.8]]])
([0.0, 1.0], [0.2, 0.7])
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from dpmf.compare.plots.figure import axes, legend_below
from dpmf.compare.plots.runs import runs_of
from dpmf.compare.results import Row

_MARKERS = 8  # along a curve, at most


def error_distribution(rows: Sequence[Row], unit: str = "user", ax: Any = None, *, epsilon: float | None = None) -> Any:
    """Draw the cumulative distribution of absolute errors on held-out ratings, baseline included: mean of repeats.

    Args:
        rows: of a comparison.
        unit: only private runs about this unit.
        ax: where to draw.
        epsilon: only private runs of this epsilon; a few by default.
    """
    ax = axes(ax)
    for place, run in enumerate(runs_of(rows, "error_cdf", unit=unit, epsilon=epsilon)):
        sizes, shares = mean_curve(row.error_cdf for row in run.rows)
        step = max(1, len(sizes) // _MARKERS)
        ax.plot(sizes, shares, lw=1.5, ms=5, label=run.label, markevery=(place % step, step), **run.style)
    ax.set(xlabel="absolute error on held-out ratings", ylabel="share of ratings with at most this error")
    ax.set_ylim(0, 1.02)
    legend_below(ax)
    return ax


def mean_curve(curves: Iterable[Sequence[Sequence[float]]]) -> tuple[list[float], list[float]]:
    """Return sizes of errors, and the mean over repeats of the share that is at most so large."""
    shares: dict[float, list[float]] = defaultdict(list)
    for curve in curves:
        for size, share in curve:
            shares[float(size)].append(float(share))
    sizes = sorted(shares)
    return sizes, [statistics.fmean(shares[size]) for size in sizes]
