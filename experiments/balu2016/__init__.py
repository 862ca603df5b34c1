"""Figures of Balu and Furon (2016), "Differentially private matrix factorization using sketching techniques".

The paper has them for MovieLens 1M and EachMovie. The second is not to be had any more; Goodbooks stands in for it, as
the real set at hand that is most like it: 53 thousand users to its 61 thousand, and most with few ratings. It has six
times as many items, a third of the ratings, and a scale of five, not six. Made-up ratings of EachMovie's exact shape
were not taken: what a regularizer does to them depends on how they were made up.
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
