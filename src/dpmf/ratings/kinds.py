"""What a column holds: whole numbers, fractions or texts, as its type says and whatever its values are.

Every column of every source passes through here. Nothing is promoted: a value that the type of the column may have
rounded, or one of another type than the rest, is refused. Else one person's value would change how all others are
read: see docs/proofs/reading.md.

>>> ids_of(array_of([7, 8])), ids_of(np.array([7.0, 8.0])), ids_of(array_of(["7", "x"]))
(array([7, 8]), array([7, 8]), array(['7', 'x'], dtype=object))
>>> ids_of(array_of([7, "x"]))
Traceback (most recent call last):
    ...
dpmf.errors.InvalidRatings: ids must be all integers or all strings: row 1 is of type int, row 2 of type str
"""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.streams import fits

_KINDS: dict[str, Any] = {
    "integer": int | np.integer,
    "float": float | np.floating,
    "text": str,
    "uuid": UUID,
    "date": date,  # and with it datetime
}


def array_of(values: Any) -> NDArray[Any]:
    """Return a column of any kind as an array; a list stays a list of objects, of which none is promoted."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "to_numpy"):
        how = {"zero_copy_only": False} if hasattr(values, "to_pylist") else {}  # Arrow copies only if it may
        try:
            return np.asarray(values.to_numpy(**how))
        except Exception:  # each library has errors of its own, and none of them is imported here
            kind = getattr(values, "dtype", getattr(values, "type", type(values).__name__))
            raise InvalidArgument(f"a column of type {kind} cannot be read: make it numbers, texts or dates") from None
    try:
        listed = list(values)
    except TypeError:
        raise InvalidArgument(f"{values!r} is not a column: give a list or an array") from None
    return np.fromiter(listed, object, len(listed))


def ids_of(values: NDArray[Any]) -> NDArray[Any]:
    """Return ids as signed integers (not copied if they are), or as an object array of str."""
    if values.ndim != 1:
        raise InvalidRatings(f"ids must be a flat list, not an array of shape {values.shape}")
    kind = values.dtype.kind
    if kind == "i":
        return values
    if kind == "u":
        return _checked(
            values, values >= 1 << 63, "which is too large for 64 bits: make the column one of texts"
        ).astype(np.int64)
    if kind == "f":
        exact = exact_below(values.dtype)
        with np.errstate(invalid="ignore"):
            bad = ~(np.abs(values) < exact) | (np.floor(values) != values)
        wrong = f"which is no whole number below {exact:.0f}, from where on this column is not exact"
        return _checked(values, bad, wrong).astype(np.int64)
    if kind not in "OUT":
        raise InvalidRatings(f"ids must be integers or strings: they are {values.dtype}")
    return _ids_of_objects(values.tolist())


def numbers_of(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return ratings, NaN where there is none.

    All of them go through 64-bit fractions, to which whole numbers would be promoted beside a fraction.
    """
    if values.ndim != 1 or values.dtype.kind in "cmMSV":
        raise InvalidRatings(f"the rating column is not a flat list of numbers: it is {values.dtype} {values.shape}")
    if values.dtype == np.float32:
        return values
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which is refused
            return values.astype(np.float64, copy=False).astype(np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRatings(f"the rating column is not numeric: {error}") from None


def exact_below(dtype: np.dtype[Any]) -> float:
    """Return from where on a type of fractions skips whole numbers: 2 to the power of 53 for 64 bits or more."""
    return float(2 ** min(np.finfo(dtype).nmant + 1, 53))


def one_kind(listed: list[Any], what: str) -> str:
    """Return the kind of all objects: "integer", "float", "text", "uuid" or "date"; two kinds, or others, are refused.

    Args:
        listed: the objects, of which those that are missing do not count.
        what: begins the message about them.
    """
    kinds = {one: _kind_of(one) for one in set(map(type, listed))}
    if len(kinds) == 1 and (only := next(iter(kinds.values()))) is not None:
        return only
    first = None
    for row, one in enumerate(listed, 1):
        if is_missing(one):
            continue
        kind = kinds[type(one)]
        if kind is None:
            raise InvalidRatings(f"{what}: row {row} is of type {type(one).__name__}")
        first = first or (row, kind, type(one).__name__)
        if kind != first[1]:
            raise InvalidRatings(
                f"{what}: row {first[0]} is of type {first[2]}, row {row} of type {type(one).__name__}"
            )
    return "text" if first is None else first[1]


def integers_of(listed: list[Any]) -> NDArray[np.int64] | None:
    """Return integers as an array, None if one of them does not fit into 64 bits."""
    try:
        return np.fromiter(map(int, listed), np.int64, len(listed))
    except OverflowError:
        return None


def is_missing(one: object) -> bool:
    """Tell whether this is None, a NaN, or what pandas puts in their place."""
    if isinstance(one, float | np.floating):
        return bool(np.isnan(one))
    return one is None or type(one).__name__ in ("NAType", "NaTType")


def _kind_of(kind: type) -> str | None:
    if issubclass(kind, bool | np.bool_):  # to Python a bool is an integer; as an id it would be somebody else's 1
        return None
    for name, kinds in _KINDS.items():
        if issubclass(kind, kinds):
            return name
    return None


def _checked(values: NDArray[Any], bad: NDArray[np.bool_], wrong: str) -> NDArray[Any]:
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidRatings(f"ids must be integers or strings: row {row + 1} holds {values[row]}, {wrong}")
    return values


def _ids_of_objects(listed: list[Any]) -> NDArray[Any]:
    what = "ids must be all integers or all strings"
    types = set(map(type, listed))
    if types != {str} and (row := next((row for row, one in enumerate(listed, 1) if is_missing(one)), 0)):
        raise InvalidRatings(f"ids must be integers or strings: row {row} holds none")
    kind = one_kind(listed, what)
    if kind == "integer":
        if (whole := integers_of(listed)) is not None:
            return whole
        row = next(row for row, one in enumerate(listed, 1) if not fits(int(one)))
        raise InvalidRatings(f"{what}: row {row} is too large for 64 bits; make all of them texts")
    if kind == "float":
        return ids_of(np.array(listed, np.float64))
    if kind == "date":
        raise InvalidRatings(f"{what}: row 1 is of type {type(listed[0]).__name__}")
    return np.fromiter(map(str, listed), object, len(listed))
