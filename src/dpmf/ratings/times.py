"""Times as whole numbers and what is left of a second, each a function of one value and the type of its column.

Whole numbers stay what they are, of any unit; dates become seconds since 1970. Fractions decide which of two ratings is
the later one, and are not kept. A missing time is earlier than any other.

>>> times_of(np.array([12.5, 7.0]))
Times(whole=array([12,  7]), fraction=array([500000000,         0], dtype=int32))
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidRatings
from dpmf.ratings.kinds import exact_below, integers_of, is_missing, one_kind
from dpmf.streams import fits

logger = logging.getLogger(__name__)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BILLION = 10**9
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_COARSER = ("m", "h", "D", "W", "M", "Y")
_MOST_COARSE = 1 << 37  # of years: more would not fit into 64 bits of seconds
_MOST_DIGITS = 19

UNKNOWN = int(np.iinfo(np.int64).min)
"""The time of a rating that has none."""

WHOLE = "make the column one of whole numbers"
"""What to do about times that are not exact."""

Moment = tuple[int, int] | None
"""A whole number and billionths, or None for what is no time."""


class Times(NamedTuple):
    """The times of ratings.

    Attributes:
        whole: shape (n,).
        fraction: shape (n,), billionths to be added; None if there are no fractions.
    """

    whole: NDArray[np.int64]
    fraction: NDArray[np.int32] | None = None

    def take(self, chosen: NDArray[Any]) -> Times:
        """Return the times that a mask or a list of positions chooses."""
        return Times(self.whole[chosen], None if self.fraction is None else self.fraction[chosen])

    def ranks(self) -> NDArray[np.int64]:
        """Return numbers that compare as the times do: of any two of them, no third decides which is the later."""
        if self.fraction is None:
            return self.whole
        order = np.lexsort((self.fraction, self.whole))
        later = (np.diff(self.whole[order]) != 0) | (np.diff(self.fraction[order]) != 0)
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.concatenate([[0], np.cumsum(later)])[: len(order)]
        return ranks


def times_of(values: NDArray[Any], first_row: int = 1) -> Times | None:
    """Return the times of a column, None if it holds none.

    Raises:
        InvalidRatings: some ratings have a time that can be read and others one that cannot, or types are several.
    """
    kind = values.dtype.kind
    if values.ndim != 1 or kind not in "iufMOUT":
        raise InvalidRatings(f"the times are not a flat list of numbers or dates: they are {values.dtype}")
    if kind == "i":
        return Times(values.astype(np.int64, copy=False))
    if kind == "u":
        return readable(Times(values.astype(np.int64)), values < 1 << 63, first_row)
    if kind == "f":
        return _of_fractions(values, first_row)
    return _of_datetimes(values, first_row) if kind == "M" else _of_objects(values.tolist(), first_row)


def readable(
    times: Times, read: NDArray[np.bool_], first_row: int, missing: NDArray[np.bool_] | None = None
) -> Times | None:
    """Return times if all that are there could be read, or None with a message if none could; else refuse them.

    Args:
        times: of all ratings, anything where none could be read.
        read: which of them could be read.
        first_row: the number of the first rating.
        missing: which of the others are not there at all; None for none.
    """
    if read.all():
        return times
    wrong = ~read if missing is None else ~(read | missing)
    if wrong.any() or not read.any():
        some = bool(read.any())
        check_all_or_none(int(np.argmax(wrong if some else ~read)) + first_row, some=some)
        return None
    fraction = None if times.fraction is None else np.where(read, times.fraction, 0).astype(np.int32)
    return Times(np.where(read, times.whole, UNKNOWN), fraction)


def check_all_or_none(row: int, *, some: bool) -> None:
    """Refuse times of which the one in a row cannot be read, but some can; say that they are left out otherwise.

    Without this, one person's row would take away the times of all others.
    """
    wrong = f"the time in row {row} is neither a number nor a date, or too large to be exact"
    if some:
        raise InvalidRatings(f"{wrong}, and other ratings have one: fix it, or read no times")
    logger.warning("the times are left out: %s, as are all others", wrong)


def _of_fractions(values: NDArray[Any], first_row: int) -> Times | None:
    read, exact = np.isfinite(values), exact_below(values.dtype)
    if (large := read & (np.abs(values) >= exact)).any():  # even if all are: they may have been whole numbers once
        row = int(np.argmax(large)) + first_row
        raise InvalidRatings(f"the time in row {row} is not exact, as is none from {exact:.0f} on: {WHOLE}")
    seconds = np.where(read, values, 0).astype(np.float64)
    whole = np.floor(seconds)
    fraction = ((seconds - whole) * _BILLION).astype(np.int32)
    times = Times(whole.astype(np.int64), fraction if fraction.any() else None)
    return readable(times, read, first_row, np.isnan(values))


def _of_datetimes(values: NDArray[Any], first_row: int) -> Times | None:
    unit, count = np.datetime_data(values.dtype)
    if count != 1 or unit not in (*_PER_SECOND, *_COARSER):
        raise InvalidRatings(f"times of type {values.dtype} are not supported: make them datetime64[us]")
    missing, read, per_second = values, ~np.isnat(values), _PER_SECOND.get(unit, 1)
    if unit in _COARSER:
        read &= np.abs(values.astype(np.int64)) < _MOST_COARSE
        values = values.astype("datetime64[s]")
    whole, rest = np.divmod(values.astype(np.int64), per_second)
    fraction = (rest * (_BILLION // per_second)).astype(np.int32)
    return readable(Times(whole, fraction if fraction.any() else None), read, first_row, np.isnat(missing))


def _of_objects(listed: list[Any], first_row: int) -> Times | None:
    what = "times must be all numbers, all strings or all dates"
    kind = one_kind(listed, what)
    if kind == "integer" and set(map(type, listed)) == {int} and (whole := integers_of(listed)) is not None:
        return Times(whole)
    if kind == "float":
        return _of_fractions(np.array([np.nan if is_missing(one) else one for one in listed], np.float64), first_row)
    if kind not in _READERS:
        raise InvalidRatings(f"{what}: they are of type {type(listed[0]).__name__}")
    moments = [None if is_missing(one) else _READERS[kind](one) for one in listed]
    pairs = np.array([one or (0, 0) for one in moments], np.int64).reshape(-1, 2)
    fraction = pairs[:, 1].astype(np.int32)
    known = np.array([one is not None for one in moments], np.bool_)
    missing = np.array([is_missing(one) or one == "" for one in listed], np.bool_)
    return readable(Times(pairs[:, 0].copy(), fraction if fraction.any() else None), known, first_row, missing)


def _of_text(text: str) -> Moment:
    """Return the moment that a number or an ISO date is, exactly."""
    try:
        return _of_number(Decimal(text))
    except InvalidOperation:
        pass
    try:
        return _of_date(datetime.fromisoformat(text))
    except ValueError:
        return None


def whole_time(text: str) -> int | None:
    """Return the time that a whole number or an ISO date is; None if it is neither.

    >>> whole_time("978300000"), whole_time("2000-12-31T22:00"), whole_time("soon")
    (978300000, 978300000, None)
    """
    moment = _of_text(text.strip())
    return moment[0] if moment is not None and not moment[1] else None


def _of_number(number: Decimal) -> Moment:
    if not number.is_finite() or number.adjusted() > _MOST_DIGITS:
        return None
    whole = int(number.to_integral_value(ROUND_FLOOR))
    return (whole, int((number - whole) * _BILLION)) if fits(whole) else None


def _of_date(when: date) -> Moment:
    moment = when if isinstance(when, datetime) else datetime(when.year, when.month, when.day)
    try:
        elapsed = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
        whole, micro = divmod(elapsed // timedelta(microseconds=1), 10**6)
    except (OverflowError, ValueError):  # at the ends of the calendar, in another time zone
        return None
    return whole, 1000 * micro + getattr(when, "nanosecond", 0)  # which a date of pandas has, as its columns do


def _of_integer(number: int) -> Moment:
    return (int(number), 0) if fits(int(number)) else None


_READERS: dict[str, Callable[[Any], Moment]] = {"integer": _of_integer, "text": _of_text, "date": _of_date}
