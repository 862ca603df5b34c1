"""Colours and axes that the plots share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00")
"""Distinguishable with colour blindness too."""


def axes_of(drawing: Drawing, x: str, y: str = "rmse on held-out ratings") -> Any:
    """Return axes with labels and a grid."""
    axes = drawing.subplots()
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    return axes
