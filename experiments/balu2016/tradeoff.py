"""Figures 3 and 4, and the paper's remark on top users: error and divergence against the threshold ε, for d and γ.

The three are views of the same runs: those of figure 3, if it exists for the same size and seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from experiments.balu2016.runs import FACTORS, GAINS, THRESHOLDS, Parts, Trial, searched
from experiments.figure import Figure, Row, Run, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_DEPTH = 4
_STYLES: dict[float, str] = {1: "-o", 2: "--s", 4: ":^"}  # by γ
_SLACK = 0.001  # of an error
_CLOSE = 0.02  # of errors that count as close
_ORDER = 5.0  # times smaller: closer to ten than to one on a log scale


def measure(run: Run) -> list[Row]:
    """Return one row for each d, γ and threshold, and one of regular factorization (γ = 0) for each d.

    In a full run rate and penalty are searched for every d and γ without a threshold, otherwise only at d = 16, γ = 1.
    """
    if (made := run.beside("figure3")) and not run.out.name.startswith("figure3"):
        return made
    parts = Parts.of(run)
    factors, gains = (FACTORS, GAINS) if run.full else ((8, 32), (1, 4))

    def settings(depth: int, d: int, gain: float) -> Trial:
        usual = Trial(depth, d, gain) if run.full else Trial(depth, 16)
        return replace(searched(run, parts, usual, penalty=True), factors=d, gain=gain)

    def one(factors: int, gain: float, threshold: float) -> dict[str, Any]:
        trial = settings(_DEPTH, factors, gain) if gain else settings(0, factors, 1.0)
        return {"rate": trial.rate, "penalty": trial.penalty, **parts.figures(replace(trial, threshold=threshold))}

    points = [
        {"factors": d, "gain": gain, "threshold": threshold}
        for d in factors
        for gain in gains
        for threshold in THRESHOLDS
    ]
    return run.each([*points, *({"factors": d, "gain": 0, "threshold": math.inf} for d in factors)], one)


def _lines(rows: list[Row], column: str) -> dict[tuple[int, float], list[float]]:
    """Return a column by d and γ, in the order of thresholds; without regular factorization."""
    lines: dict[tuple[int, float], list[float]] = {}
    for row in sorted(rows, key=lambda row: row["threshold"]):
        if row["gain"]:
            lines.setdefault((row["factors"], row["gain"]), []).append(row[column])
    return lines


def _regular(rows: list[Row], column: str) -> dict[int, float]:
    return {row["factors"]: row[column] for row in rows if not row["gain"]}


def judge_errors(rows: list[Row]) -> Verdict:
    """Judge whether errors fall as ε grows, most at first, and come close to regular factorization."""
    lines, regular = _lines(rows, "rmse"), _regular(rows, "rmse")
    falls = sum(
        line[-1] < line[0] and all(after <= before + _SLACK for before, after in pairwise(line))
        for line in lines.values()
    )
    first = sum(line[0] - line[1] >= max(a - b for a, b in pairwise(line)) - _SLACK for line in lines.values())
    gaps = {key: line[-1] - regular[key[0]] for key, line in lines.items()}
    close, nearest = sum(gap <= _CLOSE for gap in gaps.values()), min(gaps, key=lambda key: gaps[key])
    farthest = max(gaps, key=lambda key: gaps[key])
    text = (
        f"the error falls as ε grows in {falls} of {len(lines)} lines, most at the first step in {first}; without a "
        f"threshold {close} of {len(lines)} come within {_CLOSE:g} of regular factorization: d = {nearest[0]} and "
        f"γ = {nearest[1]:g} is off by {gaps[nearest]:.4f}, d = {farthest[0]} and γ = {farthest[1]:g} by "
        f"{gaps[farthest]:.4f}."
    )
    return Verdict(falls == first == close == len(lines), text)


def judge_leaks(rows: list[Row]) -> Verdict:
    """Judge whether kld rises with ε, is mostly below regular factorization, and is lower in smaller models."""
    lines, regular = _lines(rows, "kld"), _regular(rows, "kld")
    rises = sum(line[-1] > line[0] for line in lines.values())
    below = [number < regular[key[0]] for key, line in lines.items() for number in line]
    factors, gains = sorted({key[0] for key in lines}), sorted({key[1] for key in lines})
    by_gain = all(a > b for d in factors for a, b in zip(lines[d, gains[0]], lines[d, gains[-1]], strict=True))
    by_factors = all(a < b for g in gains for a, b in zip(lines[factors[0], g], lines[factors[-1], g], strict=True))
    every = [number for line in lines.values() for number in line]
    text = (
        f"kld is higher without a threshold than with the least in {rises} of {len(lines)} lines, is between "
        f"{min(every):.4f} and {max(every):.4f}, and below that of regular factorization in {sum(below)} of "
        f"{len(below)} points; γ = {gains[-1]:g} {_leaks(by_gain)} than γ = {gains[0]:g}, and d = {factors[0]} "
        f"{_leaks(by_factors)} than d = {factors[-1]}."
    )
    return Verdict(rises == len(lines) and 2 * sum(below) > len(below) and by_gain and by_factors, text)


def _leaks(always: bool) -> str:
    return "always leaks less" if always else "does not always leak less"


def judge_top_users(rows: list[Row]) -> Verdict:
    """Judge whether top users have a lower error, and a divergence smaller by an order of magnitude."""
    own = [row for row in rows if row["gain"]]
    better = sum(row["rmse_top_users"] < row["rmse"] for row in own)
    times = [row["kld"] / row["kld_top_users"] for row in own]
    gap = median(row["rmse"] - row["rmse_top_users"] for row in own)
    text = (
        f"the error of top users is lower in {better} of {len(own)} runs (by {gap:.3f}, the median), their kld in "
        f"{sum(one > 1 for one in times)}: that of all is {min(times):.2g} to {max(times):.2g} times theirs, the "
        f"median {median(times):.2g}; an order of magnitude would be {_ORDER:g} or more."
    )
    return Verdict(better == len(own) and median(times) >= _ORDER, text)


def _panels(drawing: Drawing, rows: list[Row], columns: dict[str, str]) -> None:
    """Draw a panel for each column: lines over thresholds by d and γ, and of regular factorization."""
    row = drawing.subplots(1, len(columns), squeeze=False, sharey=len(columns) > 1)[0]
    drawing.set_size_inches(5.0 * max(len(columns), 1.5), 5)
    thresholds = sorted({row["threshold"] for row in rows})
    for axes, (column, label) in zip(row, columns.items(), strict=True):
        lines, regular = _lines(rows, column), _regular(rows, column)
        colours = {d: f"C{number}" for number, d in enumerate(sorted(regular))}
        for (d, gain), line in lines.items():
            style = _STYLES[gain]
            axes.plot(range(len(line)), line, style, color=colours[d], label=f"d = {d}, γ = {gain:g}")
        for d, number in regular.items():
            axes.axhline(number, color=colours[d], linewidth=0.8, label=f"d = {d}, regular")
        axes.set_xticks(range(len(thresholds)), ["∞" if math.isinf(one) else f"{one:g}" for one in thresholds])
        axes.set_xlabel("threshold ε of the loss")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    drawing.legend(*row[0].get_legend_handles_labels(), loc="outside right center", fontsize="x-small")


def _draw(columns: dict[str, str], *, log: bool = False) -> Callable[[Drawing, list[Row]], None]:
    def draw(drawing: Drawing, rows: list[Row]) -> None:
        _panels(drawing, rows, columns)
        for axes in drawing.axes if log else ():
            axes.set_yscale("log")

    return draw


_DATA = ("ml-1m", "goodbooks")
ERRORS = Figure(
    title="Error against the threshold ε, k = 4",
    published="The error falls as ε grows, most for small ε, and comes close to that of regular factorization.",
    measure=measure,
    draw=_draw({"rmse": "rmse on test ratings"}),
    judge=judge_errors,
    data=_DATA,
)
LEAKS = Figure(
    title="Divergence of training and test errors against ε, k = 4",
    published="kld rises with ε, is mostly below that of regular factorization, and smaller for larger γ and lower d.",
    measure=measure,
    draw=_draw({"kld": "kld, nats"}, log=True),
    judge=judge_leaks,
    data=_DATA,
)
TOP_USERS = Figure(
    title="Divergence of all and of the tenth with the most ratings, k = 4",
    published="Top users have a slightly lower error, and a kld that is smaller by an order of magnitude.",
    measure=measure,
    draw=_draw({"kld": "kld of all users, nats", "kld_top_users": "kld of top users, nats"}, log=True),
    judge=judge_top_users,
    data=_DATA,
)
