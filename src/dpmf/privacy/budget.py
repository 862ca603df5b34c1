"""A limit on privacy loss.

>>> Budget(epsilon=1)
Budget(epsilon=1.0, delta=1e-06, unit='user', neighbours='add-remove')
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmf.errors import InvalidArgument

UNITS = ("user", "rating")
NEIGHBOURS = ("add-remove", "replace")
DEFAULT_DELTA = 1e-6


@dataclass(frozen=True)
class Budget:
    """The greatest privacy loss that is allowed for everything that is released.

    A mechanism M keeps within it if for all neighbouring data sets D, D' and all sets S of outputs
    P(M(D) ∈ S) ≤ e^epsilon · P(M(D') ∈ S) + delta.

    Attributes:
        epsilon: above 0; infinity states explicitly that nothing has to be private.
        delta: between 0 and 1, both excluded. Choose it far below 1 / (number of people), but never from their number.
        unit: what neighbouring data sets differ in: all ratings of one "user", or one "rating".
        neighbours: whether that unit is present or absent ("add-remove"), or is changed into another ("replace").
    """

    epsilon: float
    delta: float = DEFAULT_DELTA
    unit: str = "user"
    neighbours: str = "add-remove"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _number("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _number("delta", self.delta))
        if not self.epsilon > 0:
            raise InvalidArgument(f"epsilon={self.epsilon:g} should be above 0; inf means not private")
        if not 0 < self.delta < 1:
            raise InvalidArgument(f"delta={self.delta:g} should be between 0 and 1, such as {DEFAULT_DELTA:g}")
        check_unit(self.unit)
        check_neighbours(self.neighbours)

    @property
    def is_finite(self) -> bool:
        """Whether anything has to be private."""
        return math.isfinite(self.epsilon)


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
