"""Figures 1 to 3: error against iterations, without noise and for several eps_i."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dpmf.methods.gaussian.defaults import SWEEPS
from experiments.figure import Figure, Row, Run, Verdict
from experiments.mugdho2023.measurements import Parts
from experiments.mugdho2023.plots import draw_baseline, panels
from experiments.mugdho2023.verdicts import Finding, by_reading, falls, of, shown, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_AT = (10, 25, 50, 75, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800, 900, 1000)
_SMALL = (0.15, 0.30)
_JUMP = 1.05  # a larger rise between two points does not count as falling


def measure(run: Run) -> list[Row]:
    """Return one row for each reading, eps_i and number of iterations."""
    parts = Parts.of(run)
    trials = parts.readings(run)
    at = [one for one in _AT if one < parts.most] + [parts.most]

    def curve(reading: str, eps_i: float, step: float) -> dict[str, Any]:
        return {"curve": parts.curve(replace(trials[reading], eps_i=eps_i), at)}

    points = [
        {"reading": reading, "eps_i": eps_i, "step": trial.step}
        for reading, trial in trials.items()
        for eps_i in (math.inf, *reversed(SWEEPS["eps_i"] if run.full else _SMALL))
    ]
    rows = run.each(points, curve)
    return [
        {
            "reading": row["reading"],
            "eps_i": row["eps_i"],
            "step": row["step"],
            **point,
            "baseline_rmse": parts.baseline,
        }
        for row in rows
        for point in row["curve"]
    ]


def judge(rows: list[Row]) -> Verdict:
    """Judge whether errors fall with iterations, and end higher for smaller eps_i."""
    return by_reading(rows, _judge_one)


def _judge_one(rows: list[Row]) -> Finding:
    curves = {eps_i: [row["rmse"] for row in of(rows, eps_i=eps_i)] for eps_i in values_of(rows, "eps_i")}
    first, last = rows[0]["iterations"], rows[-1]["iterations"]
    ends = [curve[-1] for curve in curves.values()]
    starts = sorted(curve[0] for curve in curves.values())
    start = " to ".join(dict.fromkeys((shown(starts[0]), shown(starts[-1]))))
    text = f"from {start} after {first} iterations to, after {last}, " + ", ".join(
        f"{shown(curve[-1])} {_named(eps_i)}" for eps_i, curve in curves.items()
    )
    jumps = {
        eps_i: max((after for before, after in pairwise(curve) if after > _JUMP * before), default=0.0)
        for eps_i, curve in curves.items()
    }
    if any(jumps.values()):
        up = ", ".join(f"{shown(top)} {_named(eps_i)}" for eps_i, top in jumps.items() if 0 < top < math.inf)
        text += f", rising on the way to {up}" if up else ""
    fell = all(math.isfinite(curve[-1]) and curve[-1] < curve[0] for curve in curves.values())
    return fell and not any(jumps.values()) and falls(ends[::-1]), text


def _named(eps_i: float) -> str:
    return "without noise" if math.isinf(eps_i) else f"with eps_i = {eps_i:g}"


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw one panel for each reading, one line for each eps_i."""
    for axes, reading in panels(drawing, rows, "iterations", "rmse on held-out ratings"):
        chosen = of(rows, reading=reading)
        for eps_i in values_of(chosen, "eps_i"):
            line = of(chosen, eps_i=eps_i)
            label = "no noise" if math.isinf(eps_i) else f"eps_i = {eps_i:g}"
            axes.plot([row["iterations"] for row in line], [row["rmse"] for row in line], marker=".", label=label)
        draw_baseline(axes, rows)
        axes.set_xlim(0, 1.03 * max(row["iterations"] for row in rows))
        axes.set_ylim(0.7 * rows[0]["baseline_rmse"], 2.5 * rows[0]["baseline_rmse"])
        axes.legend(fontsize="x-small")


FIGURE = Figure(
    title="Error against iterations, for several eps_i",
    published="The error falls with iterations; the smaller eps_i is, the slower, and the higher it stays.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("ml-1m", "netflix", "anime"),
)
