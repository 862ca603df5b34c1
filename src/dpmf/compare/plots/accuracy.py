"""What privacy costs in accuracy: epsilon against a figure.

Epsilons of users and of ratings are different things and never share an axis. What is certified has filled markers and
solid lines; a published claim has hollow markers, dashed lines and the word "claim" in the legend.

>>> rows = [Row("als", "certified", epsilon, 0, 7, epsilon=epsilon, delta=1e-6, unit="user", neighbours="add-remove",
...             certified=True, rmse=1 / epsilon) for epsilon in (1.0, 2.0)]
>>> [(series.label, series.epsilons, series.means) for series in accuracy_series(rows, "rmse", "user")]
[('als, certified', [1.0, 2.0], [1.0, 0.5])]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dpmf.compare.plots.figure import axes, figure, legend_below, log_epsilons, status_style, style_of
from dpmf.compare.plots.runs import REFERENCE_STYLES
from dpmf.compare.results import POPULAR, PRIVATE_POPULAR, Row
from dpmf.compare.summary import Point, is_seeded, summarize
from dpmf.errors import InvalidArgument
from dpmf.privacy.budget import UNITS, check_unit

METRICS = {
    "rmse": "rmse on held-out ratings",
    "mae": "mean absolute error on held-out ratings",
    "recall": "recall at 10",
    "ndcg": "ndcg at 10",
    "kld": "what errors tell about training ratings (kld, nats)",
    "ndcg@100": "ndcg at 100, new users",
    "ndcg@10": "ndcg at 10, new users",
    "recall@20": "recall at 20, new users",
    "recall@50": "recall at 50, new users",
}
_MARGIN = 0.08  # of the height that what is certified and the references take
_NEAR = 0.5  # of it, that claims may add at either end
_POPULAR_COLOUR = "#555555"
_RANKING = ("recall", "ndcg", "ndcg@100", "ndcg@10", "recall@20", "recall@50")


@dataclass(frozen=True)
class Series:
    """What one line shows: a figure of a method in a mode, by epsilon, rising.

    Attributes:
        method, label: its name, and what the legend says.
        claim: whether epsilon is a published claim.
        epsilons: of the guarantee, or the claim.
        means, least, most: over repeats; of figures for new users, the ends of the 95 % interval over people.
        repeats: how many there were at each epsilon.
        intervals: whether least and most are the ends of intervals.
    """

    method: str
    label: str
    claim: bool
    epsilons: list[float]
    means: list[float]
    least: list[float]
    most: list[float]
    repeats: list[int]
    intervals: bool = False


def accuracy_series(rows: Iterable[Row], metric: str, unit: str) -> list[Series]:
    """Return the lines of one unit of privacy: no seeded noise, no failed runs, nothing about the other unit."""
    ended = (row for row in rows if not row.error and not is_seeded(row))
    points = [point for point in summarize(ended) if point.unit == unit and metric in point.mean and _is_shown(point)]
    several = {
        "neighbours": len({point.neighbours for point in points}) > 1,
        "delta": len({point.delta for point in points}) > 1,
    }
    lines: dict[str, list[Point]] = {}
    for point in points:
        lines.setdefault(_label(point, **several), []).append(point)
    return [_series(label, sorted(line, key=_epsilon), metric) for label, line in lines.items()]


def same_budget_line(rows: Iterable[Row], metric: str) -> Series | None:
    """Return popularity under the same budgets, by the epsilon asked for; None if there is nothing of it to draw."""
    points = [point for point in summarize(rows) if point.method == PRIVATE_POPULAR and metric in point.mean]
    return _series("popular, same budget", sorted(points, key=lambda point: point.asked), metric) if points else None


def reference_lines(rows: Iterable[Row], metric: str) -> dict[str, float]:
    """Return the height of every reference line, by the name of the reference."""
    found = {
        point.method: point.mean[metric] for point in summarize(rows) if point.is_reference and metric in point.mean
    }
    if metric not in _RANKING:
        found.pop(POPULAR, None)
    return {name: found[name] for name in REFERENCE_STYLES if name in found}


def accuracy_against_epsilon(rows: Sequence[Row], metric: str = "rmse", unit: str = "user", ax: Any = None) -> Any:
    """Draw a figure against epsilon per user, or per rating; error bars are intervals, or the min–max of repeats."""
    if metric not in METRICS:
        raise InvalidArgument(f"metric={metric!r} is unknown: it should be one of {', '.join(METRICS)}")
    check_unit(unit)
    ax = axes(ax)
    lines, heights = accuracy_series(rows, metric, unit), reference_lines(rows, metric)
    popular = same_budget_line(rows, metric) if unit == "user" else None
    around = [*heights.values(), *((*popular.least, *popular.most) if popular else ())]
    limits = _limits(lines, around)
    for line in lines:
        colour, marker = style_of(line.method)
        look = status_style(colour, line.claim)
        ax.plot(line.epsilons, line.means, marker=marker, label=_within(line, limits), lw=1.5, ms=7, **look)
        _draw_bars(ax, line, colour)
    if popular is not None:
        ax.plot(popular.epsilons, popular.means, label=popular.label, lw=1.5, ls=":", marker="x", color=_POPULAR_COLOUR)
        _draw_bars(ax, popular, _POPULAR_COLOUR)
    for name, height in heights.items():
        ax.axhline(height, lw=1.5, zorder=1, **REFERENCE_STYLES[name])
    ax.relim()  # lines across the axes alone would not move the limits, and might lie on the edge
    ax.autoscale_view()
    if limits is not None:
        ax.set_ylim(*limits)
    log_epsilons(ax, [epsilon for line in lines for epsilon in line.epsilons])
    repeated = any(n > 1 for line in lines for n in line.repeats)
    bars = "95 % interval over people" if any(line.intervals for line in lines) else "min–max" if repeated else ""
    title = ("mean of repeats" if repeated else "one run each") + (f"; error bars: {bars}" if bars else "")
    ax.set(xlabel=f"ε per {unit}", ylabel=METRICS[metric], title=title)
    ax.title.set_fontsize("small")
    legend_below(ax)
    return ax


def _limits(lines: Sequence[Series], heights: Iterable[float]) -> tuple[float, float] | None:
    """Return the ends of an axis for what is certified and the references; None if claims are near them, or alone."""
    shown = [end for line in lines if not line.claim for ends in (line.least, line.most) for end in ends]
    if not shown:
        return None
    shown += heights
    low, high = min(shown), max(shown)
    height = (high - low) or abs(low) or 1.0
    near = (low - _NEAR * height, high + _NEAR * height)
    if all(near[0] <= mean <= near[1] for line in lines if line.claim for mean in line.means):
        return None
    return low - _MARGIN * height, high + _MARGIN * height


def _within(line: Series, limits: tuple[float, float] | None) -> str:
    """Return what the legend says of a line; of a claim that leaves the axis, from where to where it goes."""
    if limits is None or not line.claim or all(limits[0] <= mean <= limits[1] for mean in line.means):
        return line.label
    return f"{line.label} ({min(line.means):.3g} to {max(line.means):.3g}: off the axis)"


def units_proven(rows: Iterable[Row], metric: str) -> list[str]:
    """Return the units of privacy of which something certified can be drawn."""
    rows = list(rows)
    return [unit for unit in UNITS if any(not line.claim for line in accuracy_series(rows, metric, unit))]


def units_with(rows: Iterable[Row], metric: str) -> list[str]:
    """Return the units of privacy that there is something to draw about."""
    rows = list(rows)
    return [unit for unit in UNITS if accuracy_series(rows, metric, unit)]


def accuracy_figure(rows: Sequence[Row], metric: str = "rmse", size: tuple[float, float] | None = None) -> Any:
    """Return a figure with one panel per unit of privacy that occurs."""
    units = units_with(rows, metric)
    if not units:
        raise InvalidArgument(f"there is no private run with {metric} in these results, so nothing to draw")
    picture = figure(*(size or (6.5 * len(units), 5.5)))
    for unit, ax in zip(units, picture.subplots(1, len(units), squeeze=False)[0], strict=True):
        accuracy_against_epsilon(rows, metric, unit, ax)
    return picture


def _draw_bars(ax: Any, line: Series, colour: str) -> None:
    """Draw bars where there is an interval, or more than one repeat: a single run has no spread."""
    places = [place for place, n in enumerate(line.repeats) if n > 1 or line.intervals]
    if places:
        mean = [line.means[place] for place in places]
        below = [line.means[place] - line.least[place] for place in places]
        above = [line.most[place] - line.means[place] for place in places]
        epsilons, style = [line.epsilons[place] for place in places], {"ecolor": colour, "elinewidth": 1, "capsize": 4}
        ax.errorbar(epsilons, mean, yerr=(below, above), fmt="none", zorder=1.5, **style)


def _label(point: Point, neighbours: bool, delta: bool) -> str:
    """Return what the legend says; what differs between lines is named."""
    words = [point.method, "paper's claim" if point.is_claim else "certified"]
    words += [str(point.neighbours)] if neighbours else []
    words += [f"δ = {point.delta:g}"] if delta and point.delta is not None else []
    return ", ".join(words)


def _is_shown(point: Point) -> bool:
    """Tell whether there is something behind a finite epsilon: a certificate, or a claim."""
    finite = point.epsilon is not None and 0 < point.epsilon < math.inf
    return finite and (point.certified or point.is_claim)


def _epsilon(point: Point) -> float:
    """Return that of the guarantee; private popularity has none, and was made for the one asked for."""
    return point.asked if point.epsilon is None else point.epsilon


def _series(label: str, points: list[Point], metric: str) -> Series:
    first = points[0]
    mean, least, most = ([getattr(point, kind)[metric] for point in points] for kind in ("mean", "least", "most"))
    intervals = all(metric in point.interval for point in points)
    if intervals:
        least, most = ([point.interval[metric][end] for point in points] for end in (0, 1))
    epsilons, repeats = [_epsilon(point) for point in points], [point.n for point in points]
    return Series(first.method, label, first.is_claim, epsilons, mean, least, most, repeats, intervals)
