"""The picture of `dpmf demo`: the catalogue as a map with one person's list, and what privacy costs.

>>> ax = against_epsilon({1.0: 0.9, 5.0: 0.8, math.inf: 0.7}, "rmse", {"per-user mean": 1.0})
>>> [text.get_text() for text in ax.texts]
['per-user mean', 'no noise, not private']
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpmf.compare.plots.catalogue import catalogue_map
from dpmf.compare.plots.figure import axes, figure, log_epsilons, save, status_style, style_of
from dpmf.model import Model, Person

_REFERENCE = {"color": "#000000", "linestyle": ":"}
_OPEN = {"color": "#555555", "linestyle": "-."}


def demo_picture(
    model: Model, person: Person, listed: Sequence[str], panels: Mapping[str, tuple[Mapping[float, float], str, float]],
    path: Path,
) -> None:  # fmt: skip
    """Save the map of a model with somebody's list, beside figures against epsilon.

    Args:
        model, person: what the map shows.
        listed: the person's recommendations, best first.
        panels: title → a figure by epsilon, and the name of a reference with its figure.
        path: where to save it.
    """
    picture = figure(12, 6.5)
    grid = picture.add_gridspec(len(panels), 2, width_ratios=(1.9, 1))
    left = picture.add_subplot(grid[:, 0])
    catalogue_map(model, person, left)
    lines = ["Their list:", *(f"{place}  {title}" for place, title in enumerate(listed, 1))]
    box = {"boxstyle": "round,pad=0.6", "facecolor": "white", "edgecolor": "#bbbbbb"}
    left.text(0.02, 0.03, "\n".join(lines), transform=left.transAxes, fontsize="small", va="bottom", bbox=box)
    for place, (title, (values, name, height)) in enumerate(panels.items()):
        against_epsilon(values, title, {name: height}, picture.add_subplot(grid[place, 1]))
    save(picture, path)


def against_epsilon(
    values: Mapping[float, float], title: str, references: Mapping[str, float], ax: Any = None
) -> Any:  # fmt: skip
    """Draw a figure of private runs against epsilon, with lines for the run without noise and for references.

    Args:
        values: the figure, by epsilon; infinity is not private.
        title: what the figure is.
        references: name → height.
        ax: where to draw.
    """
    ax = axes(ax)
    epsilons = sorted(epsilon for epsilon in values if math.isfinite(epsilon))
    colour, marker = style_of("als")
    ax.plot(epsilons, [values[one] for one in epsilons], marker=marker, **status_style(colour, claim=False))
    lines = {name: (height, _REFERENCE) for name, height in references.items()}
    if math.inf in values:
        lines["no noise, not private"] = values[math.inf], _OPEN
    for name, (height, style) in lines.items():
        ax.axhline(height, label=name, **style)
        ax.text(0.02, height, name, transform=ax.get_yaxis_transform(), va="bottom", fontsize="small")
    log_epsilons(ax, epsilons)
    ax.set_title(title, fontsize="medium")
    ax.set_xlabel("ε per user, certified")
    ax.margins(y=0.15)
    return ax
