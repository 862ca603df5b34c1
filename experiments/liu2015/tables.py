"""Figure 4: error against the size of the table of normal variates that noise is read from."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from dpmf import SGLD
from experiments.figure import Figure, Row, Run, Verdict
from experiments.liu2015.data import DATA, PLAIN, K, Parts
from experiments.liu2015.plots import COLOURS, axes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def measure(run: Run) -> list[Row]:
    """Return one row for each size; 0 stands for fresh numbers."""
    parts = cache(partial(Parts.of, run))  # read when the first point needs them
    points = [{"size": size} for size in (100, 1000, 10_000, 65_536, 0)]
    return run.each(points, lambda size: {"rmse": parts().error(SGLD(n_factors=K, budget=PLAIN, table=size))})


def judge(rows: list[Row]) -> Verdict:
    """Judge whether tables of 10,000 numbers and more do as well as fresh numbers."""
    fresh = next(row["rmse"] for row in rows if not row["size"])
    worst = max((row["rmse"] - fresh for row in rows if row["size"] >= 10_000), key=abs)
    small = next(row["rmse"] - fresh for row in rows if row["size"] == 100)
    return Verdict(
        abs(worst) <= 0.002,
        f"tables of 10,000 numbers and more are within {abs(worst):.4f} of fresh ones ({fresh:.4f}); one of 100 is "
        f"{abs(small):.4f} {'worse' if small > 0 else 'better'}.",
    )


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw the errors of tables, and that of fresh numbers as a line."""
    axes = axes_of(drawing, "numbers in the table")
    drawn = [row for row in rows if row["size"]]
    axes.semilogx([row["size"] for row in drawn], [row["rmse"] for row in drawn], "o-", color=COLOURS[0], label="table")
    for row in rows:
        if not row["size"]:
            axes.axhline(row["rmse"], color="0.4", linestyle="--", label="fresh numbers")
    axes.legend(frameon=False)


FIGURE = Figure(
    title="Error by size of the table of normal numbers",
    published="A table of 10,000 numbers or more does as well as a generator of normal numbers.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=DATA,
)
