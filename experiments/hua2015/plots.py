"""Styles, legends and axes that the plots share."""

from __future__ import annotations

from typing import Any

from experiments.figure import Row

DRAWN = (0.05, 0.15, 0.8, 3.0, 10.0, 30.0, 100.0, 1000.0)
"""Values of ε that get a line of their own; others are in the rows only."""

LINEAR = 0.03
"""Increases up to this are drawn on a linear scale, larger ones on a log scale."""


def style(axes: Any, x: str, y: str) -> None:
    """Label the axes and draw a grid."""
    axes.set_xlabel(x, fontsize="small")
    axes.set_ylabel(y, fontsize="small")
    axes.tick_params(labelsize="small")
    axes.grid(alpha=0.3)


def budget_colour(epsilon: float) -> str:
    """Return a colour for one of the values of ε that are drawn."""
    return f"C{DRAWN.index(epsilon)}"


def legend_below(axes: Any, columns: int, title: str | None = None) -> None:
    """Put the legend under the axes, where it hides nothing."""
    axes.legend(
        fontsize="xx-small",
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=columns,
        frameon=False,
        handlelength=1.5,
        columnspacing=1.0,
        title=title,
        title_fontsize="xx-small",
    )


def budget_label(row: Row) -> str:
    """Return the label of a line: ε, and the composed ε of all rounds where it is larger."""
    told = f" (composed {row['composed']:,.4g})" if row["composed"] != row["epsilon"] else ""
    return f"ε = {row['epsilon']:g}{told}"


def composed_axis(axes: Any, rounds: int) -> None:
    """Add a second axis on top with the composed ε of all rounds."""
    other = axes.secondary_xaxis(
        "top", functions=(lambda epsilon: (rounds + 1) * epsilon, lambda cost: cost / (rounds + 1))
    )
    other.set_xlabel("composed: (T + 1) ε, a lower figure; proven: none", fontsize="x-small")
    other.tick_params(labelsize="x-small")


def symmetric_log(axes: Any) -> None:
    """Use a scale that shows both small and huge increases."""
    axes.set_yscale("symlog", linthresh=LINEAR, linscale=0.7)
    axes.axhline(0, color="black", linewidth=0.8)
