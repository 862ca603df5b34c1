"""What alternating least squares chooses where nothing was given: from epsilon and other public facts alone.

The number of factors of a private run follows from the number of users, once that is released with noise; see
`FactorRule`. The constants were chosen on synthetic worlds: see benchmarks/defaults.py.

>>> private_defaults(Budget(0.5), implicit=True)["regularization"] > private_defaults(Budget(5), True)["regularization"]
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpmf.methods.certified.plan import FactorRule
from dpmf.privacy import Budget

FACTORS = FactorRule(least=2, most=16, point=20_000, nothing=3_000)  # up to 3,000 they may be a loss
IMPLICIT_FACTORS = FactorRule(least=4, most=16, point=10_000)

COUNTS, MOST_COUNT = "log", 16.0  # where data are counts: see docs/als.md

_PLAIN: dict[str, Any] = {"n_factors": 128, "n_epochs": 10, "regularization": 0.7, "alpha": None}
_PLAIN_IMPLICIT: dict[str, Any] = {"n_factors": 64, "n_epochs": 10, "regularization": 20.0, "alpha": 1.0}
_PRIVATE: dict[str, Any] = {"n_epochs": 6, "regularization": 0.5, "alpha": None}
_ROUNDS, _MANY_FROM = (3, 3), 3.0  # below and from that epsilon on
_USER_RIDGES, _HELD_BELOW = (3.0, 1.0), 1.0  # below that epsilon factors are mostly noise, and are held down
_ALPHA = 1.0

_HEIGHTS, _HEIGHT_POINT = (0.5, 2.0), 5_000  # least and most; where it is 1, in epsilon times users
_HEIGHT_EXPONENT = 0.5  # of that point over epsilon times users
_IMPLICIT_HEIGHTS = (0.25, 0.5)  # for an epsilon of 1 and more, and of half of that and less
_POPULARITY_SHARES = (0.2, 0.4, 0.8)  # least, for an epsilon of 1, and most
_SHARE_EXPONENT = 1.0
_LEAST_EPSILON = 1e-3  # the share is at its most long before; a power of a much smaller number would overflow


@dataclass(frozen=True)
class Settings:
    """What a run is given.

    Attributes:
        factors: how many there are; a private run may choose once it has released how many users there are.
        n_epochs, regularization: as those of `ALS`.
        alpha: as that of `ALS`; 0 where ratings count.
    """

    factors: FactorRule
    n_epochs: int
    regularization: float
    alpha: float


def plain_defaults(implicit: bool) -> dict[str, Any]:
    """Return the usual settings of a run that is not private."""
    return _PLAIN_IMPLICIT if implicit else _PLAIN


def private_defaults(budget: Budget, implicit: bool) -> dict[str, Any]:
    """Return the usual settings of a private run, all but the number of factors."""
    if not implicit:
        return _PRIVATE
    rounds, ridge = _ROUNDS[budget.epsilon >= _MANY_FROM], _USER_RIDGES[budget.epsilon >= _HELD_BELOW]
    return {"n_epochs": rounds, "regularization": ridge, "alpha": _ALPHA}


def bias_height(epsilon: float, n_users: float) -> float:
    """Return how much the bias counts beside the factors, for a noisy count of users: the less is learnt, the more."""
    least, most = _HEIGHTS
    return float(min(max((_HEIGHT_POINT / (epsilon * n_users)) ** _HEIGHT_EXPONENT, least), most))


def popularity_height(epsilon: float) -> float:
    """Return how much popularity counts beside implicit factors: the less there is to spend, the more."""
    least, most = _IMPLICIT_HEIGHTS
    return min(max(least / epsilon, least), most)


def popularity_share(epsilon: float) -> float:
    """Return the part of the budget of popularity before implicit rounds: with little to spend, it is what remains."""
    least, usual, most = _POPULARITY_SHARES
    return float(min(max(usual * max(epsilon, _LEAST_EPSILON) ** -_SHARE_EXPONENT, least), most))
