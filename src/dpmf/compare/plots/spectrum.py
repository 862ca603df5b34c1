"""Singular values of item factors: how many directions a model really uses, and where noise has filled the rest.

>>> rows = [Row("als", "certified", 1.0, 0, 7, epsilon=1.0, unit="user", certified=True, spectrum=[3.0, 1.0])]
>>> [run.label for run in spectrum_runs(rows)]
['als, ε = 1 per user, certified']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpmf.compare.plots.drawing import LINES, axes, legend_below, nth_style
from dpmf.compare.plots.runs import Run, runs_of
from dpmf.compare.results import Row
from dpmf.errors import InvalidArgument

_STEEP = 30.0  # from the first to the last: more than that is drawn on a logarithmic axis


def spectrum(spectra: Mapping[str, Sequence[float]], ax: Any = None) -> Any:
    """Draw singular values, falling, of releases by name."""
    ax = axes(ax)
    for place, (name, values) in enumerate(spectra.items()):
        colour, marker = nth_style(place)
        style = LINES[place % len(LINES)]
        ax.plot(_places(values), values, marker=marker, linestyle=style, color=colour, ms=5, lw=1.2, label=name)
    return _finished(ax, list(spectra.values()))


def run_spectra(rows: Sequence[Row], unit: str | None = None, ax: Any = None) -> Any:
    """Draw singular values, falling, of the runs of a comparison; of repeats the first."""
    runs = spectrum_runs(rows, unit)
    ax = axes(ax)
    for run in runs:
        values = run.rows[0].spectrum
        ax.plot(_places(values), values, ms=5, lw=1.2, label=run.label, **run.style)
    return _finished(ax, [run.rows[0].spectrum for run in runs])


def spectrum_runs(rows: Sequence[Row], unit: str | None = None) -> list[Run]:
    """Return the runs that `run_spectra` draws."""
    runs = runs_of(rows, "spectrum", unit=unit)
    if not runs:
        raise InvalidArgument("no run in these results has singular values of item factors: there is nothing to draw")
    return runs


def _places(values: Sequence[float]) -> range:
    return range(1, len(values) + 1)


def _finished(ax: Any, spectra: Sequence[Sequence[float]]) -> Any:
    everything = [value for values in spectra for value in values]
    if everything and min(everything) > 0 and max(everything) > _STEEP * min(everything):
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, None)
    ax.set(xlabel="place in the order of size", ylabel="singular value of the item factors")
    ax.xaxis.get_major_locator().set_params(integer=True)
    legend_below(ax)
    return ax
