"""Figures of Balu and Furon (2016), "Differentially private matrix factorization using sketching techniques".

The paper has them for MovieLens 1M and EachMovie. EachMovie is no longer available; Goodbooks replaces it, as the most
similar real data set at hand: 53 thousand users instead of 61 thousand, most of them with few ratings. It has six times
the items, a third of the ratings, and a scale of five values, not six. Synthetic ratings of EachMovie's exact shape
were not used: the effect of a regularizer on them depends on how they are generated.
"""

from __future__ import annotations

from experiments.balu2016 import penalties, regularization, tradeoff
from experiments.figure import Figure

FIGURES: dict[str, Figure] = {
    "figure1": regularization.FIGURE,
    "figure2": penalties.FIGURE,
    "figure3": tradeoff.ERRORS,
    "figure4": tradeoff.LEAKS,
    "topusers": tradeoff.TOP_USERS,
}
