"""From rows to a verdict: trends, and one sentence for all readings.

>>> falls([3.0, 2.0, 2.001, 1.0], slack=0.01), falls([1.0, 2.0]), rises([1.0, 1.5])
(True, False, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from experiments.figure import Row, Verdict

SLACK = 0.005  # of an error: runs that differ only in noise differ by as much

Finding = tuple[bool | None, str]


def falls(values: Sequence[float], *, slack: float = 0.0) -> bool:
    """Tell whether values end lower than they begin, and never rise by more than a slack."""
    finite = all(math.isfinite(value) for value in values)
    return finite and values[-1] < values[0] and all(after <= before + slack for before, after in pairwise(values))


def rises(values: Sequence[float], *, slack: float = 0.0) -> bool:
    """Tell whether values end higher than they begin, and never fall by more than a slack."""
    return falls([-value for value in values], slack=slack)


def trend(values: Sequence[float]) -> str:
    """Describe how values change from the first to the last."""
    if not any(math.isfinite(value) for value in values):
        return "diverges"
    if not all(math.isfinite(value) for value in values):
        return f"is {', '.join(shown(value) if math.isfinite(value) else 'infinite' for value in values)}"
    if shown(min(values)) == shown(max(values)):
        return f"stays at {shown(values[0])}"
    ends = f"from {shown(values[0])} to {shown(values[-1])}"
    if falls(values):
        return f"falls {ends}"
    if rises(values):
        return f"rises {ends}"
    return f"goes {ends}, between {shown(min(values))} and {shown(max(values))}"


def shown(value: float) -> str:
    """Format a number for a sentence."""
    return "diverges" if not math.isfinite(value) else f"{value:.3f}" if value < 10 else f"{value:.3g}"


def of(rows: Iterable[Row], **where: Any) -> list[Row]:
    """Return the rows in which these columns have these values."""
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


def values_of(rows: Iterable[Row], column: str) -> list[Any]:
    """Return the distinct values of a column, in order of appearance."""
    return list(dict.fromkeys(row[column] for row in rows))


def means(rows: Iterable[Row], by: str, column: str) -> dict[Any, float]:
    """Return the mean of a column over repeats, for each value of another."""
    rows = list(rows)
    return {value: fmean(row[column] for row in of(rows, **{by: value})) for value in values_of(rows, by)}


def by_reading(rows: list[Row], judge: Callable[[list[Row]], Finding]) -> Verdict:
    """Return the verdict on the first reading, with the findings of all readings."""
    found = {reading: judge(of(rows, reading=reading)) for reading in values_of(rows, "reading")}
    word = {True: "held", False: "did not hold", None: "cannot be told"}
    sentence = "; ".join(f"{reading} ({word[held]}): {text}" for reading, (held, text) in found.items())
    return Verdict(next(iter(found.values()))[0], f"{sentence}.")
