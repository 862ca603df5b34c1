"""What a release that ranks and predicts chooses where nothing was given: how the two halves share the budget.

>>> 0 < ranking_share(1.0, None) < 1
True
"""

from __future__ import annotations

_SHARE = 0.45


def ranking_share(epsilon: float, n_users: int | None) -> float:
    """Return the part of the budget, of its gdp², that the ranking gets.

    Args:
        epsilon: of the whole budget.
        n_users: about how many people there are, if that was declared.
    """
    return _SHARE
