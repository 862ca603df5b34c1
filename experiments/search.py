"""Choosing one setting on a validation set: a coarse and a fine line search on a logarithmic scale.

The first tries settings evenly spaced on a log scale from `lo` to `hi`, ends included. The second tries the same number
between the two neighbours of the best. A setting with which training diverges has an infinite loss, and is never
chosen; each setting is tried once.

>>> best = two_stage_search(lambda step: float("inf") if step > 0.5 else abs(step - 0.1), 1e-3, 10)
>>> round(best, 3)
0.1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from dpmf.errors import InvalidArgument


def two_stage_search(loss: Callable[[float], float], lo: float, hi: float, *, points: int = 5) -> float:
    """Return the setting with the smallest loss among at most 2 · points settings between lo and hi.

    Args:
        loss: of a setting on the validation set; infinite or NaN where training diverges.
        lo, hi: ends of the search, both positive.
        points: the number of settings of each stage, three or more.
    """
    if not 0 < lo < hi < math.inf:
        raise InvalidArgument(f"lo={lo!r}, hi={hi!r}: a search on a log scale needs 0 < lo < hi")
    if points < 3:
        raise InvalidArgument(f"points={points!r}: two stages need three settings or more each")
    losses: dict[float, float] = {}

    def tried(settings: Iterable[float]) -> float:
        for setting in settings:
            if setting not in losses:
                found = float(loss(setting))
                losses[setting] = math.inf if math.isnan(found) else found
        return min(losses, key=lambda setting: (losses[setting], setting))

    coarse = _spaced(lo, hi, points)
    place = coarse.index(tried(coarse))
    if math.isinf(losses[coarse[place]]):
        raise InvalidArgument(f"training diverges with every setting from {lo:g} to {hi:g}: search elsewhere")
    # The ends have been tried already, so all inner points are new, except the best itself.
    fine = _spaced(coarse[max(place - 1, 0)], coarse[min(place + 1, points - 1)], points + 2)[1:-1]
    middle = coarse[place]
    return tried(setting for setting in fine if not math.isclose(setting, middle, rel_tol=1e-9))


def _spaced(lo: float, hi: float, points: int) -> list[float]:
    inner = np.geomspace(lo, hi, points).tolist()
    return [lo, *inner[1:-1], hi]
