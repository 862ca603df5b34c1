"""How runs went: the error after each epoch, and what chains predicted on the way.

>>> course_of([[1, 0.2, 1.1], [2, 0.2, 0.9]])
([1.0, 2.0], [1.1, 0.9])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpmf.compare.plots.figure import COLOURS, LINES, axes, figure, legend_below, save
from dpmf.compare.plots.runs import release_style, runs_of
from dpmf.compare.results import Row
from dpmf.methods.sgld.convergence import Convergence
from dpmf.model import Model

_MARKED = 15  # epochs that can have a marker each


def convergence(model: Model, ax: Any = None) -> Any:
    """Draw the training error, and the validation error if there is one, after each epoch."""
    ax = axes(ax)
    epochs = [record.epoch for record in model.history]
    ax.plot(epochs, [record.train_rmse for record in model.history], "-", color=COLOURS[0], label="training")
    validation = [record.validation_rmse for record in model.history]
    if all(one is not None for one in validation):
        ax.plot(epochs, validation, "--", color=COLOURS[3], label="validation")
    ax.set(title="Error while learning", xlabel="epoch", ylabel="rmse")
    ax.legend(frameon=False)
    return ax


def model_courses(models: Mapping[str, Model], ax: Any = None) -> Any:
    """Draw the training error of models, by name, after each epoch."""
    ax = axes(ax)
    for place, (name, model) in enumerate(models.items()):
        epochs = [record.epoch for record in model.history]
        errors = [record.train_rmse for record in model.history]
        ax.plot(epochs, errors, ms=5, markevery=_every(epochs), **release_style(place, name, model.guarantee))
    return _finished(ax)


def run_courses(rows: Sequence[Row], unit: str = "user", ax: Any = None) -> Any:
    """Draw the training error of the runs of a comparison after each epoch: a thin line per repeat."""
    ax = axes(ax)
    for run in runs_of(rows, "history", unit=unit):
        for place, row in enumerate(run.rows):
            epochs, errors = course_of(row.history)
            label = run.label if place == 0 else None
            ax.plot(epochs, errors, lw=1.2, ms=5, label=label, markevery=_every(epochs), **run.style)
    return _finished(ax)


def course_of(history: Sequence[Sequence[float | None]]) -> tuple[list[float], list[float]]:
    """Return epochs and errors of the history in a row; epochs whose error was not a number are left out."""
    known = [(epoch, error) for epoch, _, error in history if epoch is not None and error is not None]
    return [float(epoch) for epoch, _ in known], [float(error) for _, error in known]


def traces(found: Convergence, ax: Any = None, most: int = 3) -> Any:
    """Draw a few predictions of every chain after each epoch; where chains agree, lines of one colour mingle."""
    ax = axes(ax)
    n_chains, n_epochs, n_probes = found.traces.shape
    for place in range(min(most, n_probes)):
        colour = COLOURS[place % len(COLOURS)]
        for chain in range(n_chains):
            label = f"prediction {place + 1}" if chain == 0 else None
            style = LINES[chain % len(LINES)]
            ax.plot(range(1, n_epochs + 1), found.traces[chain, :, place], style, color=colour, lw=1, label=label)
    verdict = "nothing speaks against convergence" if found.converged else "not converged: do not rely on this"
    ax.axvspan(n_epochs // 2 + 1, n_epochs, color="0.92", zorder=0)
    ax.set(title=f"{n_chains} chains: {verdict}", xlabel="epoch (what counts is shaded)", ylabel="predicted rating")
    ax.legend(fontsize="small", frameon=False)
    return ax


def trace_picture(found: Convergence, path: Path) -> None:
    """Save the courses of chains."""
    picture = figure(9, 5)
    traces(found, picture.subplots())
    save(picture, path)


def _every(epochs: Sequence[float]) -> int:
    """Return which epochs get a marker: every one, or every second, third …, of many."""
    return max(1, -(-len(epochs) // _MARKED))


def _finished(ax: Any) -> Any:
    ax.set(xlabel="epoch, or round", ylabel="rmse on training ratings")
    ax.xaxis.get_major_locator().set_params(integer=True)
    legend_below(ax)
    return ax
