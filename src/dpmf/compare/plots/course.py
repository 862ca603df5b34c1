"""How runs went: the error after each epoch, and what chains predicted on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpmf.compare.plots.drawing import COLOURS, axes, figure, save
from dpmf.methods.convergence import Convergence
from dpmf.model import Model


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


def traces(found: Convergence, ax: Any = None, most: int = 3) -> Any:
    """Draw a few predictions of every chain after each epoch; where chains agree, lines of one colour mingle."""
    ax = axes(ax)
    n_chains, n_epochs, n_probes = found.traces.shape
    for place in range(min(most, n_probes)):
        colour = COLOURS[place % len(COLOURS)]
        for chain in range(n_chains):
            label = f"prediction {place + 1}" if chain == 0 else None
            style = ("-", "--", ":", "-.")[chain % 4]
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
