"""What somebody has to decide: the best certified method at each epsilon, and what it costs beside the alternatives.

>>> import math
>>> from dpmf.compare.results import Row
>>> from dpmf.compare.summary import summarize
>>> rows = [Row("als", "certified", 1.0, 0, 7, epsilon=1.0, delta=1e-6, unit="user", neighbours="add-remove",
...             certified=True, rmse=0.9), Row("own-mean", "none", math.inf, 0, 7, rmse=1.0)]
>>> headline(summarize(rows), "rmse", "own-mean", "the per-user mean")
'At every ε here, the best certified method has a better rmse than the per-user mean.'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpmf.compare.report.markup import Cell, table
from dpmf.compare.report.tables import best_points, best_row
from dpmf.compare.summary import Point

_ERRORS = ("rmse", "mae")
"""Figures that are the better the lower they are."""
_NAMES = {"ndcg": "ndcg@10"}


def decision_table(points: Sequence[Point], figure: str, beside: Mapping[str, str]) -> str:
    """Return the best certified method at each epsilon, by a figure, beside references.

    Args:
        points: what was measured.
        figure: what methods are judged by.
        beside: references to put it beside: name → what the column is called.
    """
    heights = reference_heights(points, figure)
    known = {name: title for name, title in beside.items() if name in heights}
    rows = [
        [*best_row(point, figure), *(_number(f"{point.mean[figure] - heights[name]:+.4f}") for name in known)]
        for point in best_points(points, figure)
    ]
    return table(["ε", "best certified", _NAMES.get(figure, figure), *known.values()], rows)


def headline(points: Sequence[Point], figure: str, reference: str, name: str) -> str:
    """Return from which epsilon on what is certified beats a reference that needs no privacy budget, in a sentence."""
    best = [point for point in best_points(points, figure) if point.unit == "user"]
    height = reference_heights(points, figure).get(reference)
    if not best or height is None:
        return ""
    called = _NAMES.get(figure, figure)
    better = [(point.mean[figure] < height) == (figure in _ERRORS) for point in best]
    first = len(better) - next((place for place, one in enumerate(reversed(better)) if not one), len(better))
    if first == len(better):
        return f"No certified method here has a better {called} than {name}" + (
            ", not even at the largest ε." if len(better) > 1 else "."
        )
    if first == 0:
        return f"At every ε here, the best certified method has a better {called} than {name}."
    return f"From ε = {best[first].asked:g} per user on, the best certified method has a better {called} than {name}."


def reference_heights(points: Sequence[Point], figure: str) -> dict[str, float]:
    """Return a figure of every reference that has it, by name."""
    return {one.method: one.mean[figure] for one in points if one.is_reference and figure in one.mean}


def _number(words: str) -> Cell:
    return Cell(words.replace("-", "−"), number=True)
