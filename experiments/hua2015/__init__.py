"""Figures of Hua, Xia and Zhong (2015), "Differentially private matrix factorization".

The paper has each kind twice, for Netflix (odd numbers) and for MovieLens 100K; figures 7 and 8 are views of the runs
of the first six. Here `--data` chooses the data set, so both names of a kind are one figure. `heldout` evaluates the
same runs on held-out ratings, and `protocol` compares them with the real protocol.
"""

from __future__ import annotations

from experiments.figure import Figure
from experiments.hua2015 import churn, distributions, heldout, increases, protocol

_KINDS = (distributions.TRUSTED, distributions.UNTRUSTED, distributions.CHANGING, increases.FIGURE, churn.FIGURE)
FIGURES: dict[str, Figure] = {
    f"figure{number}": figure for place, figure in enumerate(_KINDS) for number in (2 * place + 1, 2 * place + 2)
}
FIGURES["heldout"] = heldout.FIGURE
FIGURES["protocol"] = protocol.FIGURE
