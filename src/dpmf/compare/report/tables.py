"""The tables of a report, and of the command line: what every method reached, and at which promise.

>>> spread(0.9123, 0.91, 0.915)
'0.9123 (0.9100–0.9150)'
>>> spread(0.9123, 0.9123, 0.9123)
'0.9123'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpmf.compare.report.markup import Cell
from dpmf.compare.results import NON_PRIVATE, OWN_MEAN, POPULAR, Row
from dpmf.compare.summary import Point

ACCURACY = ("method", "promise", "ε", "rmse", "mae", "recall@10", "ndcg@10", "kld", "seconds", "memory", "runs")
REFERENCE_NAMES = {
    OWN_MEAN: "mean of your own ratings",
    POPULAR: "what most people rated",
    NON_PRIVATE: "sgd",
}
_FIGURES = ("rmse", "mae", "recall", "ndcg", "kld")
_NONE = "–"


def accuracy_rows(points: Iterable[Point]) -> list[list[Cell]]:
    """Return cells for `ACCURACY`, one row per point."""
    return [_accuracy_row(point) for point in points]


def promise_of(point: Point) -> Cell:
    """Return what stands behind an epsilon, in words that nobody can take for something else."""
    if point.mode == "none":
        free = point.method == OWN_MEAN
        return Cell("free: nobody tells anybody anything" if free else "none: not private")
    if not point.n:
        return Cell(point.mode)
    about = f"per {point.unit}, {point.neighbours}" + (f", δ = {point.delta:g}" if point.delta else "")
    if point.is_claim:
        return Cell(f"paper's claim {about}", kind="claim")
    return Cell(f"certified {about}", kind="proven") if point.certified else Cell("seeded noise: not private")


def spread(mean: float, least: float, most: float) -> str:
    """Return a mean, with the range if there is one."""
    return f"{mean:.4f}" if f"{least:.4f}" == f"{most:.4f}" else f"{mean:.4f} ({least:.4f}–{most:.4f})"


def group_rows(rows: Sequence[Row], groups: str) -> list[list[Cell]]:
    """Return rmse by group of items or users, mean of repeats: a row per method, mode and epsilon.

    Args:
        rows: measured.
        groups: "by_popularity" or "by_activity".
    """
    found: dict[tuple[str, str, float], list[list[list[float | None]]]] = {}
    for row in rows:
        if not row.error and getattr(row, groups):
            found.setdefault((row.method, row.mode, row.asked), []).append(getattr(row, groups))
    table = []
    for (method, mode, asked), repeats in found.items():
        name = REFERENCE_NAMES.get(method, method) if mode == "none" else method
        cells = [Cell(name), Cell({"paper": "claim", "none": _NONE}.get(mode, mode)),
                 Cell(_NONE if mode == "none" else f"{asked:g}", number=True)]  # fmt: skip
        for place in range(len(repeats[0])):
            errors = [one[place][2] for one in repeats]
            known = [one for one in errors if one is not None]
            cells.append(Cell(f"{sum(known) / len(known):.4f}" if known else _NONE, number=True))
        table.append(cells)
    return table


def group_names(rows: Sequence[Row], groups: str) -> list[str]:
    """Return the names of groups, such as "most popular 1 %"."""
    whose = "popular" if groups == "by_popularity" else "active"
    highs = next(([one[0] for one in getattr(row, groups)] for row in rows if getattr(row, groups)), [])
    names, low = [], 0.0
    for high in highs:
        assert high is not None
        names.append(f"most {whose} {high:.0%}" if not low else f"{low:.0%} to {high:.0%}")
        low = high
    return names


def _accuracy_row(point: Point) -> list[Cell]:
    name = REFERENCE_NAMES.get(point.method, point.method) if point.mode == "none" else point.method
    epsilon = _NONE if point.mode == "none" else f"{point.asked if point.epsilon is None else point.epsilon:g}"
    figures = [_NONE if one not in point.mean else spread(point.mean[one], point.least[one], point.most[one])
               for one in _FIGURES]  # fmt: skip
    seconds = f"{point.mean['seconds']:.1f}" if "seconds" in point.mean else _NONE
    memory = f"{point.mean['peak_memory'] / 1e6:,.0f} MB" if "peak_memory" in point.mean else _NONE
    runs = str(point.n) if not point.errors else f"{point.n}, others failed"
    return [Cell(name), promise_of(point), *(Cell(one, number=True) for one in (epsilon, *figures, seconds, memory,
                                                                                runs))]  # fmt: skip
