"""Figures of Mugdho and Imtiaz (2023), "Privacy-preserving matrix factorization … using Gaussian mechanism".

The paper has each kind of figure three times: for MovieLens 1M, Netflix and Anime, in this order. Here `--data` chooses
the data set, so the three names of a kind are one figure; figures 7 to 15 are views of the same runs. `steps` varies
the step size as the paper does, in all readings of its pseudocode (`descent.READINGS`).
"""

from __future__ import annotations

from experiments.figure import Figure
from experiments.mugdho2023 import budgets, factors, iterations, steps, times

_KINDS: tuple[tuple[range, Figure], ...] = (
    (range(1, 4), iterations.FIGURE),
    (range(4, 7), budgets.FIGURE),
    (range(7, 16), factors.FIGURE),
    (range(16, 19), times.FIGURE),
)
FIGURES: dict[str, Figure] = {f"figure{number}": figure for numbers, figure in _KINDS for number in numbers}
FIGURES["steps"] = steps.FIGURE
