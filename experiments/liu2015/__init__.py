"""Figures of Liu, Wang and Smola (2015), "Fast differentially private matrix factorization"."""

from __future__ import annotations

from experiments.figure import Figure
from experiments.liu2015 import budgets, epochs, popularity, pushing, tables

FIGURES: dict[str, Figure] = {
    "figure1": popularity.FIGURE,
    "figure4": tables.FIGURE,
    "figure6": epochs.FIGURE,
    "figure7": budgets.FIGURE,
    "pushing": pushing.FIGURE,
}
