"""Checks that every method makes of its configuration.

>>> positive("n_factors", 0)
Traceback (most recent call last):
    ...
dpmf.errors.InvalidArgument: n_factors=0 must be a number greater than 0
"""

from __future__ import annotations

from dpmf.errors import InvalidArgument

_MOST = (1 << 31) - 1
_LARGEST = 1e30  # beyond it single precision ends, and no setting has any business


def positive(name: str, value: float) -> None:
    """Refuse zero, negative numbers, NaN and infinity."""
    if not (_is_number(value) and value > 0):
        raise InvalidArgument(f"{name}={value!r} must be a number greater than 0")


def not_negative(name: str, value: float) -> None:
    """Refuse negative numbers, NaN and infinity."""
    if not (_is_number(value) and value >= 0):
        raise InvalidArgument(f"{name}={value!r} must be a number, 0 or more")


def whole(name: str, value: object, least: int = 1, most: int = _MOST) -> None:
    """Refuse what is not an integer from `least` to `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidArgument(f"{name}={value!r} must be a whole number from {least} to {most}")


def fraction(name: str, value: float) -> None:
    """Refuse what is not a number from 0 to below 1."""
    if not (_is_number(value) and 0 <= value < 1):
        raise InvalidArgument(f"{name}={value!r} is not a fraction: give 0 or a number below 1, such as 0.1")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
