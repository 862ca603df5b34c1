"""Figure 6: error against epochs, for descent and for sampling."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from dpmf import SGD, SGLD
from dpmf.methods import Method
from experiments.figure import Figure, Row, Run, Verdict
from experiments.liu2015.data import DATA, PLAIN, K, Parts
from experiments.liu2015.plots import COLOURS, axes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_KINDS = ("descent", "one draw", "average of draws")


def measure(run: Run) -> list[Row]:
    """Return one row for each number of epochs and kind."""
    parts = cache(partial(Parts.of, run))  # read when the first point needs them

    def error(epochs: int, kind: str) -> dict[str, float]:
        draws = SGLD(n_factors=K, n_epochs=epochs, budget=PLAIN)
        kinds: dict[str, Method] = {
            "descent": SGD(n_factors=K, n_epochs=epochs),
            "one draw": replace(draws, n_samples=1),
            "average of draws": draws,
        }
        return {"rmse": parts().error(kinds[kind])}

    return run.each([{"epochs": epochs, "kind": kind} for epochs in (2, 5, 10, 20, 40) for kind in _KINDS], error)


def _curve(rows: list[Row], kind: str) -> tuple[list[int], list[float]]:
    chosen = [row for row in rows if row["kind"] == kind]
    return [row["epochs"] for row in chosen], [row["rmse"] for row in chosen]


def judge(rows: list[Row]) -> Verdict:
    """Judge whether descent overfits and sampling keeps improving."""
    (epochs, descent), (_, average) = _curve(rows, "descent"), _curve(rows, "average of draws")
    best = min(range(len(descent)), key=descent.__getitem__)
    overfits = descent[-1] > descent[best]
    return Verdict(
        overfits and average[-1] == min(average) and average[-1] <= descent[best],
        f"descent is best after {epochs[best]} epochs ({descent[best]:.4f}) and has {descent[-1]:.4f} after "
        f"{epochs[-1]}; averaged draws go from {average[0]:.4f} after {epochs[0]} to {average[-1]:.4f}.",
    )


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw a line for each kind."""
    axes = axes_of(drawing, "epochs")
    for kind, marker, colour in zip(_KINDS, "so^", COLOURS, strict=False):
        axes.semilogx(*_curve(rows, kind), f"{marker}-", color=colour, label=kind)
    axes.legend(frameon=False)


FIGURE = Figure(
    title="Error by epochs, of descent and of sampling",
    published="Descent is best after a few epochs and then overfits; sampling burns in and goes on improving.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=DATA,
)
