"""Budgets of single users.

A user who asks for a smaller ε counts for less in everything that is released: with the weight w in every sum, all
that is released is (w · gdp)-Gaussian private for that user, if it is gdp-Gaussian private for one of full weight.

>>> from dpmf.ratings.ids import Ids
>>> shares = personal_shares(Ids(np.array([1, 2, 3])), Budget(2.0), {2: 1.0, 3: 9.0})
>>> shares.round(3).tolist()
[1.0, 0.528, 1.0]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.privacy import Budget
from dpmf.privacy.calibration import gdp_for
from dpmf.ratings.ids import Ids


def personal_shares(users: Ids, budget: Budget, epsilons: Mapping[Any, float] | None) -> NDArray[np.float64]:
    """Return the weight of every user, from 0 to 1.

    Args:
        users: all of them; those without an ε of their own have weight 1.
        budget: the ε and δ of the release.
        epsilons: ε by user id, 0 for "leave me out". Ids of people who are not among the users are passed over: a list
            may name everybody who was asked.
    """
    shares = np.ones(len(users))
    known: dict[float, float] = {}
    for user, epsilon in (epsilons or {}).items():
        place = users.position(user)
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not epsilon >= 0:
            raise InvalidArgument(f"the epsilon of a user should be a number from 0 on, and one is {epsilon!r}")
        if place is None:
            continue
        wanted = min(float(epsilon), budget.epsilon)
        if wanted not in known:
            known[wanted] = _weight(wanted, budget)
        shares[place] = known[wanted]
    return shares


def _weight(epsilon: float, budget: Budget) -> float:
    if epsilon in (0.0, budget.epsilon):
        return float(epsilon > 0)
    return gdp_for(epsilon, budget.delta) / gdp_for(budget.epsilon, budget.delta)
