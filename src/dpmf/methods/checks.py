"""Checks that every method makes of its configuration.

>>> positive("n_factors", 0)
Traceback (most recent call last):
    ...
dpmf.errors.InvalidArgument: n_factors=0 must be greater than 0
"""

from __future__ import annotations

import math

from dpmf.errors import InvalidArgument


def positive(name: str, value: float) -> None:
    """Refuse zero, negative numbers, NaN and infinity."""
    if not (math.isfinite(value) and value > 0):
        raise InvalidArgument(f"{name}={value} must be greater than 0")


def not_negative(name: str, value: float) -> None:
    """Refuse negative numbers, NaN and infinity."""
    if not (math.isfinite(value) and value >= 0):
        raise InvalidArgument(f"{name}={value} must be 0 or more")


def whole(name: str, value: object, least: int = 1) -> None:
    """Refuse what is not an integer of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArgument(f"{name}={value!r} must be a whole number, at least {least}")
