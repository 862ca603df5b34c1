"""Which runs of a comparison are drawn one by one, what they are called, and how they look.

>>> rows = [Row("als", "certified", epsilon, 0, 7, epsilon=epsilon, unit="user", certified=True, spectrum=[1.0])
...         for epsilon in (0.5, 1.0, 2.0)]
>>> [run.label for run in runs_of(rows, "spectrum", most=2)]
['als, ε = 0.5 per user, certified', 'als, ε = 2 per user, certified']
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dpmf.compare.plots.drawing import nth_style, status_style
from dpmf.compare.results import NON_PRIVATE, OWN_MEAN, POPULAR, REFERENCES, Row
from dpmf.compare.summary import is_seeded
from dpmf.errors import InvalidArgument

MOST = 8  # lines that can still be told apart
REFERENCE_STYLES: dict[str, dict[str, Any]] = {  # neither solid nor dashed, which say certified and claim
    OWN_MEAN: {"label": "mean of your own ratings (free)", "linestyle": ":", "color": "#000000"},
    POPULAR: {"label": "most popular, not private", "linestyle": (0, (1, 3)), "color": "#555555"},
    NON_PRIVATE: {"label": "not private (sgd)", "linestyle": "-.", "color": "#555555"},
}


@dataclass(frozen=True)
class Run:
    """The repeats of one run, to be drawn alike.

    Attributes:
        label: what the legend says.
        style: of its lines, as matplotlib takes it.
        rows: the repeats.
    """

    label: str
    style: dict[str, Any]
    rows: tuple[Row, ...]


def runs_of(
    rows: Iterable[Row], what: str, *, unit: str | None = None, epsilon: float | None = None, most: int = MOST
) -> list[Run]:
    """Return the references, and private runs of a few epsilons, that ended and have something to show.

    Args:
        rows: of a comparison. Failed runs, and those with noise from a seed, are left out.
        what: the field of `Row` that is to be drawn.
        unit: only runs that protect this unit; either by default.
        epsilon: only runs of this one, asked for or of the guarantee.
        most: if there are more private runs, each method keeps some of its epsilons, from the least to the greatest.
    """
    references: dict[str, list[Row]] = defaultdict(list)
    lines: dict[tuple[object, ...], dict[float, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.error or is_seeded(row) or not getattr(row, what):
            continue
        if row.is_reference:
            references[row.method].append(row)
        elif row.mode != "none" and row.epsilon is not None and unit in (None, row.unit):
            lines[row.mode, row.method, row.unit, row.neighbours][row.asked].append(row)
    if epsilon is not None:
        lines = _only(lines, epsilon)
    kept = [
        lines[line][asked] for line in sorted(lines, key=str) for asked in _spread(sorted(lines[line]), lines, most)
    ]
    shown = [_reference(name, references[name]) for name in REFERENCES if name in references]
    return shown + [_private(place, repeats, _several_neighbours(lines)) for place, repeats in enumerate(kept)]


def _only(lines: dict[Any, dict[float, list[Row]]], epsilon: float) -> dict[Any, dict[float, list[Row]]]:
    found = {
        line: {asked: rows for asked, rows in by_epsilon.items() if _is(epsilon, asked, rows[0].epsilon)}
        for line, by_epsilon in lines.items()
    }
    found = {line: by_epsilon for line, by_epsilon in found.items() if by_epsilon}
    if not found:
        there = sorted({asked for by_epsilon in lines.values() for asked in by_epsilon})
        raise InvalidArgument(f"no run has epsilon={epsilon:g}: there are {', '.join(f'{one:g}' for one in there)}")
    return found


def _is(epsilon: float, asked: float, got: float | None) -> bool:
    return epsilon == asked or (got is not None and math.isclose(epsilon, got, rel_tol=1e-5))


def _spread(epsilons: Sequence[float], lines: dict[Any, dict[float, list[Row]]], most: int) -> list[float]:
    """Return some of the epsilons of a method: all if there is room, else the ends and what is between."""
    if sum(map(len, lines.values())) <= most:
        return list(epsilons)
    room = min(max(1, most // len(lines)), len(epsilons))
    if room == 1:
        return [epsilons[len(epsilons) // 2]]
    return [epsilons[round(place * (len(epsilons) - 1) / (room - 1))] for place in range(room)]


def _several_neighbours(lines: dict[Any, dict[float, list[Row]]]) -> bool:
    return len({neighbours for *_, neighbours in lines}) > 1


def _reference(name: str, rows: list[Row]) -> Run:
    style = {key: value for key, value in REFERENCE_STYLES[name].items() if key != "label"}
    return Run(REFERENCE_STYLES[name]["label"], style, tuple(rows))


def _private(place: int, rows: list[Row], name_neighbours: bool) -> Run:
    row, claim = rows[0], rows[0].mode == "paper"
    colour, marker = nth_style(place)
    words = [row.method, f"ε = {row.epsilon:g} per {row.unit}", "paper's claim" if claim else "certified"]
    words += [str(row.neighbours)] if name_neighbours else []
    return Run(", ".join(words), {"marker": marker, **status_style(colour, claim)}, tuple(rows))
