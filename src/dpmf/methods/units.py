"""Units of ratings: settings are stated for a scale as wide as 1 to 5, and converted for others.

>>> unit_of(Scale(1, 5)), unit_of(Scale(0, 100))
(1.0, 25.0)
"""

from __future__ import annotations

from dpmf.ratings import Scale

USUAL_WIDTH = 4.0
"""The width of a scale whose unit is 1."""


def unit_of(scale: Scale) -> float:
    """Return the width of a scale, relative to that of 1 to 5."""
    return (scale.hi - scale.lo) / USUAL_WIDTH
