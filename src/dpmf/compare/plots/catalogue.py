"""The catalogue as a map.

>>> import numpy as np
>>> vectors = np.array([[3.0, 0.0, 0.0], [-3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
>>> np.abs(_directions(vectors)).tolist(), np.abs(_directions(vectors, np.array([0.0, 2.0, 0.0]))).tolist()
([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.compare.plots.figure import COLOURS, MARKERS, axes
from dpmf.model import Model, Person


def catalogue_map(model: Model, person: Person | None = None, ax: Any = None) -> Any:
    """Draw the catalogue in two dimensions, coloured by first genre.

    They are the directions in which items differ most; with a person, the first is that of their taste, an arrow to the
    right.
    """
    ax = axes(ax)
    vectors = model.release.item_factors - model.release.item_factors.mean(axis=0)
    taste = None if person is None or not person.factors.any() else np.asarray(person.factors, np.float64)
    directions = _directions(vectors, taste)
    points = vectors @ directions
    first_genres = [genres.split("|")[0] for genres in model.release.items.genres]
    for place, genre in enumerate(sorted(set(first_genres))):
        chosen = np.array([one == genre for one in first_genres])
        style = place % len(COLOURS)
        ax.scatter(*points[chosen].T, s=16, alpha=0.75, c=COLOURS[style], marker=MARKERS[style], label=genre or "none")
    labels = "first direction", "second direction"
    if taste is not None:
        labels = "what one person likes, the further to the right the more", "how items differ most besides"
        ax.annotate(
            "one person's taste",
            xy=(0.97 * points[:, 0].max(), 0),
            xytext=(0, 0),
            arrowprops={"arrowstyle": "->", "lw": 1.5},
            ha="center",
            bbox={"boxstyle": "round", "facecolor": "white", "alpha": 0.8, "lw": 0},
        )
    ax.set(title="Items by what people's ratings say about them", xlabel=labels[0], ylabel=labels[1])
    ax.legend(fontsize="small", ncols=4, frameon=False, loc="upper center")
    ax.set_ylim(top=points[:, 1].max() + 0.15 * np.ptp(points[:, 1]))  # room for the legend
    return ax


def _directions(vectors: NDArray[np.floating[Any]], taste: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return two directions, shape (K, 2): a taste, if any, and those in which the vectors differ most besides.

    Zeros stand in for a second direction that there is not.
    """
    rest = np.asarray(vectors, np.float64)
    found: list[NDArray[np.float64]] = []
    if taste is not None:
        found.append(taste / np.linalg.norm(taste))
        rest = rest - np.outer(rest @ found[0], found[0])
    found += list(np.linalg.svd(rest, full_matrices=False)[2])
    directions = np.zeros((vectors.shape[1], 2))
    count = min(2, vectors.shape[1])
    directions[:, :count] = np.array(found[:count]).T
    return directions
