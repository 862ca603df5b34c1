"""Singular values of item factors: how many directions a model really uses, and where noise has filled the rest.

>>> list(_places([3.0, 1.0]))
[1, 2]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpmf.compare.measurement import spectrum_of
from dpmf.compare.plots.figure import axes, legend_below
from dpmf.compare.plots.runs import release_style, runs_of
from dpmf.compare.results import Row
from dpmf.errors import InvalidArgument
from dpmf.model import Release

_STEEP = 30.0  # from the first to the last: more than that is drawn on a logarithmic axis


def release_spectra(releases: Mapping[str, Release], ax: Any = None) -> Any:
    """Draw singular values, falling, of releases by name."""
    ax = axes(ax)
    spectra = {name: spectrum_of(release) for name, release in releases.items()}
    for name, values in spectra.items():
        if not values:
            raise InvalidArgument(f"{name} has no factors, and so no singular values: leave it out")
    for place, (name, values) in enumerate(spectra.items()):
        style = release_style(place, name, releases[name].guarantee)
        ax.plot(_places(values), values, ms=5, lw=1.2, **style)
    return _finished(ax, list(spectra.values()))


def run_spectra(rows: Sequence[Row], unit: str = "user", ax: Any = None) -> Any:
    """Draw singular values, falling, of the runs of a comparison; of repeats the first."""
    ax = axes(ax)
    runs = runs_of(rows, "spectrum", unit=unit)
    for run in runs:
        values = run.rows[0].spectrum
        ax.plot(_places(values), values, ms=5, lw=1.2, label=run.label, **run.style)
    return _finished(ax, [run.rows[0].spectrum for run in runs])


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
