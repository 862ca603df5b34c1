"""Which column of a table holds what: user, item, rating or count, and, if there is one, timestamp.

>>> find_columns("ratings.csv", ["User-ID", "ISBN", "Stars"], 3, {"item": "ISBN"})
{'user': 0, 'item': 1, 'rating': 2}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dpmf.errors import InvalidArgument, InvalidRatings

ROLES = ("user", "item", "rating", "timestamp", "count")
_IN_ORDER = ROLES[:4]  # of columns without names
_MOST_UNNAMED = len(_IN_ORDER)
_MOST_LISTED = 12
_USUAL_NAMES = {
    "user": ("user", "userid", "uid", "reviewerid", "visitorid", "customerid"),
    "item": (
        *("item", "itemid", "movie", "movieid", "book", "bookid", "isbn", "animeid", "artistid", "albumid", "trackid"),
        *("songid", "jokeid", "productid", "asin", "parentasin", "businessid", "gameid"),
    ),
    "rating": ("rating", "score", "stars", "value", "bookrating", "userrating", "overall"),
    "timestamp": ("timestamp", "time", "date", "ts", "datetime", "eventtime", "eventtimestamp", "unixreviewtime"),
    "count": ("count", "counts", "plays", "playcount", "clicks", "views", "purchases", "quantity", "weight"),
}


def find_columns(
    path: Path | str,
    names: list[str] | None,
    count: int,
    wanted: Mapping[str, str | int | None] | None,
    *,
    unrated: bool = False,
) -> dict[str, int]:
    """Return the position of each role's column: that of a rating or a count, not both; the timestamp's is optional.

    Neither is needed if `unrated`, and a count is preferred then. Elsewhere a rating is, unless the other is wanted. A
    timestamp that is wanted at None is not read.
    """
    wanted = dict(wanted or {})
    untimed = "timestamp" in wanted and wanted["timestamp"] is None
    if untimed:
        del wanted["timestamp"]
    if names is None and not wanted:
        check_unnamed(path, count)
    if unknown := set(wanted) - set(ROLES):
        raise InvalidArgument(f"columns has no role {sorted(unknown)[0]!r}: the roles are {', '.join(ROLES)}")
    if {"rating", "count"} <= set(wanted):
        raise InvalidArgument("columns has a rating and a count: name the one that is to be read")
    found = {
        role: _find_column(role, names, wanted.get(role), usual=not wanted or role in wanted or names is not None)
        for role in ROLES
    }
    counted = "count" in wanted or (found["count"] is not None and "rating" not in wanted)
    value = "count" if counted and (unrated or "count" in wanted or found["rating"] is None) else "rating"
    places: dict[str, int] = {}
    for role in ("user", "item", value) if untimed else ("user", "item", value, "timestamp"):
        place = found[role]
        if place is None or not 0 <= place < count:
            if (role == "timestamp" or (role == "rating" and unrated)) and role not in wanted:
                continue
            have = listed_names(names) if names is not None else f"{count} unnamed columns"
            asked = f"column {wanted[role]!r}" if role in wanted else f"column for the {role}"
            otherwise = ""
            if role == "rating":
                otherwise = ", or learn without ratings, with feedback='implicit', by EASE or ALS"
            elif names is not None and not any(usual_place(one, names) is not None for one in ROLES):
                otherwise = ", or say header=False if these are no names"
            raise InvalidRatings(
                f"{path} has no {asked}: it has {have}; name it with columns={{{role!r}: …}}{otherwise}"
            )
        places[role] = place
    return places


def listed_names(names: list[str]) -> str:
    """Return names of columns for a message; of a matrix with an item a column, the first of them."""
    return ", ".join(names[:_MOST_LISTED]) + (f", … ({len(names):,} columns)" if len(names) > _MOST_LISTED else "")


def check_unnamed(path: Path | str, count: int) -> None:
    """Refuse more columns without names than ratings have: they may be those of a wide file."""
    if count > _MOST_UNNAMED:
        raise InvalidRatings(
            f"{path} has {count} unnamed columns: say layout='wide' if each line is a user and each column an item, or "
            "name the columns with columns={'user': …}"
        )


def _find_column(role: str, names: list[str] | None, wanted: str | int | None, usual: bool) -> int | None:
    if isinstance(wanted, int):
        return wanted
    if names is None:
        return _IN_ORDER.index(role) if usual and wanted is None and role in _IN_ORDER else None
    if wanted is not None:
        return names.index(wanted) if wanted in names else None
    return usual_place(role, names)


def has_usual_names(names: list[str]) -> bool:
    """Return whether user and item are among the names of columns, as they are usually spelt."""
    return all(usual_place(role, names) is not None for role in ("user", "item"))


def usual_place(role: str, names: list[str]) -> int | None:
    """Return where the column of a role is, by its usual names, or None."""
    plain = [re.sub("[ _-]", "", name).lower() for name in names]
    return next((plain.index(name) for name in _USUAL_NAMES[role] if name in plain), None)
