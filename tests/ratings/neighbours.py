"""Two neighbouring worlds, with and without one hostile row, and what must be read of everybody else.

Ids, items, values, times and the duplicates kept of everybody else are the same in both, or the second is refused.
"""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import assume
from hypothesis import strategies as st

from dpmf.errors import DpmfError
from dpmf.ratings import Ratings
from dpmf.ratings.times import UNKNOWN

Row = tuple[Any, Any, Any, Any]  # user, item, rating, time
SCALE = (-(2.0**62), 2.0**62)
LARGE = 2**60  # from 2**53 on, fractions of 64 bits skip whole numbers
ROUNDED_TWICE = LARGE + 2**36 + 1  # another number if it goes through 64 bits on its way to 32
NAMES = ("user", "item", "rating", "timestamp")
NOON = datetime.datetime(2020, 1, 1, 12)

USERS: dict[str, list[Any]] = {
    "small": [0, 1, 7, 10, 1000],
    "large": [LARGE + place for place in range(5)],
    "text": ["7", "007", "1e3", "True", "-0", "ann"],
}
TIMES: dict[str, Callable[[int], Any]] = {
    "small": lambda place: 100 + place,
    "large": lambda place: LARGE + place,
    "fractions": lambda place: 100 + place / 8,
    "text": lambda place: f"2020-01-01 00:00:00.{place + 1}",
    "digits": lambda place: str(LARGE + place),
    "dates": lambda place: NOON + datetime.timedelta(microseconds=place),
}
NUMBERS = [7.0, 12.5, 1e3, -0.0, 0, 1, 7, -1, 2**53, 2**53 + 1, 2.0**53, LARGE, 2.0**60, 2**63, 2**64 - 1, 2**80, 1e300]
TEXTS = [
    *("", "7", "007", " 7", "7 ", "7.0", "1e3", "+7", "-0", "True", "nan", "NULL", "inf", "12.5", "2020-01-01", "soon"),
    *('"', '""', '"7', '7"', 'a"b', '"a"b', "a\0", "\0", "é", "\ufeff", "x" * 5000, ",", ";", "\t", "::", "|", "7:"),
    *("user", "item", "rating", "timestamp", "#7", "\\", "'", "1152921504606846976", "9223372036854775808", "1_000"),
]
OBJECTS = [
    *(None, True, False, np.True_, math.nan, math.inf, -math.inf, pd.NA, pd.NaT, NOON, NOON.date(), 1j, (1, 2), b"7"),
    *(decimal.Decimal(7), decimal.Decimal("7.5"), np.float32(7), np.int8(7), np.uint64(2**63), uuid.UUID(int=7)),
    *(np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01 00:00:00.000000001"), NOON.replace(tzinfo=datetime.UTC)),
]
hostile_texts = st.one_of(st.sampled_from(TEXTS), st.text("7\"',;|\t: .-e0\0é", max_size=6))
hostile_values = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(OBJECTS), hostile_texts, st.integers(-(2**65), 2**65), st.floats()
)


@dataclass(frozen=True)
class Joined:
    """Two neighbouring worlds: those who were there, and with one more row among theirs, and perhaps one at the end."""

    crowd: list[Row]
    row: Row
    place: int
    last: tuple[Row, ...] = ()

    @property
    def both(self) -> list[Row]:
        return [*self.crowd[: self.place], self.row, *self.crowd[self.place :], *self.last]


def crowd_of(users: str, times: str) -> list[Row]:
    """Return ratings of which everybody repeats some; by time the first of each two is the later one."""
    return [
        (user, item, value, TIMES[times](later))
        for user in USERS[users]
        for item in (3, 5)
        for value, later in ((ROUNDED_TWICE, 1), (2, 0))
    ]


def as_texts(rows: list[Row]) -> list[Row]:
    return [tuple(one if isinstance(one, str) else str(one) for one in row) for row in rows]  # type: ignore[misc]


@st.composite
def neighbours(draw: st.DrawFn, values: st.SearchStrategy[Any], users: Any = None, times: Any = None) -> Joined:
    """Draw two worlds; a field of the row that joins is hostile or one as all others have."""
    named, timed = draw(st.sampled_from(users or sorted(USERS))), draw(st.sampled_from(times or sorted(TIMES)))
    crowd = crowd_of(named, timed)
    usual = ("newcomer" if named == "text" else LARGE - 1 if named == "large" else 99, 3, 4, TIMES[timed](2))
    hostile = draw(st.sets(st.integers(0, 3), max_size=2))
    row = tuple(draw(values) if place in hostile else one for place, one in enumerate(usual))
    return Joined(crowd, row, draw(st.integers(0, len(crowd))))


def people(ratings: Ratings) -> dict[str, list[tuple[str, float, int | None]]]:
    """Return what is known of everybody, by the text of their id: item, rating and time."""
    known = [UNKNOWN] * len(ratings) if ratings.timestamps is None else ratings.timestamps.tolist()
    times = [None if time == UNKNOWN else time for time in known]
    items = [str(ratings.catalogue.ids[item]) for item in ratings.items.tolist()]
    rows = list(zip(items, ratings.values.tolist(), times, strict=True))
    starts = ratings.indptr.tolist()
    return {str(user): sorted(rows[starts[place] : starts[place + 1]]) for place, user in enumerate(ratings.user_ids)}


def is_same(user: str, other: Any) -> bool:
    """Tell whether an id in a hostile row is that user's own: 7.0 is 7 in a column of numbers, and True is not 1."""
    if isinstance(other, bool | np.bool_):
        return False
    try:
        return user in (str(other), str(int(other)) if not isinstance(other, str) and other == int(other) else "")
    except (TypeError, ValueError, OverflowError):
        return False


READ: dict[str, Ratings] = {}  # of worlds before anybody joined, which are few


def check(read: Callable[[list[Row]], Ratings], worlds: Joined, source: object) -> bool:
    """Read both worlds and compare them; return whether the second was read at all."""
    name = f"{source} {worlds.crowd}"
    before = READ[name] = READ.get(name) or read(worlds.crowd)
    try:
        after = read(worlds.both)
    except DpmfError:
        return False
    known, told = people(before), people(after)
    others = [user for user in known if not is_same(user, worlds.row[0])]
    assert {user: told.get(user) for user in others} == {user: known[user] for user in others}
    if before.user_ids.array.dtype == after.user_ids.array.dtype:
        orders = [[one for one in map(str, world.user_ids) if one in others] for world in (before, after)]
        assert orders[0] == orders[1]
    return True


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    return dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))


def built(make: Callable[[dict[str, list[Any]]], Any], rows: list[Row]) -> Any:
    """Make a table as a user would, with all that the library guesses; what it does not take is no case."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(columns_of(rows))
    except Exception:
        assume(False)
