"""What somebody has to decide: the best certified method at each epsilon, and what it costs beside the alternatives.

>>> from dpmf.compare.results import Row
>>> from dpmf.compare.summary import summarize
>>> rows = [Row("als", "certified", 1.0, 0, 7, epsilon=1.0, delta=1e-6, unit="user", neighbours="add-remove",
...             certified=True, rmse=0.9), Row("own-mean", "none", math.inf, 0, 7, rmse=1.0)]
>>> headline(summarize(rows), "rmse", "own-mean", "the per-user mean")
'At every ε here, the best certified method has a better rmse than the per-user mean.'
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dpmf.compare.report.markup import Cell, table
from dpmf.compare.report.tables import best_points, best_row
from dpmf.compare.summary import Point

_ERRORS = ("rmse", "mae")
"""Figures that are the better the lower they are."""


def decision_table(points: Sequence[Point], columns: Mapping[str, Mapping[str, str]]) -> str:
    """Return the best certified method at each epsilon, by the first figure, beside references.

    Args:
        points: what was measured.
        columns: of each figure, the references to put it beside: name → what the column is called.
    """
    (main, *others) = columns
    names = ["ε", "best certified", main]
    heights = {figure: reference_heights(points, figure) for figure in columns}
    rows = [(point, best_row(point, main)) for point in best_points(points, main)]
    for figure in (main, *others):
        known = {name: title for name, title in columns[figure].items() if name in heights[figure]}
        if figure != main and not any(figure in point.mean for point, _ in rows):
            continue
        names += [figure] if figure != main else []
        names += known.values()
        for point, cells in rows:
            value = point.mean.get(figure, math.nan)
            cells += [_number(f"{value:.4f}", value)] if figure != main else []
            cells += [_number(f"{value - heights[figure][name]:+.4f}", value) for name in known]
    return table(names, [cells for _, cells in rows])


def headline(points: Sequence[Point], figure: str, reference: str, name: str) -> str:
    """Return from which epsilon on what is certified beats a reference that needs no privacy budget, in a sentence."""
    best = [point for point in best_points(points, figure) if point.unit == "user"]
    height = reference_heights(points, figure).get(reference)
    if not best or height is None:
        return ""
    better = [(point.mean[figure] < height) == (figure in _ERRORS) for point in best]
    first = len(better) - next((place for place, one in enumerate(reversed(better)) if not one), len(better))
    if first == len(better):
        return f"No certified method here has a better {figure} than {name}" + (
            ", not even at the largest ε." if len(better) > 1 else "."
        )
    if first == 0:
        return f"At every ε here, the best certified method has a better {figure} than {name}."
    return f"From ε = {best[first].asked:g} per user on, the best certified method has a better {figure} than {name}."


def reference_heights(points: Sequence[Point], figure: str) -> dict[str, float]:
    """Return a figure of every reference that has it, by name."""
    return {one.method: one.mean[figure] for one in points if one.is_reference and figure in one.mean}


def _number(words: str, value: float) -> Cell:
    return Cell("–" if math.isnan(value) else words.replace("-", "−"), number=True)
