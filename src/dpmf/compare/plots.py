"""Pictures. The only module that imports matplotlib, and only when a picture is asked for.

>>> import numpy as np
>>> _principal_axes(np.array([[3.0, 0.0, 0.0], [-3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])).shape
(3, 2)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import MissingExtra
from dpmf.methods.convergence import Convergence
from dpmf.model import Model, Person

# Okabe and Ito's colours: told apart by colour-blind people too; with markers, readable in grey.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def catalogue_map(model: Model, person: Person | None = None, ax: Any = None) -> Any:
    """Draw the catalogue in two dimensions, coloured by first genre, with a person's taste as an arrow."""
    ax = ax or _figure().subplots()
    vectors = model.release.item_factors - model.release.item_factors.mean(axis=0)
    axes = _principal_axes(vectors)
    points = vectors @ axes
    first_genres = [genres.split("|")[0] for genres in model.release.items.genres]
    for place, genre in enumerate(sorted(set(first_genres))):
        chosen = np.array([one == genre for one in first_genres])
        style = place % len(_COLOURS)
        ax.scatter(
            *points[chosen].T, s=16, alpha=0.75, c=_COLOURS[style], marker=_MARKERS[style], label=genre or "none"
        )
    if person is not None:
        taste = person.factors @ axes
        tip = taste / max(float(np.linalg.norm(taste)), 1e-12) * 0.8 * np.abs(points).max()
        ax.annotate(
            "one person's taste", xy=tip, xytext=(0, 0), arrowprops={"arrowstyle": "->", "lw": 1.5}, ha="center"
        )
    ax.set(title="Items by what people's ratings say about them", xlabel="first direction", ylabel="second direction")
    ax.legend(fontsize="small", ncols=2, frameon=False)
    return ax


def traces(found: Convergence, ax: Any = None, most: int = 3) -> Any:
    """Draw a few predictions of every chain after each epoch; where chains agree, lines of one colour mingle."""
    ax = ax or _figure().subplots()
    n_chains, n_epochs, n_probes = found.traces.shape
    for place in range(min(most, n_probes)):
        colour = _COLOURS[place % len(_COLOURS)]
        for chain in range(n_chains):
            label = f"prediction {place + 1}" if chain == 0 else None
            style = ("-", "--", ":", "-.")[chain % 4]
            ax.plot(range(1, n_epochs + 1), found.traces[chain, :, place], style, color=colour, lw=1, label=label)
    verdict = "nothing speaks against convergence" if found.converged else "not converged: do not rely on this"
    ax.axvspan(n_epochs // 2 + 1, n_epochs, color="0.92", zorder=0)
    ax.set(title=f"{n_chains} chains: {verdict}", xlabel="epoch (what counts is shaded)", ylabel="predicted rating")
    ax.legend(fontsize="small", frameon=False)
    return ax


def convergence(model: Model, ax: Any = None) -> Any:
    """Draw the training error, and the validation error if there is one, after each epoch."""
    ax = ax or _figure().subplots()
    epochs = [record.epoch for record in model.history]
    ax.plot(epochs, [record.train_rmse for record in model.history], "-", color=_COLOURS[0], label="training")
    validation = [record.validation_rmse for record in model.history]
    if all(one is not None for one in validation):
        ax.plot(epochs, validation, "--", color=_COLOURS[3], label="validation")
    ax.set(title="Error while learning", xlabel="epoch", ylabel="rmse")
    ax.legend(frameon=False)
    return ax


def demo_picture(model: Model, person: Person, path: Path) -> None:
    """Save the catalogue map beside the course of the training."""
    figure = _figure(11, 5)
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    catalogue_map(model, person, left)
    convergence(model, right)
    _save(figure, path)


def trace_picture(found: Convergence, path: Path) -> None:
    """Save the courses of chains."""
    figure = _figure(9, 5)
    traces(found, figure.subplots())
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    """Save a figure, whole or not at all."""
    partial = path.with_name(f".{path.name}")
    try:
        figure.savefig(partial, dpi=120)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _principal_axes(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the two directions in which the vectors differ most, shape (K, 2); zeros where there is no second."""
    _, _, found = np.linalg.svd(np.asarray(vectors, np.float64), full_matrices=False)
    axes = np.zeros((vectors.shape[1], 2))
    axes[:, : len(found)] = found[:2].T
    return axes


def _figure(width: float = 7, height: float = 5) -> Any:
    """Return a figure of its own: no pyplot, so no window and no global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("pictures need matplotlib: pip install 'dpmf[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")
