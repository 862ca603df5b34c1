"""Who pays for privacy: the error by how popular items, or how active users, are.

>>> group_names([0.01, 0.1, 1.0])
['top 1%', '1–10%', '10–100%']
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from dpmf.compare.plots.figure import axes, legend_below
from dpmf.compare.plots.runs import runs_of
from dpmf.compare.results import Row
from dpmf.errors import InvalidArgument

_WORDS = {"by_popularity": "items, most popular first", "by_activity": "users, most active first"}


def by_group(
    rows: Sequence[Row],
    groups: str = "by_popularity",
    unit: str = "user",
    ax: Any = None,
    *,
    epsilon: float | None = None,
) -> Any:
    """Draw the rmse in groups of items or users, for a few epsilons, beside the baseline: mean of repeats.

    Args:
        rows: of a comparison.
        groups: "by_popularity" or "by_activity".
        unit: only private runs about this unit.
        ax: where to draw.
        epsilon: only private runs of this epsilon.
    """
    if groups not in _WORDS:
        raise InvalidArgument(f"groups={groups!r} is unknown: it should be {' or '.join(_WORDS)}")
    runs = runs_of(rows, groups, unit=unit, epsilon=epsilon)
    ax = axes(ax)
    found = [group_errors(run.rows, groups) for run in runs]
    ends = sorted({end for errors in found for end in errors})
    for run, errors in zip(runs, found, strict=True):
        places = [place for place, end in enumerate(ends) if end in errors]
        ax.plot(places, [errors[ends[place]] for place in places], lw=1.5, ms=6, label=run.label, **run.style)
    ax.set_xticks(range(len(ends)), labels=group_names(ends))
    ax.set(xlabel=_WORDS[groups], ylabel="rmse on held-out ratings")
    ax.margins(x=0.08)
    legend_below(ax)
    return ax


def group_errors(rows: Sequence[Row], groups: str) -> dict[float, float]:
    """Return the mean rmse over repeats, by the upper end of the group; empty groups are not there."""
    found: dict[float, list[float]] = defaultdict(list)
    for row in rows:
        for end, _, rmse in getattr(row, groups):
            if rmse is not None:
                found[end].append(rmse)
    return {end: statistics.fmean(values) for end, values in sorted(found.items())}


def group_names(ends: Sequence[float]) -> list[str]:
    """Return what groups are called, from their upper ends."""
    starts = [0.0, *ends[:-1]]
    return [
        f"{100 * low:g}–{100 * high:g}%" if low else f"top {100 * high:g}%"
        for low, high in zip(starts, ends, strict=True)
    ]
