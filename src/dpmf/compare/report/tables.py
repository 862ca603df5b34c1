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

FIGURES = ("ε", "rmse", "mae", "recall@10", "ndcg@10", "kld", "seconds", "memory", "runs")
ACCURACY = ("method", "promise", *FIGURES)
REFERENCE_NAMES = {
    OWN_MEAN: "mean of your own ratings, free",
    POPULAR: "what most people rated, not private",
    NON_PRIVATE: "sgd, not private",
}
_FIGURES = ("rmse", "mae", "recall", "ndcg", "kld")
_NONE = "–"


def accuracy_rows(points: Iterable[Point]) -> list[list[Cell]]:
    """Return cells for `ACCURACY`, one row per point."""
    return [[_name_of(point), promise_of(point), *_figures_of(point)] for point in points]


def by_promise(points: Iterable[Point]) -> dict[Cell, list[list[Cell]]]:
    """Return a table for every kind of promise, with a method and `FIGURES` in each row: what differs is kept apart."""
    tables: dict[Cell, list[list[Cell]]] = {}
    for point in points:
        kind = Cell("Without an ε") if point.mode == "none" else promise_of(point)
        tables.setdefault(kind, []).append([_name_of(point), *_figures_of(point)])
    return tables


def best_rows(points: Iterable[Point]) -> list[list[Cell]]:
    """Return the certified method with the lowest error at every epsilon: unit, epsilon, method and rmse."""
    best: dict[tuple[str, float], Point] = {}
    for point in points:
        if point.certified and "rmse" in point.mean and point.unit:
            key = point.unit, point.asked
            if key not in best or point.mean["rmse"] < best[key].mean["rmse"]:
                best[key] = point
    return [
        [Cell(f"{point.epsilon:g} per {unit}", number=True), Cell(point.method, kind="proven"), _spread(point, "rmse")]
        for (unit, _), point in sorted(best.items(), key=lambda one: (one[0][0] != "user", one[0][1]))
    ]


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


def _name_of(point: Point) -> Cell:
    if point.mode != "none":
        return Cell(point.method)
    return Cell(REFERENCE_NAMES.get(point.method, f"{point.method}, not private"))


def _figures_of(point: Point) -> list[Cell]:
    epsilon = _NONE if point.mode == "none" else f"{point.asked if point.epsilon is None else point.epsilon:g}"
    seconds = f"{point.mean['seconds']:.1f}" if "seconds" in point.mean else _NONE
    memory = f"{point.mean['peak_memory'] / 1e6:,.0f} MB" if "peak_memory" in point.mean else _NONE
    runs = str(point.n) if not point.errors else f"{point.n}, others failed"
    return [
        Cell(epsilon, number=True),
        *(_spread(point, one) for one in _FIGURES),
        *(Cell(one, number=True) for one in (seconds, memory, runs)),
    ]


def _spread(point: Point, figure: str) -> Cell:
    if figure not in point.mean:
        return Cell(_NONE, number=True)
    return Cell(spread(point.mean[figure], point.least[figure], point.most[figure]), number=True)
