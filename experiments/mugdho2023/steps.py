"""The published step sizes in every reading of the pseudocode: which of them converge?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpmf.methods.gaussian.defaults import SWEEPS
from experiments.figure import Figure, Row, Run, Verdict
from experiments.mugdho2023.descent import READINGS, Trial
from experiments.mugdho2023.measurements import Parts
from experiments.mugdho2023.plots import draw_baseline
from experiments.mugdho2023.verdicts import of, shown, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_FIRST = next(iter(READINGS))
_NEAR = 1.1  # times the error of the free baseline: beyond it a run has learnt nothing


def measure(run: Run) -> list[Row]:
    """Return one row for each reading and step, and one for the step found by search."""
    parts = Parts.of(run)

    def end(reading: str, step: float, searched: bool = False) -> dict[str, Any]:
        found = parts.settled(Trial(reading, step=step, seed=run.seed), most=parts.half, tolerance=0.0)
        return {"searched": searched, **found, "baseline_rmse": parts.baseline}

    def search(reading: str) -> dict[str, Any]:
        step = parts.searched_step(Trial(reading, seed=run.seed))
        return {"step": step, **end(reading, step, True)}

    rows = run.each(
        [{"reading": reading, "step": step} for reading in READINGS for step in SWEEPS["learning_rate"]], end
    )
    return rows + run.each([{"reading": reading} for reading in list(READINGS)[:1]], search)


def judge(rows: list[Row]) -> Verdict:
    """Judge with which readings all published steps end near the free baseline or below it."""
    published = [row for row in rows if not row["searched"]]
    texts, working = [], []
    for reading in values_of(published, "reading"):
        chosen = of(published, reading=reading)
        if all(_works(row) for row in chosen):
            working.append(reading)
        texts.append(f"{reading} {', '.join(shown(row['rmse']) for row in chosen)}")
    steps = ", ".join(f"{step:g}" for step in values_of(published, "step"))
    near = f"within a tenth of the mean of one's own ratings ({shown(rows[0]['baseline_rmse'])}) or better"
    sentence = f"errors with steps {steps} after {max(row['iterations'] for row in rows)} iterations, eps_i = 0.3: "
    sentence += f"{'; '.join(texts)}. With every step {near}: {' and '.join(working) or 'no reading'}."
    for row in of(rows, searched=True):
        sentence += f" A search on a validation part takes {row['step']:.2g} ({row['reading']}): {shown(row['rmse'])}."
    return Verdict(_FIRST in working, sentence)


def _works(row: Row) -> bool:
    return bool(row["rmse"] < _NEAR * row["baseline_rmse"])


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw one line for each reading; points far above the baseline are off the scale."""
    drawing.set_size_inches(8, 6)
    axes = drawing.subplots()
    for number, reading in enumerate(values_of(rows, "reading")):
        line = of(rows, reading=reading, searched=False)
        colour = f"C{number}"
        axes.plot([row["step"] for row in line], [row["rmse"] for row in line], "-o", color=colour, label=reading)
        for row in of(rows, reading=reading, searched=True):
            axes.plot([row["step"]], [row["rmse"]], "*", markersize=12, color=colour, label=f"{reading}, searched")
    draw_baseline(axes, rows)
    axes.set_xscale("log")
    axes.set_xticks(SWEEPS["learning_rate"], [f"{step:g}" for step in SWEEPS["learning_rate"]])
    axes.minorticks_off()
    axes.set_ylim(0.8 * rows[0]["baseline_rmse"], 2 * rows[0]["baseline_rmse"])
    axes.set_xlabel("step (breaks where a run diverges or is off the scale)")
    axes.set_ylabel("rmse on held-out ratings")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="x-small")


FIGURE = Figure(
    title="Error against the step size, in several readings of the pseudocode",
    published="There are results for all four steps, so the descent converges with each of them on raw ratings.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("ml-1m", "netflix", "anime"),
)
