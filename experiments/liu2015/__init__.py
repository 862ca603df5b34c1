"""Figures of Liu, Wang and Smola (2015), "Fast differentially private matrix factorization".

Figures 2, 3 and 5 measure time: run them on an idle machine. Figures 1 and 3 take `--data yahoo-music`, synthetic
ratings in the shape of that set. `pushing` has no number: it tests a claim that the paper does not measure.
"""

from __future__ import annotations

from experiments.figure import Figure
from experiments.liu2015 import budgets, cores, epochs, popularity, runtime, shilling, tables, totals

FIGURES: dict[str, Figure] = {
    "figure1": popularity.FIGURE,
    "figure2": runtime.FIGURE,
    "figure3": cores.FIGURE,
    "figure4": tables.FIGURE,
    "figure5": totals.FIGURE,
    "figure6": epochs.FIGURE,
    "figure7": budgets.FIGURE,
    "pushing": shilling.FIGURE,
}
