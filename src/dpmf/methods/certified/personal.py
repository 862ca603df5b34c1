"""Budgets of single users.

A user who asks for a smaller ε counts for less in everything that is released: with the weight w in every sum, all
that is released is (w · gdp)-Gaussian private for that user, if it is gdp-Gaussian private for one of full weight.

>>> from dpmf.privacy.calibration import Part, gaussian_events
>>> from dpmf.ratings.ids import Ids
>>> events = gaussian_events(Budget(2.0), [Part("item sums", share=1, coordinates=40)])
>>> wanted = personal_epsilons(Ids(np.array([1, 2, 3])), Budget(2.0), {2: 1.0, 3: 9.0})
>>> gaussian_shares(wanted, Budget(2.0), events).round(3).tolist()
[1.0, 0.528, 1.0]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.privacy import Budget, GaussianEvent
from dpmf.privacy.accounting import gdp_of
from dpmf.privacy.calibration import Part, gaussian_events
from dpmf.ratings.ids import Ids

_HAIR = 1e-9  # more than the accountant can lose to rounding


def personal_epsilons(users: Ids, budget: Budget, epsilons: Mapping[Any, float] | None) -> NDArray[np.float64]:
    """Return the ε that every user pays at most: their own, or that of the budget if it is smaller or they named none.

    The list is for whoever holds the data, and not to be published.

    Args:
        users: all of them.
        budget: the ε and δ of the release.
        epsilons: ε by user id, 0 for "leave me out". Ids of people who are not among the users are ignored: a list may
            name everybody who was asked.

    >>> personal_epsilons(Ids(np.array([1, 2, 3])), Budget(2.0), {2: 1.0, 3: 9.0}).tolist()
    [2.0, 1.0, 2.0]
    """
    paid = np.full(len(users), budget.epsilon)
    for user, epsilon in (epsilons or {}).items():
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not epsilon >= 0:
            raise InvalidArgument(f"the epsilon of a user should be a number from 0 on, and one is {epsilon!r}")
        place = users.position(user)
        if place is not None:
            paid[place] = min(float(epsilon), paid[place])  # somebody named twice, as 7 and as "7", pays the least
    return paid


def gaussian_shares(
    epsilons: NDArray[np.float64], budget: Budget, events: Sequence[GaussianEvent]
) -> NDArray[np.float64]:
    """Return the weight of every user, from 0 to 1, given the ε that each pays at most.

    Args:
        epsilons: as `personal_epsilons` returns them.
        budget: the ε and δ of the release.
        events: what the release consists of, within that budget.
    """
    paid, place = np.unique(epsilons, return_inverse=True)
    return np.array([_weight(float(epsilon), budget, events) for epsilon in paid])[place]


def _weight(epsilon: float, budget: Budget, events: Sequence[GaussianEvent]) -> float:
    """Return the gdp that keeps within epsilon, over that of the events; what the sampler costs is in both."""
    if epsilon in (0.0, budget.epsilon):
        return float(epsilon > 0)
    everything = Part("everything", share=1.0, coordinates=sum(event.coordinates for event in events))
    try:
        allowed = gdp_of(gaussian_events(replace(budget, epsilon=epsilon), [everything]))
    except InvalidArgument:  # less than the inaccuracy of the sampler alone: nothing but leaving out would do
        return 0.0
    return min(1.0, allowed / gdp_of(events) * (1 - _HAIR))
