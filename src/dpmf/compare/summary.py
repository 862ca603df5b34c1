"""What repeated runs say together: mean, least and most of every figure, for tables and pictures alike.

>>> rows = [Row("als", "certified", 1.0, repeat, 7, epsilon=1.0, unit="user", certified=True, rmse=rmse)
...         for repeat, rmse in enumerate((0.90, 0.94))]
>>> (point,) = summarize(rows)
>>> point.n, round(point.mean["rmse"], 3), point.least["rmse"], point.most["rmse"]
(2, 0.92, 0.9, 0.94)
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpmf.compare.results import REFERENCES, Row
from dpmf.evaluation import new_users
from dpmf.frames import Columnar
from dpmf.html import show_table
from dpmf.privacy import Guarantee

FIGURES = (
    *("rmse", "mae", "recall", "ndcg", "coverage", "kld", "kld_top_users", "rmse_top_users"),
    *("seconds", "epoch_seconds", "peak_memory"),
    *new_users.FIGURES,
)
_SHARED = ("method", "mode", "asked", "epsilon", "delta", "unit", "neighbours", "certified", "guarantee")
_JUST_BELOW = 0.99  # of what was asked for: the limit that is shown is never lower than the one that holds
_MODES = ("certified", "paper", "none")


@dataclass(frozen=True)
class Point:
    """What the repeats of one run say together.

    Attributes:
        method, mode, asked: as in `Row`.
        epsilon, delta, unit, neighbours, certified: of the guarantee.
        n: repeats that ended; 0 if none did, and then there are no figures.
        mean, least, most: by name of the figure, over the repeats that have it; those that none has are not there.
        sd: the standard deviation of a repeat, estimated from them; only where two or more have the figure.
        seeded: whether noise came from a seed, so that epsilon means nothing.
        guarantee: that of all repeats, in full.
        errors: what kept the others from ending, each once.
        rows: the repeats that ended.
        interval: for figures of new users, the 95 % interval over people: the mean of its ends over the repeats.
    """

    method: str
    mode: str
    asked: float
    epsilon: float | None
    delta: float | None
    unit: str | None
    neighbours: str | None
    certified: bool
    n: int
    mean: dict[str, float]
    least: dict[str, float]
    most: dict[str, float]
    sd: dict[str, float]
    seeded: bool
    guarantee: dict[str, Any]
    errors: tuple[str, ...]
    rows: tuple[Row, ...] = field(default=(), repr=False)
    interval: dict[str, list[float]] = field(default_factory=dict)

    @property
    def is_reference(self) -> bool:
        """Whether it is a line that needs no epsilon."""
        return self.mode == "none" and math.isinf(self.asked) and self.method in REFERENCES

    @property
    def shown_epsilon(self) -> float | None:
        """What a table says of epsilon; see `shown_epsilon`."""
        return shown_epsilon(self.epsilon, self.asked)

    @property
    def is_claim(self) -> bool:
        """Whether epsilon is a published claim."""
        return self.mode == "paper"


class Points(list[Point], Columnar):
    """What a comparison says, a point per method, mode and epsilon; also a table of it."""

    def to_columns(self) -> dict[str, Any]:
        """Return what was run and guaranteed, the number of repeats, and the mean of every figure that a point has."""
        names = [*(name for name in _SHARED if name != "guarantee"), "n"]
        columns = {name: [getattr(point, name) for point in self] for name in names}
        figures = [name for name in FIGURES if any(name in point.mean for point in self)]
        return columns | {name: [point.mean.get(name) for point in self] for name in figures}

    def _repr_html_(self) -> str:
        return show_table(self.to_columns())


def summarize(rows: Iterable[Row]) -> Points:
    """Return one point per method, mode and epsilon that was asked for.

    Repeats whose guarantees differ, in an epsilon, a unit, an event or an assumption, are never mixed: each guarantee
    has a point of its own. Runs that failed only count in `errors`.

    Returns:
        References first, then what is about users before what is about ratings, what is certified before what is
        claimed, and by method and epsilon.
    """
    asked: dict[tuple[str, str, float], list[Row]] = defaultdict(list)
    for row in rows:
        asked[row.method, row.mode, row.asked].append(row)
    points: list[Point] = []
    for alike in asked.values():
        kinds: dict[tuple[object, ...], list[Row]] = defaultdict(list)
        for row in alike:
            if not row.error:
                kinds[guarantee_key(row)].append(row)
        errors = tuple(dict.fromkeys(row.error for row in alike if row.error))
        points += [_point(ended, errors) for ended in kinds.values()] or [_failed(alike[0], errors)]
    return Points(sorted(points, key=_order))


def shown_epsilon(epsilon: float | None, asked: float) -> float | None:
    """Return the epsilon that was asked for in place of one that calibration has left just below it.

    >>> shown_epsilon(0.999944, 1.0), shown_epsilon(0.83, 1.0), shown_epsilon(2.0, 1.0)
    (1.0, 0.83, 2.0)
    """
    return asked if epsilon is not None and _JUST_BELOW * asked <= epsilon <= asked else epsilon


def is_seeded(row: Row) -> bool:
    """Tell whether the noise of a run came from a seed, so that its epsilon means nothing."""
    if row.mode == "certified":
        return not row.certified
    return bool(row.guarantee) and Guarantee.from_json(row.guarantee).seeded


def guarantee_key(row: Row) -> tuple[str, ...]:
    """Return all that a row guarantees, so that equal guarantees, and no others, are equal."""
    figures = (row.epsilon, row.unit, row.neighbours, row.delta, row.certified)
    return *map(str, figures), json.dumps(row.guarantee, sort_keys=True)


def _point(ended: Sequence[Row], errors: tuple[str, ...]) -> Point:
    values = {name: _finite(row.figure(name) for row in ended) for name in FIGURES}
    values = {name: found for name, found in values.items() if found}
    return Point(
        **_shared(ended[0]),
        n=len(ended),
        mean={name: _mean(found) for name, found in values.items()},
        least={name: min(found) for name, found in values.items()},
        most={name: max(found) for name, found in values.items()},
        sd={name: statistics.stdev(found) for name, found in values.items() if len(found) > 1},
        seeded=is_seeded(ended[0]),
        errors=errors,
        rows=tuple(ended),
        interval=_intervals(ended),
    )


def _intervals(ended: Sequence[Row]) -> dict[str, list[float]]:
    names = [name for name in new_users.FIGURES if all(f"{name}_interval" in row.ranking for row in ended)]
    ends = {name: [row.ranking[f"{name}_interval"] for row in ended] for name in names}
    return {name: [statistics.fmean(side) for side in zip(*found, strict=True)] for name, found in ends.items()}


def _failed(row: Row, errors: tuple[str, ...]) -> Point:
    return Point(**_shared(row), n=0, mean={}, least={}, most={}, sd={}, seeded=False, errors=errors)


def _shared(row: Row) -> dict[str, Any]:
    """Return what all repeats have in common."""
    return {name: getattr(row, name) for name in _SHARED}


def _mean(values: Sequence[float]) -> float:
    """Return the mean, which rounding alone may not put outside the range of the values.

    >>> _mean([0.1, 0.1, 0.1])
    0.1
    """
    return min(max(statistics.fmean(values), min(values)), max(values))


def _finite(values: Iterable[float | None]) -> list[float]:
    return [float(value) for value in values if value is not None and math.isfinite(value)]


def _order(point: Point) -> tuple[object, ...]:
    reference = REFERENCES.index(point.method) if point.is_reference else len(REFERENCES)
    mode = _MODES.index(point.mode) if point.mode in _MODES else len(_MODES)
    epsilon = point.asked if point.epsilon is None else point.epsilon
    return reference, {"user": 0, "rating": 1}.get(point.unit or "", 2), mode, point.method, point.asked, epsilon
