"""The catalogue as a map, alone and beside the course of a training.

>>> import numpy as np
>>> _principal_axes(np.array([[3.0, 0.0, 0.0], [-3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])).shape
(3, 2)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.compare.plots.convergence import convergence
from dpmf.compare.plots.figure import COLOURS, MARKERS, axes, figure, save
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
        tip = taste / max(float(np.linalg.norm(taste)), 1e-12) * 0.8 * np.abs(points).max()
        ax.annotate(
            "one person's taste", xy=tip, xytext=(0, 0), arrowprops={"arrowstyle": "->", "lw": 1.5}, ha="center"
        )
    ax.set(title="Items by what people's ratings say about them", xlabel="first direction", ylabel="second direction")
    ax.legend(fontsize="small", ncols=2, frameon=False)
    return ax


def demo_picture(model: Model, person: Person, path: Path) -> None:
    """Save the catalogue map beside the course of the training."""
    picture = figure(11, 5)
    left, right = picture.subplots(1, 2, width_ratios=(2, 1))
    catalogue_map(model, person, left)
    convergence(model, right)
    save(picture, path)


def _principal_axes(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the two directions in which the vectors differ most, shape (K, 2); zeros where there is no second."""
    _, _, found = np.linalg.svd(np.asarray(vectors, np.float64), full_matrices=False)
    axes = np.zeros((vectors.shape[1], 2))
    axes[:, : len(found)] = found[:2].T
    return axes
