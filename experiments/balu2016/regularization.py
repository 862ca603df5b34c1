"""Figure 1: error against the penalty, for regular factorization and for sketches. Is a sketch less sensitive?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from experiments.balu2016.runs import KINDS, Parts, Trial, searched
from experiments.figure import Figure, Row, Run, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_FACTORS, _GAIN = 32, 1.0
_SMALL = (10.0, 1.0, 0.1, 0.03, 0.01, 0.001, 0.0)
_FULL = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0001, 0.0)
_LEARNT = 0.002  # smaller gains over the means alone count as nothing learnt
_NO_PENALTY = 10  # zero is drawn this factor left of the smallest penalty


def measure(run: Run) -> list[Row]:
    """Return one row for each kind and penalty, at the learning rate that is best for the kind."""
    parts = Parts.of(run)
    trials = {kind: searched(run, parts, Trial(depth, _FACTORS, _GAIN), penalty=False) for kind, depth in KINDS.items()}

    def one(kind: str, penalty: float) -> dict[str, Any]:
        trial = replace(trials[kind], penalty=penalty)
        return {"rate": trial.rate, **parts.figures(trial)}

    penalties = _FULL if run.full else _SMALL
    return run.each([{"kind": kind, "penalty": penalty} for kind in KINDS for penalty in penalties], one)


def judge(rows: list[Row]) -> Verdict:
    """Judge whether, of the three, k = 4 loses least without a penalty, and is best there."""
    best, bare, lost, penalty = {}, {}, {}, {}
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        top = min(own, key=lambda row: row["rmse"])
        best[kind], penalty[kind] = top["rmse"], top["penalty"]
        bare[kind] = next(row["rmse"] for row in own if row["penalty"] == 0)
        lost[kind] = bare[kind] - best[kind]
    others = [kind for kind in KINDS if kind != "k = 4"]
    if not all(math.isfinite(error) for error in bare.values()):
        return Verdict(None, "training diverged without a penalty.")
    largest = max((row for row in rows if row["kind"] == "k = 4"), key=lambda row: row["penalty"])["rmse"]
    if largest - best["k = 4"] < _LEARNT:
        text = (
            f"k = 4 learns next to nothing: {largest:.4f} with the largest penalty, {best['k = 4']:.4f} at the best, "
            f"and {bare['k = 4']:.4f} without any (regular: {best['regular']:.4f} and {bare['regular']:.4f})."
        )
        return Verdict(None, text)
    less = all(lost["k = 4"] < lost[kind] for kind in others)
    ahead = all(bare["k = 4"] < bare[kind] for kind in others)
    figures = "; ".join(
        f"{kind}: {bare[kind]:.4f} without a penalty, {best[kind]:.4f} at the best λ = {penalty[kind]:g}"
        for kind in KINDS
    )
    words = f"k = 4 {'loses least' if less else 'does not lose least'} without a penalty, and "
    words += "is" if ahead else "is not"
    return Verdict(less and ahead, f"{words} the best there ({figures}).")


def draw(drawing: Drawing, rows: list[Row]) -> None:
    """Draw a line for each kind; no penalty is the leftmost point."""
    axes = drawing.subplots()
    left = min(row["penalty"] for row in rows if row["penalty"]) / _NO_PENALTY
    for kind, style in zip(KINDS, ("k-o", "b--s", "r-^"), strict=True):
        own = [row for row in rows if row["kind"] == kind]
        axes.plot([row["penalty"] or left for row in own], [row["rmse"] for row in own], style, label=kind)
    axes.set_xscale("log")
    ticks = sorted({row["penalty"] for row in rows})
    shown = [tick for tick in ticks if not tick or math.isclose(math.log10(tick), round(math.log10(tick)))]
    axes.set_xticks([tick or left for tick in shown], [f"{tick:g}" for tick in shown])
    axes.minorticks_off()
    axes.set_xlabel("penalty λ")
    axes.set_ylabel("rmse on test ratings")
    axes.grid(alpha=0.3)
    axes.legend()


FIGURE = Figure(
    title=f"Error against the penalty, d = {_FACTORS}, γ = {_GAIN:g}",
    published="Without a penalty k = 4 loses less than regular factorization and k = 1, and is the best of the three.",
    measure=measure,
    draw=draw,
    judge=judge,
    data=("ml-1m", "goodbooks"),
)
