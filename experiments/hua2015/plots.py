"""What the pictures have in common."""

from __future__ import annotations

from typing import Any

from experiments.figure import Row

DRAWN = (0.05, 0.15, 0.8, 3.0, 10.0, 30.0, 100.0, 1000.0)
"""Values of ε that get a line where each is one; others are in the rows only."""

LINEAR = 0.03
"""Increases up to this are drawn to scale, larger ones by their logarithm."""


def style(axes: Any, x: str, y: str) -> None:
    """Name the axes, and draw a grid."""
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
    """Return what a line is of, with what all rounds cost together where it is more."""
    told = f" (composed {row['composed']:,.4g})" if row["composed"] != row["epsilon"] else ""
    return f"ε = {row['epsilon']:g}{told}"


def composed_axis(axes: Any, rounds: int) -> None:
    """Put what so many rounds cost together on a second axis on top."""
    other = axes.secondary_xaxis(
        "top", functions=(lambda epsilon: (rounds + 1) * epsilon, lambda cost: cost / (rounds + 1))
    )
    other.set_xlabel("composed: (T + 1) ε, a lower figure; proven: none", fontsize="x-small")
    other.tick_params(labelsize="x-small")


def symmetric_log(axes: Any) -> None:
    """Let increases have a scale on which small and huge ones can be seen."""
    axes.set_yscale("symlog", linthresh=LINEAR, linscale=0.7)
    axes.axhline(0, color="black", linewidth=0.8)
