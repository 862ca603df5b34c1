"""Budgets of single users: how many of them pay how much. For the holder of the data.

>>> distribution([2.0, 1.0, 2.0, 0.5])
([0.5, 1.0, 2.0], [0.25, 0.5, 1.0])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmf.compare.plots.figure import COLOURS, axes, legend_below
from dpmf.errors import InvalidArgument
from dpmf.methods.certified.personal import personal_epsilons
from dpmf.model import Model
from dpmf.privacy import Budget


def paid_by_users(model: Model, budgets: dict[str, float]) -> list[float]:
    """Return the epsilon that every user of a certified model pays at most.

    Args:
        model: trained with budgets of users.
        budgets: the list it was trained with, epsilon by user.
    """
    guarantee = model.guarantee
    if guarantee.mode == "paper":
        raise InvalidArgument(
            "this model rests on a paper's claim: what users pay depends on their ratings, and `dpmf train` says it"
        )
    if guarantee.mode == "none" or guarantee.seeded:
        raise InvalidArgument("this model guarantees nothing to anybody, so there are no personal epsilons to draw")
    if not guarantee.personal:
        raise InvalidArgument("this model was trained without budgets of users, so everybody pays the same epsilon")
    assert guarantee.epsilon is not None
    assert guarantee.delta is not None
    assert guarantee.unit is not None
    assert guarantee.neighbours is not None
    budget = Budget.recorded(guarantee.epsilon, guarantee.delta, guarantee.unit, guarantee.neighbours)
    return [float(one) for one in personal_epsilons(model.user_ids, budget, budgets)]


def personal_budgets(epsilons: Sequence[float], budget: float | None = None, ax: Any = None) -> Any:
    """Draw which share of users pays at most how much.

    Args:
        epsilons: one per user.
        budget: of the release, which nobody exceeds; the greatest by default.
        ax: where to draw.
    """
    if not len(epsilons):
        raise InvalidArgument("there are no users, so no personal epsilons to draw")
    ax = axes(ax)
    values, shares = distribution(epsilons)
    budget = max(values) if budget is None else budget
    ax.step([0.0, *values, budget], [0.0, *shares, 1.0], where="post", color=COLOURS[0], label="users", lw=1.8)
    ax.axvline(budget, linestyle=":", color="#000000", label="budget of the release")
    ax.axvline(float(np.median(epsilons)), linestyle="-.", color="#555555", label="median user")
    ax.set(xlabel="personal ε, per user", ylabel="share of users who pay at most this", ylim=(0, 1.02))
    ax.set_xlim(0, 1.05 * budget)
    legend_below(ax)
    return ax


def distribution(epsilons: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the values that occur, rising, and the share of users who pay at most each."""
    values, counts = np.unique(np.asarray(epsilons, np.float64), return_counts=True)
    return values.tolist(), (np.cumsum(counts) / len(epsilons)).tolist()
