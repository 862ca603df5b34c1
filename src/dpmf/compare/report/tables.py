"""The tables of a report, and of the command line: what every method reached, and at which guarantee.

Different guarantees are never in one table: certified or claimed, about users or about ratings, to add and
remove or to replace, at one delta or another.

>>> from dpmf.compare.summary import summarize
>>> guarantee_of(summarize([Row("sgd", "none", math.inf, 0, 7, rmse=0.8)])[0]).text
'without an ε'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from dpmf.compare.report.markup import Cell
from dpmf.compare.results import BIASES, EXACT_EASE, IMPLICIT, NON_PRIVATE, OWN_MEAN, POPULAR, PRIVATE_POPULAR, Row
from dpmf.compare.summary import Point
from dpmf.evaluation import new_users
from dpmf.privacy.budget import delta_warning

FIGURES = ("method", "ε", "rmse", "mae", "recall@10", "ndcg@10", "kld", "seconds", "memory", "runs")
BRIEF = ("method", "ε", "rmse", "min", "max", "recall@10", "ndcg@10", "seconds", "runs")
RANKED = ("method", "ε", *new_users.FIGURES, "seconds", "memory", "runs")
BRIEF_RANKED = ("method", "ε", "ndcg@100", "95 % interval", "recall@20", "coverage@20", "tail@20", "runs")
_NAMES = {
    OWN_MEAN: "per-user mean",
    BIASES: "biases alone, not private",
    POPULAR: "popular, not private",
    NON_PRIVATE: f"{NON_PRIVATE}, not private",
    EXACT_EASE: "EASE, not private",
    IMPLICIT: "implicit, not private",
    PRIVATE_POPULAR: "popular",
}
_WITHOUT = "without an ε"
_SAME_BUDGET = "popularity with the noise of the same budget: a figure, not a release"
_FAILED = "did not end"
_NONE = "–"


def guarantee_of(point: Point) -> Cell:
    """Return what stands behind an epsilon, in words that nobody can take for something else."""
    if not point.n:
        return Cell(_FAILED)
    if point.mode == "none":
        return Cell(_WITHOUT if math.isinf(point.asked) else _SAME_BUDGET)
    if point.seeded:
        return Cell("not private: noise from a seed")
    large = "" if delta_warning(point.delta) is None else ", which is too large"
    about = f"per {point.unit}, {point.neighbours}" + (f", δ = {point.delta:g}{large}" if point.delta else "")
    if point.is_claim:
        return Cell(f"a paper's claim, not certified, {about}", kind="claim")
    return Cell(f"certified {about}", kind="proven")


def by_guarantee(points: Iterable[Point], cells: Callable[[Point], list[Cell]]) -> dict[Cell, list[list[Cell]]]:
    """Return a table for every kind of guarantee, with the cells of each point."""
    tables: dict[Cell, list[list[Cell]]] = {}
    for point in points:
        tables.setdefault(guarantee_of(point), []).append(cells(point))
    return tables


def figures(point: Point) -> list[Cell]:
    """Return cells for `FIGURES`: means, and the range of the repeats below."""
    memory = f"{point.mean['peak_memory'] / 1e6:,.0f} MB" if "peak_memory" in point.mean else _NONE
    return [
        _name(point),
        _epsilon(point),
        *(_spread(point, one) for one in ("rmse", "mae", "recall", "ndcg", "kld")),
        *(Cell(one, number=True) for one in (_seconds(point), memory, _runs(point))),
    ]


def brief(point: Point) -> list[Cell]:
    """Return cells for `BRIEF`, which fit on a terminal."""
    errors = (kind.get("rmse") for kind in (point.mean, point.least, point.most))
    shown = [*errors, point.mean.get("recall"), point.mean.get("ndcg")]
    texts = [_NONE if one is None else f"{one:.4f}" for one in shown]
    return [_name(point), _epsilon(point), *(Cell(one, number=True) for one in (*texts, _seconds(point), _runs(point)))]


def ranked(point: Point) -> list[Cell]:
    """Return cells for `RANKED`: means, and the interval over people, or the range of the repeats, below."""
    memory = f"{point.mean['peak_memory'] / 1e6:,.0f} MB" if "peak_memory" in point.mean else _NONE
    return [
        _name(point),
        _epsilon(point),
        *(_spread(point, one) for one in new_users.FIGURES),
        *(Cell(one, number=True) for one in (_seconds(point), memory, _runs(point))),
    ]


def brief_ranked(point: Point) -> list[Cell]:
    """Return cells for `BRIEF_RANKED`, which fit on a terminal."""
    low, high = point.interval.get("ndcg@100", (None, None))
    interval = _NONE if low is None else f"{low:.4f}–{high:.4f}"
    first, *others = (
        _NONE if one not in point.mean else f"{point.mean[one]:.4f}"
        for one in ("ndcg@100", "recall@20", "coverage@20", "tail@20")
    )
    texts = first, interval, *others, _runs(point)
    return [_name(point), _epsilon(point), *(Cell(one, number=True) for one in texts)]


def best_points(points: Iterable[Point], figure: str = "rmse") -> list[Point]:
    """Return the best certified method at every epsilon, by its rmse or another figure: first what is about users."""
    best: dict[tuple[str, float], Point] = {}
    sign = -1 if figure == "rmse" else 1  # an error is the better the lower it is
    for point in points:
        if point.certified and figure in point.mean and point.unit:
            key = point.unit, point.asked
            if key not in best or sign * point.mean[figure] > sign * best[key].mean[figure]:
                best[key] = point
    return [point for _, point in sorted(best.items(), key=lambda one: (one[0][0] != "user", one[0][1]))]


def best_row(point: Point, figure: str = "rmse") -> list[Cell]:
    """Return epsilon and unit, method, and the figure of a certified point."""
    epsilon = f"{point.shown_epsilon:g} per {point.unit}"
    return [Cell(epsilon, number=True), Cell(point.method, kind="proven"), _spread(point, figure)]


def groups(which: str) -> Callable[[Point], list[Cell]]:
    """Return what makes cells of a point: method, epsilon, and the rmse in each group of items or users.

    Args:
        which: "by_popularity" or "by_activity".
    """

    def cells(point: Point) -> list[Cell]:
        repeats = [getattr(row, which) for row in point.rows if getattr(row, which)]
        found = [_mean([one[place][2] for one in repeats]) for place in range(len(repeats[0]) if repeats else 0)]
        shown = (Cell(_NONE if one is None else f"{one:.4f}", number=True) for one in found)
        return [_name(point), _epsilon(point), *shown]

    return cells


def group_names(rows: Sequence[Row], which: str) -> list[str]:
    """Return the names of groups, such as "most popular 1 %"."""
    whose = "popular" if which == "by_popularity" else "active"
    highs = next(([one[0] for one in getattr(row, which)] for row in rows if getattr(row, which)), [])
    names, low = [], 0.0
    for high in highs:
        assert high is not None
        names.append(f"most {whose} {high:.0%}" if not low else f"{low:.0%} to {high:.0%}")
        low = high
    return names


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None and math.isfinite(one)]
    return sum(known) / len(known) if known else None


def _name(point: Point) -> Cell:
    if point.mode != "none":
        return Cell(point.method)
    return Cell(_NAMES.get(point.method, f"{point.method}, not private"))


def _epsilon(point: Point) -> Cell:
    if not point.n:
        return Cell(f"{point.asked:g} asked for", number=True)
    if point.epsilon is None:
        return Cell(_NONE if math.isinf(point.asked) else f"{point.asked:g}", number=True)
    return Cell(f"{point.shown_epsilon:g}", number=True)


def _seconds(point: Point) -> str:
    return f"{point.mean['seconds']:.1f}" if "seconds" in point.mean else _NONE


def _runs(point: Point) -> str:
    return f"{point.n}, others failed" if point.errors and point.n else str(point.n)


def _spread(point: Point, figure: str) -> Cell:
    """Return a mean, with the interval or the range below if there is one."""
    if figure not in point.mean:
        return Cell(_NONE, number=True)
    low, high = point.interval.get(figure, (point.least[figure], point.most[figure]))
    mean, least, most = (f"{one:.4f}" for one in (point.mean[figure], low, high))
    return Cell(mean, number=True, below="" if least == most else f"{least}–{most}")
