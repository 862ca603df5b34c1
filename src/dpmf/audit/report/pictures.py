"""Pictures of an audit: how far apart two worlds look, and how much of ε was shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpmf.audit.findings import Audit, Finding
from dpmf.compare.plots.figure import COLOURS, axes, figure, legend_below
from dpmf.compare.report.sections import draw_inline, say_not_drawn
from dpmf.errors import MissingExtra

_BINS = 24
_SHOWN = {  # the figure, what it is, and the figure of what could have been shown
    "epsilon_clopper_pearson": ("two worlds, Clopper–Pearson", "best_possible"),
    "epsilon_by_mu": ("two worlds, Gaussian privacy", "best_possible_by_mu"),
    "epsilon_one_run": ("one run, any mechanism", "best_possible"),
    "epsilon_f_dp": ("one run, Gaussian privacy", "best_possible_f_dp"),
}


def pictures(audit: Audit) -> list[str]:
    """Return two pictures as parts of a page, or a sentence for each where they cannot be drawn."""
    draw = draw_inline
    try:
        figure()
    except MissingExtra:
        draw = say_not_drawn
    found = {one.part: one for one in audit.findings}
    parts = []
    if "two_worlds" in found:
        parts.append(draw(partial(_worlds, found["two_worlds"]), "Scores of the attack in both worlds"))
    bars = _bars(audit.findings)
    if bars:
        epsilon = float(next(one.figures["epsilon"] for one in audit.findings if "best_possible" in one.figures))
        word = "claimed" if audit.mode == "paper" else "guaranteed"
        parts.append(draw(partial(_shown, bars, epsilon, word), "ε that was shown, beside what could be shown"))
    return parts


def _worlds(finding: Finding, ax: Any) -> None:
    """Draw how the scores of both worlds are distributed."""
    first, second = (np.asarray(finding.figures[f"scores_{name}"]) for name in ("first", "second"))
    low, high = float(min(first.min(), second.min())), float(max(first.max(), second.max()))
    edges = np.linspace(low - 1e-9, high + 1e-9, _BINS + 1)
    axes(ax)
    for scores, label, colour in ((first, "without the difference", COLOURS[0]), (second, "with it", COLOURS[3])):
        ax.hist(scores, edges, histtype="stepfilled", alpha=0.35, color=colour)
        ax.hist(scores, edges, histtype="step", color=colour, label=label)
    ax.set(xlabel="score of the best attack", ylabel="runs")
    legend_below(ax)


def _bars(findings: Sequence[Finding]) -> Mapping[str, tuple[float, float]]:
    """Return ε that was shown and that could have been shown, by route."""
    found = {}
    for one in findings:
        for key, (label, best) in _SHOWN.items():
            if key in one.figures:
                found[label] = float(one.figures[key]), float(one.figures[best])
    return found


def _shown(bars: Mapping[str, tuple[float, float]], epsilon: float, word: str, ax: Any) -> None:
    """Draw ε by every route, beside what is guaranteed or claimed."""
    axes(ax)
    places = np.arange(len(bars))[::-1]
    shown, best = (np.array([one[side] for one in bars.values()]) for side in (0, 1))
    ax.barh(places, shown, 0.5, color=COLOURS[0], label="shown (95 %)")
    ax.plot(best, places, "|", ms=16, mew=2, color=COLOURS[3], label="possible at best")
    ax.axvline(epsilon, color=COLOURS[6], ls="--", lw=1, label=f"{word}: ε = {epsilon:g}")
    ax.set_yticks(places, list(bars))
    ax.set_xscale("symlog", linthresh=epsilon)  # what could be shown at best is often many times as much
    ax.set(xlabel="ε", xlim=(0, 1.08 * max(epsilon, *best.tolist(), *shown.tolist())), ylim=(-0.6, len(bars) - 0.4))
    legend_below(ax)
