"""The same runs on held-out ratings, which the paper does not show.

With 50 factors and penalties of 0.001, users with few ratings fit anything: training errors say little about how useful
a recommender is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.figure import Figure, Row, Run, Verdict
from experiments.hua2015.measurements import AT
from experiments.hua2015.measurements import measure as measured
from experiments.hua2015.plots import DRAWN, composed_axis, legend_below, style
from experiments.hua2015.runs import NONE, WHOLE, Trial
from experiments.hua2015.statements import NEAR, STATED, budgets_of, mean, of, statement, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_SCENARIOS = ("S1", "S2", "S3")
_HOLDOUT = 0.1


def measure(run: Run) -> list[Row]:
    """Return one row for each scenario, ε and number of iterations."""
    trials = [
        one
        for scenario in _SCENARIOS
        for one in (*(Trial(scenario, epsilon, WHOLE) for epsilon in DRAWN), Trial(scenario))
    ]
    rows = measured(run, trials, holdout=_HOLDOUT)
    return [{name: value for name, value in row.items() if not name.startswith("within")} for row in rows]


def judge(rows: list[Row]) -> Verdict:
    """Judge whether held-out errors equal those of plain factorization where training errors are stated to."""
    plain, free = mean(of(rows, scenario="plain"), _error), mean(rows, lambda row: float(row["baseline_rmse"]))
    assert plain is not None
    found = [statement(rows, scenario, _error, plain + NEAR, "rmse {}") for scenario in _SCENARIOS]
    return verdict(found, f" Plain factorization has {plain:.3f}, and the mean of one's own ratings {free:.3f}.")


def _error(row: Row) -> float:
    return float(row["clamped_rmse"])


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw a panel for each scenario."""
    drawing.set_size_inches(10.5, 5.2)
    panels = drawing.subplots(1, len(_SCENARIOS), sharey=True)
    for axes, scenario in zip(panels, _SCENARIOS, strict=True):
        for number, iterations in enumerate(AT[scenario]):
            there = of(rows, scenario=scenario, iterations=iterations)
            noisy = of(there, noise=WHOLE)
            budgets = budgets_of(noisy)
            errors = [mean(of(noisy, epsilon=epsilon), _error) for epsilon in budgets]
            word = "rounds" if scenario == "S3" else "iterations"
            axes.plot(budgets, errors, "-o", color=f"C{number}", markersize=3, label=f"{iterations:,} {word}")
            for row in of(there, noise=NONE):
                axes.axhline(_error(row), color=f"C{number}", linewidth=0.7, linestyle=":")
        axes.axhline(_error(of(rows, scenario="plain")[0]), color="black", linestyle="--", label="plain")
        axes.axhline(rows[0]["baseline_rmse"], color="grey", label="own mean")
        axes.axvline(STATED[rows[0]["data"], scenario].epsilon, color="tab:red", linestyle="-.", label="stated ε")
        axes.set_xscale("log")
        axes.set_title(scenario, fontsize="small")
        style(axes, "claimed ε, for the value of one rating", "")
        if scenario != "S1":
            composed_axis(axes, AT[scenario][-1])
        legend_below(axes, 2)
    panels[0].set_ylabel("rmse on held-out ratings, clamped (dotted: without noise)", fontsize="small")


FIGURE = Figure(
    title="Errors on held-out ratings, against ε and iterations",
    published="Nothing on held-out ratings. On training ratings, increases over plain factorization are about 0 for "
    "MovieLens at the ε stated.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("ml-100k", "netflix"),
)
