"""Figures 7 and 8: mean increase of errors over plain factorization, against ε and iterations.

They are views of the runs of figures 1 to 6, and use their rows if these exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from experiments.figure import Figure, Row, Run, Verdict
from experiments.hua2015.measurements import rows_of
from experiments.hua2015.plots import composed_axis, legend_below, style, symmetric_log
from experiments.hua2015.runs import DIVIDED, NONE, WHOLE
from experiments.hua2015.statements import STATED, budgets_of, mean, of, statement, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_SCENARIOS = {"S1": ("figure1", "figure2"), "S2": ("figure3", "figure4"), "S3": ("figure5", "figure6")}
_PUBLISHED_RANGE = (0.05, 0.8)


def measure(run: Run) -> list[Row]:
    """Return one row for each scenario, noise, ε and number of iterations."""
    rows: list[Row] = []
    for scenario, figures in _SCENARIOS.items():
        found = rows_of(run, scenario, figures)
        rows += [row for row in found if row["scenario"] != "plain" or not rows]
    return [{name: value for name, value in row.items() if not name.startswith("within")} for row in rows]


def judge(rows: list[Row]) -> Verdict:
    """Judge for each scenario whether the increase is as stated."""
    data = rows[0]["data"]
    found = []
    for scenario in _SCENARIOS:
        stated = STATED[data, scenario]
        told = f"{{}} ({_clamped(rows, scenario)} clamped), where {stated.words} is stated"
        found.append(statement(rows, scenario, _increase, stated.most, told))
    plain = mean(of(rows, scenario="plain"), lambda row: float(row["mean_error"]))
    return verdict(found, f" Plain factorization has {plain:.3f}." if plain is not None else "")


def _increase(row: Row) -> float:
    return float(row["increase"])


def _clamped(rows: list[Row], scenario: str) -> str:
    stated = STATED[rows[0]["data"], scenario]
    there = of(rows, scenario=scenario, noise=WHOLE, epsilon=stated.epsilon, iterations=stated.iterations)
    found = mean(there, lambda row: float(row["clamped_increase"]))
    return "-" if found is None else f"{found:.3f}"


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw a panel for each scenario: a line for each number of iterations, and the stated increase."""
    drawing.set_size_inches(11, 5.6)
    panels = drawing.subplots(1, len(_SCENARIOS), sharey=True)
    for axes, scenario in zip(panels, _SCENARIOS, strict=True):
        own = of(rows, scenario=scenario)
        moments = sorted({row["iterations"] for row in own})
        word = "rounds" if scenario == "S3" else "iterations"
        for number, iterations in enumerate(moments):
            there = of(own, iterations=iterations)
            _line(axes, of(there, noise=WHOLE), "-o", color=f"C{number}", label=f"{iterations:,} {word}", markersize=3)
            none = mean(of(there, noise=NONE), _increase)
            if none is not None:
                axes.axhline(none, color=f"C{number}", linewidth=0.7, linestyle=":")
        last = of(own, iterations=moments[-1])
        clamped = of(last, noise=WHOLE)
        _line(axes, clamped, "--", column="clamped_increase", color="0.5", label=f"{moments[-1]:,}, clamped")
        _line(axes, of(last, noise=DIVIDED), ":s", color="black", markersize=3, label="÷ ratings: no guarantee")
        stated = STATED[rows[0]["data"], scenario]
        axes.plot([stated.epsilon], [stated.value], "*", color="tab:red", markersize=12, label=f"stated {stated.words}")
        axes.axvspan(*_PUBLISHED_RANGE, color="tab:red", alpha=0.08)
        axes.set_xscale("log")
        symmetric_log(axes)
        axes.set_title(scenario, fontsize="small")
        style(axes, "claimed ε, for the value of one rating", "")
        if scenario != "S1":
            composed_axis(axes, moments[-1])
        legend_below(axes, 2)
    panels[0].set_ylabel("mean increase of |error| (dotted lines: without noise)", fontsize="small")


def _line(axes: Any, rows: list[Row], line: str, *, column: str = "increase", **options: Any) -> None:
    budgets = budgets_of(rows)
    values = [mean(of(rows, epsilon=epsilon), lambda row: float(row[column])) for epsilon in budgets]
    axes.plot(budgets, values, line, **options)


FIGURE = Figure(
    title="Mean increase of errors over plain factorization, against ε and iterations",
    published="S1: below 0.03 at ε ≥ 0.15 after 70 iterations for Netflix, about 0 at 0.05 after 40 for MovieLens. S2: "
    "about 0.14 at 0.15 for Netflix, near 0 for MovieLens. S3, after 10,000 rounds: below 0.1 at 0.8 for Netflix, and "
    "nothing to be seen at 0.05 for MovieLens.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("netflix", "ml-100k"),
)
