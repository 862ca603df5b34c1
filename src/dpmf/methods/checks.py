"""Checks that every method makes of its configuration.

>>> positive("n_factors", 0)
Traceback (most recent call last):
    ...
dpmf.errors.InvalidArgument: n_factors=0 must be a number greater than 0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpmf.engine.store import AnyRatings
from dpmf.errors import InvalidArgument
from dpmf.privacy import Budget
from dpmf.ratings import Items, Scale

_MOST = (1 << 31) - 1
_MOST_SEED = (1 << 63) - 1
_PUBLIC = (
    "Rating scale, configuration and number of rounds are public: they were declared, not learnt from the ratings."
)
_CATALOGUE_PUBLIC = "The catalogue of items is public: it was declared, not learnt from the ratings."
_IDS_PUBLIC = "The list of item ids was taken from the data; the holder of the data asserts that it is public."
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


def check_rated(scale: Scale) -> None:
    """Refuse counts where ratings are learnt from."""
    if scale.counts:
        raise InvalidArgument("these are counts, not ratings: learn from them with feedback='implicit', by EASE or ALS")


def fraction(name: str, value: float) -> None:
    """Refuse what is not a number from 0 to below 1."""
    if not (_is_number(value) and 0 <= value < 1):
        raise InvalidArgument(f"{name}={value!r} is not a fraction: give 0 or a number below 1, such as 0.1")


def check_given(method: object, check: Callable[[str, Any], None], *names: str) -> None:
    """Check fields that are not left open."""
    for name in names:
        if getattr(method, name) is not None:
            check(name, getattr(method, name))


def check_sizes(method: object, **most: int) -> None:
    """Refuse fields that are given and are not whole numbers from 1 to a limit."""
    for name, limit in most.items():
        if getattr(method, name) is not None:
            whole(name, getattr(method, name), most=limit)


def check_private(method: Any) -> None:
    """Refuse what no private method can use, of the fields that all of them have."""
    name = type(method).__name__
    if not isinstance(method.budget, Budget):
        raise InvalidArgument(
            f"budget={method.budget!r}: {name} needs Budget(epsilon) to be private, or Budget(math.inf), which is not"
        )
    whole("seed", method.seed, least=0, most=_MOST_SEED)
    if method.noise_seed is not None:
        whole("noise_seed", method.noise_seed, least=0, most=_MOST_SEED)
    if not isinstance(method.items_public, bool):
        raise InvalidArgument(f"items_public={method.items_public!r} should be True or False: it asserts something")
    if getattr(method, "mode", "certified") not in ("certified", "paper"):
        raise InvalidArgument(f"mode={method.mode!r} is not known: choose certified or paper")


def declared(ratings: AnyRatings, items_public: bool, *, needs_scale: bool = True) -> None:
    """Refuse a private run on a scale or a catalogue that was learnt from the ratings."""
    if needs_scale and not ratings.scale.declared:
        raise InvalidArgument(
            "a private run needs a rating scale that is declared, not found in the data, where ratings are from "
            f"{ratings.scale.lo:g} to {ratings.scale.hi:g}: if these are the lowest and the highest that there can be, "
            f"give scale=({ratings.scale.lo:g}, {ratings.scale.hi:g})"
        )
    if not ratings.catalogue.declared and not items_public:
        raise InvalidArgument(
            "a private run needs a public catalogue of items: name its file with items=…, or assert "
            "with items_public=True that the ids in the data are a public list"
        )


def public_facts(catalogue: Items) -> tuple[str, str]:
    """Return what a private run takes to be public, one sentence each."""
    return _PUBLIC, _CATALOGUE_PUBLIC if catalogue.declared else _IDS_PUBLIC


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
