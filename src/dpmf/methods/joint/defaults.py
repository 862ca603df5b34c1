"""What a release that ranks and predicts chooses where nothing was given: how the two halves share the budget.

>>> 0 < ranking_share(1.0, None) < 1
True
"""

from __future__ import annotations

from dpmf.methods.certified.plan import FactorRule

MOST_GIVEN = 48
"""Factors of the ranking that the rating model uses at most."""
MEASURED_FACTORS = FactorRule(least=8, most=16, point=100_000, nothing=150_000)
"""The factors that rounds measure, starting from those of the ranking; with fewer people, there is none better."""
LEAST_SHARE = 0.01  # of either half: with less of the budget, there is nothing but noise in it
_SHARE = 0.7


def ranking_share(epsilon: float, n_users: int | None) -> float:
    """Return the part of the budget, of its gdp², that the ranking gets.

    Args:
        epsilon: of the whole budget.
        n_users: about how many people there are, if that was declared.
    """
    return _SHARE
