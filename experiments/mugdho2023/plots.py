"""What the plots share: a panel for each reading, with the free baseline in each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from experiments.figure import Row
from experiments.mugdho2023.verdicts import values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_WIDTH, _HEIGHT = 3.1, 4.6  # inches of a panel


def panels(drawing: Drawing, rows: list[Row], x: str, y: str) -> Iterator[tuple[Any, str]]:
    """Yield axes and reading, for every reading of the rows, side by side."""
    readings = values_of(rows, "reading")
    drawing.set_size_inches(max(_WIDTH * len(readings), 2 * _WIDTH), _HEIGHT)
    row = drawing.subplots(1, len(readings), squeeze=False)[0]
    for number, (axes, reading) in enumerate(zip(row, readings, strict=True)):
        axes.set_title(reading, fontsize="small")
        axes.set_xlabel(x)
        axes.set_ylabel(y if not number else "")
        axes.tick_params(labelsize="small")
        axes.grid(alpha=0.3)
        yield axes, reading


def draw_baseline(axes: Any, rows: list[Row]) -> None:
    """Draw the error of the per-user mean, which uses no one else's data."""
    axes.axhline(rows[0]["baseline_rmse"], color="grey", linestyle=":", label="own mean")


def beside(axes: Any, y: str) -> Any:
    """Return axes for a second quantity, on the right."""
    other = axes.twinx()
    other.set_ylabel(y)
    other.tick_params(labelsize="small")
    return other
