"""A limit on privacy loss.

>>> Budget(epsilon=1)
Budget(epsilon=1.0, delta=1e-06, unit='user', neighbours='add-remove')
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpmf.errors import InvalidArgument

UNITS = ("user", "rating")
NEIGHBOURS = ("add-remove", "replace")
DEFAULT_DELTA = 1e-6
LARGE_DELTA = 1e-4
"""Above it, `delta_warning` warns."""
LIMIT_DELTA = 0.5
"""From here on a budget has to be asked for by name: publishing every other person's ratings would keep within it."""


@dataclass(frozen=True)
class Budget:
    """The greatest privacy loss that is allowed for everything that is released.

    A mechanism M keeps within it if for all neighbouring data sets D, D' and all sets S of outputs
    P(M(D) ∈ S) ≤ e^epsilon · P(M(D') ∈ S) + delta.

    Attributes:
        epsilon: above 0; infinity states explicitly that nothing has to be private.
        delta: above 0 and below 1. Choose it far below 1 / (number of people), but never from their number.
        unit: what neighbouring data sets differ in: all ratings of one "user", or one "rating".
        neighbours: whether that unit is present or absent ("add-remove"), or is changed into another ("replace").
        allow_large_delta: whether a delta of a half or more is meant; otherwise it is refused.
    """

    epsilon: float
    delta: float = DEFAULT_DELTA
    unit: str = "user"
    neighbours: str = "add-remove"
    allow_large_delta: bool = field(default=False, repr=False, compare=False)

    @classmethod
    def recorded(cls, epsilon: float, delta: float, unit: str, neighbours: str) -> Budget:
        """Return a budget that a file records: whatever its delta is, whoever chose it has meant it."""
        return cls(epsilon, delta, unit, neighbours, allow_large_delta=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _number("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _number("delta", self.delta))
        if not self.epsilon > 0:
            raise InvalidArgument(f"epsilon={self.epsilon:g} should be above 0; inf means not private")
        if not 0 < self.delta < 1:
            raise InvalidArgument(f"delta={self.delta:g} should be above 0 and below 1, such as {DEFAULT_DELTA:g}")
        if self.delta >= LIMIT_DELTA and not self.allow_large_delta:
            raise InvalidArgument(
                f"delta={self.delta:g} protects nobody: publishing every other person's ratings would be within it; "
                f"choose {DEFAULT_DELTA:g}, or insist with allow_large_delta=True"
            )
        check_unit(self.unit)
        check_neighbours(self.neighbours)

    @property
    def is_finite(self) -> bool:
        """Whether anything has to be private."""
        return math.isfinite(self.epsilon)


def delta_warning(delta: float | None, users_about: int | None = None) -> str | None:
    """Return why a delta protects hardly anybody, in a sentence; None if it does not seem to be too large.

    Args:
        delta: of a guarantee; None without one.
        users_about: about how many users there are, if that was declared.

    >>> delta_warning(1e-6, users_about=1000) is None
    True
    >>> delta_warning(0.01)
    'delta=0.01 is too large: publishing the ratings of one person in 100 would be within it, so choose 1e-06 or less'
    """
    if delta is None:
        return None
    if delta > LARGE_DELTA:
        outright = f"publishing the ratings of one person in {max(int(1 / delta), 1):,} would be within it"
        return f"delta={delta:g} is too large: {outright}, so choose {DEFAULT_DELTA:g} or less"
    if users_about is not None and delta * users_about > 1:
        return (
            f"delta={delta:g} is too large for about {users_about:,} users: publishing the ratings of one of them "
            f"would be within it, so choose a delta far below {1 / users_about:.1g}"
        )
    return None


def check_unit(unit: object) -> None:
    """Refuse a unit of privacy that is not known."""
    if unit not in UNITS:
        raise InvalidArgument(f"unit={unit!r} is unknown: it should be {' or '.join(UNITS)}")


def check_neighbours(neighbours: object) -> None:
    """Refuse a neighbouring relation that is not known."""
    if neighbours not in NEIGHBOURS:
        raise InvalidArgument(f"neighbours={neighbours!r} is unknown: it should be {' or '.join(NEIGHBOURS)}")


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgument(f"{name}={value!r} should be a number")
    try:
        return float(value)
    except OverflowError:
        raise InvalidArgument(f"{name} has hundreds of digits: use a smaller number") from None
