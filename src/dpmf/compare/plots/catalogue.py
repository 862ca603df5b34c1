"""The catalogue as a map.

>>> import numpy as np
>>> _principal_axes(np.array([[3.0, 0.0, 0.0], [-3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])).shape
(3, 2)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.compare.plots.figure import COLOURS, MARKERS, axes
from dpmf.model import Model, Person


def catalogue_map(model: Model, person: Person | None = None, ax: Any = None) -> Any:
    """Draw the catalogue in two dimensions, coloured by first genre, with a person's taste as an arrow."""
    ax = axes(ax)
    vectors = model.release.item_factors - model.release.item_factors.mean(axis=0)
    directions = _principal_axes(vectors)
    points = vectors @ directions
    first_genres = [genres.split("|")[0] for genres in model.release.items.genres]
    for place, genre in enumerate(sorted(set(first_genres))):
        chosen = np.array([one == genre for one in first_genres])
        style = place % len(COLOURS)
        ax.scatter(*points[chosen].T, s=16, alpha=0.75, c=COLOURS[style], marker=MARKERS[style], label=genre or "none")
    if person is not None:
        taste = person.factors @ directions
        ends = np.where(taste < 0, points.min(axis=0), points.max(axis=0))  # what lies beyond is not drawn
        with np.errstate(divide="ignore", invalid="ignore"):
            tip = 0.9 * taste * np.nanmin(ends / taste) if taste.any() else taste
        ax.annotate(
            "one person's taste",
            xy=tip,
            xytext=(0, 0),
            arrowprops={"arrowstyle": "->", "lw": 1.5},
            ha="center",
            bbox={"boxstyle": "round", "facecolor": "white", "alpha": 0.8, "lw": 0},
        )
    ax.set(title="Items by what people's ratings say about them", xlabel="first direction", ylabel="second direction")
    ax.legend(fontsize="small", ncols=2, frameon=False)
    return ax


def _principal_axes(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the two directions in which the vectors differ most, shape (K, 2); zeros where there is no second."""
    _, _, found = np.linalg.svd(np.asarray(vectors, np.float64), full_matrices=False)
    axes = np.zeros((vectors.shape[1], 2))
    axes[:, : len(found)] = found[:2].T
    return axes
