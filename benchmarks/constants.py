"""The searched constants of private least squares: the values to choose from, and where the package keeps each one.

Names are those of the recorded searches, docs/benchmarks/defaults-*.json. Some constants have since moved to other
modules; `Home` says where they are today, so that a new search can be compared with the old ones name by name.

>>> current_values(EXPLICIT)["dpmf.methods.als.plan._ROUNDS"]
6
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from types import ModuleType
from typing import Any, NamedTuple

import dpmf.methods.als as als
from dpmf.methods.als import certified, defaults, implicit_certified, plan, questions

Values = dict[str, Any]
"""Values of constants by their recorded names."""


class Home(NamedTuple):
    """Where a constant is kept: a name of a module, or some fields of the dataclass or dictionary of that name."""

    module: ModuleType
    name: str
    fields: tuple[str, ...] = ()

    def read(self) -> Any:
        """Return the value in use; a tuple if there are several fields."""
        kept = getattr(self.module, self.name)
        if not self.fields:
            return kept
        found = tuple(kept[field] if isinstance(kept, dict) else getattr(kept, field) for field in self.fields)
        return found if len(found) > 1 else found[0]

    def write(self, value: Any) -> None:
        """Use another value from now on, in this process."""
        if self.fields:
            kept = getattr(self.module, self.name)
            changed = dict(zip(self.fields, value if len(self.fields) > 1 else [value], strict=True))
            value = {**kept, **changed} if isinstance(kept, dict) else replace(kept, **changed)
        setattr(self.module, self.name, value)


class Constant(NamedTuple):
    """A constant and the values to choose from; the first is the plain one to start with.

    Several names, separated by spaces, are chosen together, because none of them matters without the others.
    """

    module: str
    name: str
    values: tuple[Any, ...]
    testbed: str = "usual"

    @property
    def names(self) -> list[str]:
        """The recorded names."""
        return [f"{self.module}.{name}" for name in self.name.split()]

    def assign(self, value: Any) -> Values:
        """Return a value of this constant by its recorded name, or by each of its names."""
        return dict(zip(self.names, value if len(self.names) > 1 else [value], strict=True))


def apply(values: Values) -> None:
    """Train with these values from now on, in this process."""
    for name, value in values.items():
        for home in _homes(name):
            home.write(value)


def current_values(constants: Iterable[Constant]) -> Values:
    """Return the values that the package has."""
    return {name: _homes(name)[0].read() for constant in constants for name in constant.names}


def _homes(name: str) -> tuple[Home, ...]:
    """Return all places of a constant, given by its recorded name."""
    if name in _MOVED:
        return _MOVED[name]
    module, _, attribute = name.rpartition(".")
    return (Home(_MODULES[module], attribute),)


def _rule(name: str, *fields: str) -> tuple[Home, ...]:
    """Return the places of fields of a rule for the number of factors, which the package's own module imports."""
    return Home(defaults, name, fields), Home(als, name, fields)


_PLAN, _ROUNDS = "dpmf.methods.als.plan", "dpmf.methods.als.certified"
_IMPLICIT, _IMPLICIT_PLAN = "dpmf.methods.als.implicit", "dpmf.methods.als.implicit_plan"
_IMPLICIT_ROUNDS = "dpmf.methods.als.implicit_certified"
NO_FACTORS = f"{_PLAN}._NO_FACTORS"
_MODULES = {_PLAN: plan, _ROUNDS: certified, _IMPLICIT: defaults, _IMPLICIT_ROUNDS: implicit_certified}
_MOVED: dict[str, tuple[Home, ...]] = {
    f"{_PLAN}._FACTORS": _rule("FACTORS", "least", "most"),
    f"{_PLAN}._FACTOR_POINT": _rule("FACTORS", "point"),
    NO_FACTORS: _rule("FACTORS", "nothing"),
    f"{_PLAN}._ROUNDS": (Home(defaults, "_PRIVATE", ("n_epochs",)),),
    f"{_PLAN}._USER_RIDGE": (Home(defaults, "_PRIVATE", ("regularization",)),),
    f"{_PLAN}._HEIGHTS": (Home(defaults, "_HEIGHTS"),),
    f"{_PLAN}._HEIGHT_POINT": (Home(defaults, "_HEIGHT_POINT"),),
    f"{_PLAN}._HEIGHT_EXPONENT": (Home(defaults, "_HEIGHT_EXPONENT"),),
    f"{_ROUNDS}._CLIP": (Home(questions, "CLIP"), Home(certified, "CLIP")),
    f"{_IMPLICIT_PLAN}._FACTORS": _rule("IMPLICIT_FACTORS", "least", "most"),
    f"{_IMPLICIT_PLAN}._FACTOR_POINT": _rule("IMPLICIT_FACTORS", "point"),
    f"{_IMPLICIT_PLAN}._POPULARITY_SHARES": (Home(defaults, "_POPULARITY_SHARES"),),
    f"{_IMPLICIT_PLAN}._SHARE_EXPONENT": (Home(defaults, "_SHARE_EXPONENT"),),
    f"{_IMPLICIT_PLAN}._MOMENT_SHARE": (Home(plan, "_IMPLICIT_MOMENT_SHARE"),),
    f"{_IMPLICIT_PLAN}._FORGET": (Home(implicit_certified, "_FORGET"),),
    f"{_IMPLICIT_PLAN}._HEIGHTS": (Home(defaults, "_IMPLICIT_HEIGHTS"),),
    f"{_IMPLICIT_PLAN}._USER_SHARE": (Home(plan, "_SHARES", (plan.USERS,)),),
}


def _shares(share: float, users: float = 0.002) -> dict[str, float]:
    return {plan.USERS: users, plan.POPULARITY: share, plan.WEIGHTS: share}


EXPLICIT = (
    Constant(_PLAN, "_FACTORS", ((8, 8), (2, 8), (2, 16), (3, 16), (4, 16))),
    Constant(_PLAN, "_FACTOR_POINT", (20_000, 5_000, 10_000, 40_000)),
    Constant(_PLAN, "_ROUNDS", (4, 2, 3, 6, 8)),
    Constant(_ROUNDS, "_CLIP", (1.0, 0.12, 0.25, 0.5, 2.0)),
    Constant(_ROUNDS, "_ERROR", (1.0, 0.7, 0.85)),
    Constant(_PLAN, "_USER_RIDGE", (1.0, 0.12, 0.25, 0.5)),
    Constant(_PLAN, "_BIAS_SHARE", (0.1, 0.025, 0.05, 0.2)),
    Constant(_PLAN, "_BIAS_PASSES", (1, 2, 3)),
    Constant(_PLAN, "_HEIGHTS", ((1.0, 1.0), (0.5, 1.0), (0.5, 2.0), (0.7, 3.0), (1.0, 4.0))),
    Constant(_PLAN, "_HEIGHT_POINT", (20_000, 1_500, 5_000)),
    Constant(_PLAN, "_HEIGHT_EXPONENT", (0.5, 0.3, 1.0)),
    Constant(_ROUNDS, "_EARLY_RIDGE", (0.5, 0.1, 0.2)),
    Constant(_ROUNDS, "_RARE_EXPONENT", (0.0, 0.15, 0.3, 0.45)),
    Constant(
        _PLAN, "_SHARES", (_shares(0.03), _shares(0.01), _shares(0.1), _shares(0.03, 0.0005), _shares(0.03, 0.01))
    ),
    Constant(_PLAN, "_MOMENT_SHARE", (0.03, 0.001, 0.003, 0.01)),
    Constant(_ROUNDS, "_MEAN_SQUARE", (0.5, 1.0, 2.0)),
    Constant(_ROUNDS, "_START_SD", (0.3, 0.1, 1.0)),
    Constant(_ROUNDS, "_START_REACH", (3.0, 2.0, 5.0)),
    Constant(_ROUNDS, "_SAMPLING", (0.1, 0.03, 0.3)),
    Constant(_ROUNDS, "_USER_BIAS_RIDGE", (3.0, 1.0, 6.0)),
    Constant(_ROUNDS, "_LEAST_TREND_GAIN", (0.0, 1.5, 3.0, 6.0)),
    Constant(_PLAN, "_NO_FACTORS", (0, 300, 1_000, 3_000), "next to nothing"),
    Constant(
        _ROUNDS,
        "_LEAST_BIAS_GAIN _LEAST_LEVEL_GAIN _LONE_BIAS_RIDGE",
        ((0.0, 0.0, 3.0), *product((0.0, 2.0, 4.0, 6.0), (3.0, 6.0, 12.0), (0.1, 0.2, 0.3, 1.0))),
        "next to nothing",
    ),
    Constant(_PLAN, "_ITEM_MOMENT_SHARE", (0.5, 0.1, 0.3), "moments of items"),
)
IMPLICIT = (
    Constant(_IMPLICIT_PLAN, "_FACTORS", ((8, 8), (2, 8), (2, 16), (4, 16), (8, 16), (4, 24))),
    Constant(_IMPLICIT_PLAN, "_FACTOR_POINT", (20_000, 5_000, 10_000, 40_000)),
    Constant(_IMPLICIT, "_ROUNDS", ((4, 4), (2, 2), (3, 3), (2, 4), (3, 4), (4, 6))),
    Constant(_IMPLICIT, "_USER_RIDGES", ((1.0, 1.0), (0.3, 0.3), (3.0, 1.0), (1.0, 0.3), (3.0, 0.3))),
    Constant(_IMPLICIT, "_ALPHA", (1.0, 0.0, 0.3)),
    Constant(_IMPLICIT_PLAN, "_POPULARITY_SHARES", ((0.3, 0.3, 0.3), (0.1, 0.3, 0.8), (0.2, 0.4, 0.8), (0.2,) * 3)),
    Constant(_IMPLICIT_PLAN, "_SHARE_EXPONENT", (1.0, 0.5, 1.5)),
    Constant(_IMPLICIT_PLAN, "_MOMENT_SHARE", (0.03, 0.01, 0.1)),
    Constant(_IMPLICIT_PLAN, "_FORGET", (0.0, 0.3, 0.6)),
    Constant(_IMPLICIT_PLAN, "_HEIGHTS", ((1.0, 1.0), (0.5, 0.5), (0.5, 1.0), (0.25, 0.5))),
    Constant(_IMPLICIT_ROUNDS, "_MEAN_SQUARE", (1.0, 0.5, 2.0)),
    Constant(_IMPLICIT_ROUNDS, "_LIFT", (1.0, 0.5, 2.0)),
    Constant(_IMPLICIT_ROUNDS, "_SAMPLING", (1.0, 0.3, 0.6)),
)
EXPLICIT_LAST = (Constant(_PLAN, "_LONE_BIAS_PASSES", (1, 2, 3, 4, 6), "biases alone"),)
IMPLICIT_LAST = (
    Constant(_IMPLICIT_PLAN, "_USER_SHARE", (0.002, 0.0005, 0.01)),
    Constant(_IMPLICIT, "_HELD_BELOW", (1.0, 0.7, 3.0)),
    Constant(_IMPLICIT_ROUNDS, "_SPREAD_OF_COUNTS", (1.2, 1.0, 1.5)),
    Constant(_IMPLICIT_ROUNDS, "_LEAST_MEAN_GAIN", (3.0, 0.0, 1.0, 10.0)),
)
CONSTANTS = {"explicit": EXPLICIT, "implicit": IMPLICIT}
CONSTANTS_LAST = {"explicit": EXPLICIT_LAST, "implicit": IMPLICIT_LAST}
