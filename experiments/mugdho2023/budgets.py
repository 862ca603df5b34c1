"""Figures 4 to 6: error and overall ε against eps_i, each run until its training error settles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpmf.methods.gaussian.defaults import SWEEPS
from experiments.figure import Figure, Row, Run, Verdict
from experiments.mugdho2023.measurements import REPEATS, SEARCHED, Parts
from experiments.mugdho2023.plots import beside, draw_baseline, panels
from experiments.mugdho2023.verdicts import SLACK, Finding, by_reading, falls, means, of, rises, trend

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_SMALL = (0.15, 0.30, 0.90)


def measure(run: Run) -> list[Row]:
    """Return one row for each reading, eps_i and repeat."""
    parts = Parts.of(run)
    trials, most = parts.readings(run), parts.most
    if not run.full:
        trials.pop(SEARCHED, None)
        most = parts.half

    def settle(reading: str, eps_i: float, step: float, repeat: int) -> dict[str, Any]:
        trial = replace(trials[reading], eps_i=eps_i, seed=run.seed + repeat)
        return {**parts.settled(trial, most=most), "baseline_rmse": parts.baseline}

    return run.each(
        [
            {"reading": reading, "eps_i": eps_i, "step": trial.step, "repeat": repeat}
            for reading, trial in trials.items()
            for eps_i in (SWEEPS["eps_i"] if run.full else _SMALL)
            for repeat in range(REPEATS if run.full else 1)
        ],
        settle,
    )


def judge(rows: list[Row]) -> Verdict:
    """Judge whether the error falls and the overall ε rises as eps_i grows."""
    return by_reading(rows, _judge_one)


def _judge_one(rows: list[Row]) -> Finding:
    errors, budgets = (list(means(rows, "eps_i", column).values()) for column in ("rmse", "epsilon"))
    first, last = rows[0]["eps_i"], rows[-1]["eps_i"]
    ran = [row["iterations"] for row in rows]
    text = (
        f"from eps_i = {first:g} to {last:g} the error {trend(errors)}, the overall ε {trend(budgets)}, "
        f"after {' to '.join(dict.fromkeys((str(min(ran)), str(max(ran)))))} iterations"
    )
    return falls(errors, slack=SLACK) and rises(budgets), text


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw one panel for each reading, errors on the left and overall ε on the right."""
    for axes, reading in panels(drawing, rows, "eps_i", "rmse on held-out ratings"):
        chosen = of(rows, reading=reading)
        errors, clamped, budgets = (means(chosen, "eps_i", name) for name in ("rmse", "clamped_rmse", "epsilon"))
        axes.plot(errors.keys(), errors.values(), "k-s", label="rmse")
        axes.plot(clamped.keys(), clamped.values(), "-", color="grey", label="rmse, clamped")
        draw_baseline(axes, rows)
        axes.legend(fontsize="x-small", loc="center right")
        right = beside(axes, "overall ε")
        right.plot(budgets.keys(), budgets.values(), "--x", color="tab:red", label="overall ε")
        right.legend(fontsize="x-small", loc="lower right")


FIGURE = Figure(
    title="Error and overall ε against eps_i",
    published="The larger eps_i is, the lower the error, and the higher the overall ε.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("ml-1m", "netflix", "anime"),
)
