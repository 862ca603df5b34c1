"""Which runs of a comparison are drawn one by one, what they are called, and how they look.

>>> rows = [Row("als", "certified", epsilon, 0, 7, epsilon=epsilon, unit="user", certified=True, spectrum=[1.0])
...         for epsilon in (0.5, 1.0, 2.0)]
>>> [run.label for run in runs_of(rows, "spectrum", most=2)]
['als, ε = 0.5 per user, certified', 'als, ε = 2 per user, certified']
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dpmf.compare.plots.figure import figure, nth_style, status_style
from dpmf.compare.results import BIASES, EXACT_EASE, IMPLICIT, NON_PRIVATE, OWN_MEAN, POPULAR, REFERENCES, Row
from dpmf.compare.summary import guarantee_key, is_seeded, shown_epsilon
from dpmf.errors import InvalidArgument
from dpmf.privacy import Guarantee
from dpmf.privacy.budget import UNITS

MOST = 8  # lines that can still be told apart
REFERENCE_STYLES: dict[str, dict[str, Any]] = {  # neither solid nor dashed, which say certified and claim
    OWN_MEAN: {"label": "per-user mean", "linestyle": ":", "color": "#000000"},
    BIASES: {"label": "biases alone, not private", "linestyle": (0, (8, 2, 1, 2, 1, 2)), "color": "#888888"},
    POPULAR: {"label": "most popular, not private", "linestyle": (0, (1, 3)), "color": "#555555"},
    NON_PRIVATE: {"label": f"not private ({NON_PRIVATE})", "linestyle": "-.", "color": "#555555"},
    EXACT_EASE: {"label": "EASE, not private", "linestyle": (0, (4, 2, 1, 2)), "color": "#000000"},
    IMPLICIT: {"label": "implicit's ALS, not private", "linestyle": (0, (3, 1, 1, 1, 1, 1)), "color": "#555555"},
}
_NAMES = {
    "history": "an error after each epoch",
    "error_cdf": "a distribution of errors",
    "spectrum": "singular values of item factors",
    "by_popularity": "errors by popularity of the item",
    "by_activity": "errors by activity of the user",
}
_Key: TypeAlias = tuple[float, tuple[str, ...]]
_Lines: TypeAlias = dict[tuple[str, str, str], dict[_Key, list[Row]]]


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
    rows: Iterable[Row], what: str, *, unit: str = "user", epsilon: float | None = None, most: int = MOST
) -> list[Run]:
    """Return the references, and private runs of a few epsilons, that ended and have something to show.

    Args:
        rows: of a comparison. Failed runs, and those with noise from a seed, are left out.
        what: the field of `Row` that is to be drawn.
        unit: only private runs that protect this unit: epsilons of users and of ratings are different things.
        epsilon: only private runs of this one, asked for or of the guarantee.
        most: if there are more private runs, each method keeps some of its epsilons, from the least to the greatest.
    """
    rows = [row for row in rows if not row.error and not is_seeded(row) and getattr(row, what)]
    references: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.is_reference:
            references[row.method].append(row)
    lines = _lines(rows, unit, epsilon)
    kept = [lines[line][asked] for line in sorted(lines) for asked in _spread(sorted(lines[line]), lines, most)]
    shown = [_reference(name, references[name]) for name in REFERENCES if name in references]
    name_neighbours = len({neighbours for *_, neighbours in lines}) > 1
    return shown + [_private(place, repeats, name_neighbours) for place, repeats in enumerate(kept)]


def panels(
    rows: Sequence[Row],
    what: str,
    draw: Callable[[str, Any], object],
    *,
    epsilon: float | None = None,
    size: tuple[float, float] | None = None,
) -> Any:
    """Return a figure with one panel per unit of privacy that occurs, each drawn by draw(unit, axes)."""
    units = units_of(rows, what, epsilon)
    picture = figure(*(size or (7 * len(units), 6)))
    for unit, ax in zip(units, picture.subplots(1, len(units), squeeze=False)[0], strict=True):
        draw(unit, ax)
        if len(units) > 1:
            ax.set_title(f"ε per {unit}")
    return picture


def units_of(rows: Sequence[Row], what: str, epsilon: float | None = None) -> list[str]:
    """Return the units that private runs with something to show protect; "user" if there are only references."""
    rows = [row for row in rows if not row.error and not is_seeded(row) and getattr(row, what)]
    found = [unit for unit in UNITS if _lines(rows, unit, epsilon)]
    if not found and epsilon is not None:
        there = sorted({row.asked for row in rows if row.epsilon is not None})
        raise InvalidArgument(
            f"no run has epsilon={epsilon:g}: there is {', '.join(f'{one:g}' for one in there) or 'none at all'}"
        )
    if not rows:
        raise InvalidArgument(f"no run in these results has {_NAMES[what]}, so there is nothing to draw")
    return found or ["user"]


def _lines(rows: Iterable[Row], unit: str, epsilon: float | None) -> _Lines:
    """Return private runs by mode, method and neighbours, and by the epsilon asked for and its guarantee."""
    lines: _Lines = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.mode == "none" or row.epsilon is None or row.unit != unit:
            continue
        if epsilon is None or epsilon == row.asked or math.isclose(epsilon, row.epsilon, rel_tol=1e-5):
            lines[row.mode, row.method, str(row.neighbours)][row.asked, guarantee_key(row)].append(row)
    return lines


def _spread(epsilons: Sequence[_Key], lines: _Lines, most: int) -> list[_Key]:
    """Return some of the epsilons of a method: all if there is room, else the ends and what is between."""
    if sum(map(len, lines.values())) <= most:
        return list(epsilons)
    room = min(max(1, most // len(lines)), len(epsilons))
    if room == 1:
        return [epsilons[len(epsilons) // 2]]
    return [epsilons[round(place * (len(epsilons) - 1) / (room - 1))] for place in range(room)]


def _reference(name: str, rows: list[Row]) -> Run:
    style = {key: value for key, value in REFERENCE_STYLES[name].items() if key != "label"}
    return Run(REFERENCE_STYLES[name]["label"], style, tuple(rows))


def _private(place: int, rows: list[Row], name_neighbours: bool) -> Run:
    row, claim = rows[0], rows[0].mode == "paper"
    colour, marker = nth_style(place)
    words = [
        row.method,
        f"ε = {shown_epsilon(row.epsilon, row.asked):g} per {row.unit}",
        "paper's claim" if claim else "certified",
    ]
    words += [str(row.neighbours)] if name_neighbours else []
    return Run(", ".join(words), {"marker": marker, **status_style(colour, claim)}, tuple(rows))


def release_style(place: int, name: str, guarantee: Guarantee) -> dict[str, Any]:
    """Return how one of several releases is drawn, and what the legend says: a claim is dashed and hollow here, too.

    What is not private is dotted, with crosses: neither what is certified nor what is claimed looks like that.
    """
    colour, marker = nth_style(place)
    style = status_style(colour, guarantee.mode == "paper")
    if not guarantee.is_private:
        style, marker = {"linestyle": ":", "color": colour}, "x"
    return {"label": f"{name}, {status_of(guarantee)}", "marker": marker, **style}


def status_of(guarantee: Guarantee) -> str:
    """Return in a word or two what stands behind a release.

    >>> status_of(Guarantee.none())
    'not private'
    """
    if not guarantee.is_private:
        return "not private"
    return "paper's claim" if guarantee.mode == "paper" else "certified"
