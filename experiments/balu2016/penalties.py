"""Figure 2: the best penalty of a sketch with k = 4, for every number of factors and space gain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from experiments.balu2016.runs import FACTORS, GAINS, PENALTIES, Parts, Trial, searched
from experiments.figure import Figure, Row, Run, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_DEPTH = 4


def measure(run: Run) -> list[Row]:
    """Return one row for each d and γ: the penalty with the lowest validation error, and the errors with it.

    In a full run the learning rate is searched for each of them, otherwise only for d = 16 and γ = 1.
    """
    parts = Parts.of(run)
    usual = None if run.full else searched(run, parts, Trial(_DEPTH, 16), penalty=False)

    def best(factors: int, gain: float) -> dict[str, Any]:
        trial = Trial(_DEPTH, factors, gain)
        rate = parts.with_rate(trial).rate if usual is None else usual.rate
        trial = parts.with_penalty(Trial(_DEPTH, factors, gain, rate=rate))
        return {"rate": trial.rate, "penalty": trial.penalty, **parts.figures(trial)}

    return run.each([{"factors": factors, "gain": gain} for factors in FACTORS for gain in GAINS], best)


def judge(rows: list[Row]) -> Verdict:
    """Judge whether the best penalty falls with γ at every d, and rises with d at every γ."""
    best = {(row["factors"], row["gain"]): row["penalty"] for row in rows}
    factors, gains = sorted({key[0] for key in best}), sorted({key[1] for key in best})
    falls = [d for d in factors if best[d, gains[-1]] < best[d, gains[0]]]
    rises = [gain for gain in gains if best[factors[-1], gain] > best[factors[0], gain]]
    small = sum(penalty < 0.01 for penalty in best.values())
    text = (
        f"from γ = {gains[0]:g} to {gains[-1]:g} the best λ falls at {len(falls)} of {len(factors)} values of d; "
        f"from d = {factors[0]} to {factors[-1]} it rises at {len(rises)} of {len(gains)} values of γ. It is between "
        f"{min(best.values()):.2g} and {max(best.values()):.2g}, and below 0.01 for {small} of {len(best)} pairs."
    )
    return Verdict(len(falls) == len(factors) and len(rises) == len(gains), text)


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw a heat map with the penalties written in it."""
    axes = drawing.subplots()
    factors, gains = sorted({row["factors"] for row in rows}), sorted({row["gain"] for row in rows})
    best = {(row["factors"], row["gain"]): row["penalty"] for row in rows}
    shown = [[math.log10(best[d, gain]) for d in factors] for gain in gains]
    image = axes.imshow(
        shown, cmap="viridis", aspect="auto", vmin=math.log10(PENALTIES[0]), vmax=math.log10(PENALTIES[1])
    )
    for y, gain in enumerate(gains):
        for x, d in enumerate(factors):
            box = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none"}
            axes.text(x, y, f"{best[d, gain]:.2g}", ha="center", va="center", bbox=box)
    axes.set_xticks(range(len(factors)), [str(d) for d in factors])
    axes.set_yticks(range(len(gains)), [f"{gain:g}" for gain in gains])
    axes.set_xlabel("d")
    axes.set_ylabel("γ")
    drawing.colorbar(image, ax=axes, label="log₁₀ of the best λ")


FIGURE = Figure(
    title="Best penalty λ for d and γ, k = 4",
    published="The best λ falls as γ grows at any d, and rises with d; mostly it is below 0.01.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("ml-1m", "goodbooks"),
)
