"""Parts that reports are made of: tables by guarantee, and pictures by unit of privacy.

>>> guarantee_tables({Cell("certified per user"): [[Cell("als")]]}, ["method"])[0]
'<h3>Certified per user</h3>'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dpmf.compare.plots.accuracy import accuracy_against_epsilon, units_proven, units_with
from dpmf.compare.plots.figure import as_svg, figure
from dpmf.compare.report.markup import Cell, paragraph, table, text
from dpmf.compare.results import Row
from dpmf.privacy.budget import UNITS


def guarantee_tables(tables: Mapping[Cell, list[list[Cell]]], columns: Sequence[str]) -> list[str]:
    """Return one table per kind of guarantee, under its name."""
    parts = []
    for guarantee, rows in tables.items():
        mark = f' class="{guarantee.kind}"' if guarantee.kind else ""
        parts += [f"<h3{mark}>{text(guarantee.text[0].upper() + guarantee.text[1:])}</h3>", table(columns, rows)]
    return parts


def pictures_by_unit(
    rows: Sequence[Row], metrics: Sequence[str], draw: Callable[..., str], units: Sequence[str] = UNITS
) -> str:
    """Return a picture for each figure and each of these units of privacy that there is something to draw about."""
    parts = []
    for metric in metrics:
        for unit in (one for one in units_with(rows, metric) if one in units):
            drawing = partial(accuracy_against_epsilon, rows, metric, unit)
            parts.append(draw(drawing, f"{metric} against ε per {unit}"))
    if not parts:
        return paragraph("There is no private run to draw.", "soft")
    return parts[0] if len(parts) == 1 else '<div class="pair">' + "".join(parts) + "</div>"


def proven_first(rows: Sequence[Row], metrics: Sequence[str], draw: Callable[..., str]) -> tuple[str, str]:
    """Return pictures of the units of which something is certified, and those of claims alone; else all first."""
    proven = {unit for metric in metrics for unit in units_proven(rows, metric)}
    claimed = [unit for metric in metrics for unit in units_with(rows, metric) if unit not in proven]
    if not proven or not claimed:
        return pictures_by_unit(rows, metrics, draw), ""
    return pictures_by_unit(rows, metrics, draw, sorted(proven)), pictures_by_unit(rows, metrics, draw, claimed)


def draw_inline(draw: Callable[[Any], Any], label: str) -> str:
    """Return a picture as part of a page."""
    picture = figure(5.2, 4.6)  # inches: as wide as a phone at the size of its letters
    draw(picture.subplots())
    return f"<figure>{as_svg(picture, label)}</figure>"


def say_not_drawn(draw: Callable[[Any], Any], label: str) -> str:
    """Return why a picture is not there."""
    return paragraph(f"{label}: not drawn, because matplotlib is not installed (pip install 'dpmf[plot]')", "soft")
