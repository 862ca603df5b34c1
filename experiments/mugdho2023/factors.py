"""Figures 7 to 15: error, overall ε, and both, against the number of factors n, each run until it settles."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpmf.methods.gaussian.defaults import PUBLISHED, SWEEPS
from experiments.figure import Figure, Row, Run, Verdict
from experiments.mugdho2023.measurements import REPEATS, SEARCHED, Parts
from experiments.mugdho2023.plots import draw_baseline
from experiments.mugdho2023.verdicts import SLACK, Finding, by_reading, falls, means, of, rises, trend, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_SMALL = (20, 50, 100)


def measure(run: Run) -> list[Row]:
    """Return one row for each reading, eps_i, n and repeat."""
    parts = Parts.of(run)
    trials, most = parts.readings(run), parts.most
    if not run.full:
        trials.pop(SEARCHED, None)
        most = parts.half

    def settle(reading: str, eps_i: float, n: int, step: float, repeat: int) -> dict[str, Any]:
        trial = replace(trials[reading], eps_i=eps_i, n_factors=n, seed=run.seed + repeat)
        return {**parts.settled(trial, most=most), "baseline_rmse": parts.baseline}

    return run.each(
        [
            {"reading": reading, "eps_i": eps_i, "n": n, "step": trial.step, "repeat": repeat}
            for reading, trial in trials.items()
            for eps_i in ((math.inf, *SWEEPS["eps_i"]) if run.full else (PUBLISHED["eps_i"],))
            for n in (map(int, SWEEPS["n_factors"]) if run.full else _SMALL)
            for repeat in range(REPEATS if run.full else 1)
        ],
        settle,
    )


def judge(rows: list[Row]) -> Verdict:
    """Judge whether the error falls and the overall ε rises as n grows, with the published eps_i."""
    return by_reading(of(rows, eps_i=PUBLISHED["eps_i"]), _judge_one)


def _judge_one(rows: list[Row]) -> Finding:
    errors, train, budgets = (list(means(rows, "n", name).values()) for name in ("rmse", "train_rmse", "epsilon"))
    ran = list(means(rows, "n", "iterations").values())
    text = (
        f"from n = {rows[0]['n']} to {rows[-1]['n']} the error {trend(errors)} on held-out ratings and {trend(train)} "
        f"in training, and the overall ε {trend(budgets)}, after {_counts(ran)} iterations"
    )
    settled = any(row["settled"] for row in rows)
    text += "" if settled else ", when no run had settled"
    if not falls(errors, slack=SLACK):
        return False, text
    return rises(budgets) if settled else None, text


def _counts(ran: list[float]) -> str:
    return ", ".join(dict.fromkeys(f"{one:.0f}" for one in ran))


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw errors, one panel for each eps_i and one line for each reading, and the overall ε."""
    shown = [eps_i for eps_i in (math.inf, PUBLISHED["eps_i"]) if of(rows, eps_i=eps_i)]
    drawing.set_size_inches(4.5 * (len(shown) + 1), 5)
    *errors, budgets = drawing.subplots(1, len(shown) + 1)
    for axes, eps_i in zip(errors, shown, strict=True):
        for number, reading in enumerate(values_of(rows, "reading")):
            for column, line in (("rmse", "-o"), ("train_rmse", ":")):
                found = means(of(rows, reading=reading, eps_i=eps_i), "n", column)
                label = reading if column == "rmse" else f"{reading}, training"
                axes.plot(found.keys(), found.values(), line, color=f"C{number}", label=label)
        draw_baseline(axes, rows)
        axes.set_title("rmse, no noise" if math.isinf(eps_i) else f"rmse, eps_i = {eps_i:g}", fontsize="small")
        axes.set_ylim(0.5 * rows[0]["baseline_rmse"], 2 * rows[0]["baseline_rmse"])
    for number, reading in enumerate(values_of(rows, "reading")):
        found = means(of(rows, reading=reading, eps_i=PUBLISHED["eps_i"]), "n", "epsilon")
        budgets.plot(found.keys(), found.values(), "--x", color=f"C{number}", label=reading)
    budgets.set_title(f"overall ε, eps_i = {PUBLISHED['eps_i']:g}", fontsize="small")
    errors[0].legend(fontsize="xx-small")
    for axes in (*errors, budgets):
        axes.set_xlabel("n")
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize="small")


FIGURE = Figure(
    title="Error and overall ε against the number of factors n",
    published="The error falls as n grows; the overall ε rises, because more iterations are needed.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("ml-1m", "netflix", "anime"),
)
