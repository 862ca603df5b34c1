"""What can be said about ratings when they are read.

>>> ReadOptions(delimiter=";").completed({"delimiter": ",", "header": True})
ReadOptions(scale=None, items=None, item_features=None, columns=None, duplicates=None, missing=None, format=None, \
delimiter=';', header=True, memory=None, users_about=None, unrated=False, \
item_columns=None, item_delimiter=None, item_encoding=None, encoding=None, escape=None, bad_rows=None, \
layout=None, leading=None, quotes=None)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmf.errors import InvalidArgument

if TYPE_CHECKING:
    from dpmf.ratings.items import Items
    from dpmf.ratings.table import Scale

_MOST_USERS = (1 << 31) - 1


@dataclass(frozen=True)
class ReadOptions:
    """The options of `Ratings.read`, which documents them; None stands for "not given"."""

    scale: Scale | None = None
    items: Items | str | Path | None = None
    item_features: str | Path | None = None
    columns: Mapping[str, str | int | None] | None = None
    duplicates: str | None = None
    missing: float | None = None
    format: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    memory: str | None = None
    users_about: int | None = None
    unrated: bool = False
    item_columns: Mapping[str, str | int] | None = None
    item_delimiter: str | None = None
    item_encoding: str | None = None
    encoding: str | None = None
    escape: str | None = None
    bad_rows: str | None = None
    layout: str | None = None
    leading: int | None = None
    quotes: bool | None = None

    def __post_init__(self) -> None:
        check_users_about(self.users_about)

    def completed(self, declared: Mapping[str, Any]) -> ReadOptions:
        """Return these options, with what is declared elsewhere in place of those not given."""
        return replace(self, **{name: value for name, value in declared.items() if getattr(self, name) is None})

    def of_items(self) -> dict[str, Any]:
        """Return the arguments of `Items.read` that were given."""
        given = {name: getattr(self, f"item_{name}") for name in ("columns", "delimiter", "encoding")}
        return {name: value for name, value in given.items() if value is not None}

    def first_given(self, names: Sequence[str]) -> str | None:
        """Return the first of these options that was given, or None."""
        return next((name for name in names if getattr(self, name) is not None), None)


def check_users_about(number: object) -> None:
    """Refuse what is neither None nor a number of users."""
    if number is not None and (type(number) is not int or not 1 <= number <= _MOST_USERS):
        raise InvalidArgument(f"users_about={number!r} should be a whole number from 1 to {_MOST_USERS}")


SEEN = "seen in the ratings"
"""What `dataset.json` says of a list of items that was not published by anybody."""

TEXT_OPTIONS = ("encoding", "escape", "bad_rows", "layout", "leading", "quotes")
"""Options that say what delimited text looks like, and mean nothing elsewhere."""

FILE_OPTIONS = ("missing", "format", "delimiter", "header", "columns", *TEXT_OPTIONS)
"""Options that say what a file looks like."""
