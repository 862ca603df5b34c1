"""Options that several commands share.

>>> parse_columns("user=uid,rating=2")
{'user': 'uid', 'rating': 2}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from dpmf.errors import InvalidArgument
from dpmf.ratings.formats import FORMAT_NAMES
from dpmf.ratings.options import ReadOptions

if TYPE_CHECKING:
    from dpmf.model import Release
    from dpmf.ratings import Ratings

Function = TypeVar("Function", bound=Callable[..., Any])
_MOST_DIGITS = 20  # of an amount of memory

_DATA_OPTIONS = (
    click.option("--scale", metavar="LO:HI", help="Lowest and highest possible rating, such as 1:5."),
    click.option("--items", type=click.Path(), metavar="FILE", help="Public catalogue of items, as published."),
    click.option(
        "--item-features",
        type=click.Path(),
        metavar="FILE",
        help="Public features of items, such as an embedding of titles or covers: CSV or Parquet with a column of item "
        "ids, .npy in the order of the items, or .npz. Never tags by these people, nor an embedding trained on what "
        "they did: that is their data, and voids the certificate.",
    ),
    click.option("--users-about", type=int, metavar="N", help="Approximate number of users, if it is public."),
    click.option(
        "--item-columns",
        metavar="ROLE=NAME,…",
        help="Columns of item, title, genres in --items: names, or numbers from 0; common names are recognised.",
    ),
    click.option("--item-delimiter", help="Column separator of --items; detected by default."),
    click.option(
        "--item-encoding", metavar="NAME", help="Encoding of --items: utf-8, latin-1 or cp1252; detected by default."
    ),
    click.option("--format", "format_", type=click.Choice(FORMAT_NAMES), help="File format; detected by default."),
    click.option("--delimiter", help="Column separator of a text file; '\\t' for a tab."),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line names the columns; by default it does, except in .dat and .data files.",
    ),
    click.option(
        "--columns",
        metavar="ROLE=NAME,…",
        help="Columns of user, item, rating (or count), timestamp: names, or numbers from 0. 'timestamp=' reads none.",
    ),
    click.option(
        "--duplicates",
        type=click.Choice(["last", "first", "mean", "sum", "error"]),
        help="Which of several ratings of an item by a user counts; by default the last, or the sum of counts.",
    ),
    click.option("--missing", type=float, metavar="VALUE", help="A rating that means “no rating”, such as -1."),
    click.option(
        "--encoding", metavar="NAME", help="Encoding of DATA: utf-8 (the default), latin-1 or cp1252; never guessed."
    ),
    click.option("--escape", metavar="CHARACTER", help="Character that escapes a quote in a field, such as '\\'."),
    click.option(
        "--quotes/--no-quotes", default=None, help="Whether quotes enclose fields of DATA, as they do if not given."
    ),
    click.option(
        "--bad-rows",
        type=click.Choice(["refuse", "skip"]),
        help="What to do with rows that cannot be read, each judged by itself; refuse by default.",
    ),
    click.option(
        "--layout",
        type=click.Choice(["long", "wide"]),
        help="One rating per line (long, the default), or one user per line and one item per column (wide).",
    ),
    click.option("--leading", type=int, metavar="N", help="Number of columns before the items in a wide layout."),
)


split_option = click.option(
    "--split",
    "how",
    type=click.Choice(["random", "per-user", "last", "time"]),
    default="random",
    show_default=True,
    help="How to hold out; with 'last', --holdout is a number of ratings per user, with 'time' a date.",
)
test_option = click.option(
    "--test",
    "test_file",
    type=click.Path(),
    metavar="FILE",
    help="Test on the ratings in FILE instead of holding any out; it is read as DATA is, with the same ids and scale.",
)


class Held(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.3 on
    """What --holdout takes: a number, or with --split time a date."""

    name = "number or date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Return the number, or the text of a date."""
        try:
            return float(value)
        except ValueError:
            return str(value)


def data_options(function: Function) -> Function:
    """Add the options that say how to read DATA; `read_ratings` takes them."""
    for option in reversed(_DATA_OPTIONS):
        function = option(function)
    return function


def read_ratings(data: str, *, release: Release | None = None, **given: Any) -> Ratings:
    """Read DATA as the options say; a release brings its own catalogue, and its scale unless another is named."""
    from dpmf.ratings import Ratings
    from dpmf.runs.reading import read_for

    options = parse_data_options(**given)
    if release is None:
        return Ratings.read(data, **vars(options))
    return read_for(release, data, options)


def parse_data_options(
    *,
    scale: str | None,
    delimiter: str | None,
    columns: str | None,
    format_: str | None,
    item_columns: str | None,
    item_delimiter: str | None,
    **others: Any,
) -> ReadOptions:
    """Return the options that `data_options` added, as the library takes them."""
    from dpmf.ratings import Scale

    return ReadOptions(
        scale=Scale.parse(scale) if scale else None,
        delimiter=delimiter.replace("\\t", "\t") if delimiter else None,
        columns=parse_columns(columns) if columns else None,
        format=format_,
        item_columns=parse_item_columns(item_columns) if item_columns else None,
        item_delimiter=item_delimiter.replace("\\t", "\t") if item_delimiter else None,
        **others,
    )


def parse_size(text: str) -> int:
    """Read "500MB" or "2GB" as bytes.

    >>> parse_size("2GB"), parse_size("64k")
    (2000000000, 64000)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", text.strip().lower())
    if match is None or len(match[1]) > _MOST_DIGITS:
        raise InvalidArgument(f"--memory {text!r} is not an amount of memory: write it as 500MB or 2GB")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** ("kmgt".index(unit) + 1 if unit else 0))


def parse_columns(text: str) -> dict[str, str | int | None]:
    """Read "user=uid,item=3": names, or positions from 0; "timestamp=" stands for no times."""
    columns: dict[str, str | int | None] = {}
    for part in text.split(","):
        role, equals, place = part.partition("=")
        if part.strip() == "timestamp=":
            columns["timestamp"] = None
            continue
        if not equals or not place:
            raise InvalidArgument(f"--columns {text!r} should be ROLE=NAME pairs, such as user=uid,item=isbn")
        columns[role.strip()] = int(place) if place.strip().isdecimal() else place.strip()
    return columns


def parse_item_columns(text: str) -> dict[str, str | int]:
    """Read "item=ISBN,title=1": names, or positions from 0."""
    try:
        return {role: place for role, place in parse_columns(text).items() if place is not None}
    except InvalidArgument:
        raise InvalidArgument(f"--item-columns {text!r} should be ROLE=NAME pairs, such as item=isbn,title=1") from None


def parse_settings(pairs: tuple[str, ...]) -> dict[str, str]:
    """Read name=value pairs."""
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidArgument(f"--set {pair!r} should be name=value, such as --set decay=0.5")
        if name in settings:
            raise InvalidArgument(f"--set {name} is given twice: give one value")
        settings[name] = value
    return settings


def was_given(option: str) -> bool:
    """Tell whether an option of the command that runs was given, rather than left at its default."""
    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT


def parse_holdout(holdout: float | str, how: str) -> float:
    """Return what to hold out; refuse what is no fraction (for the last ratings, no count; by time, no time)."""
    if how == "time":
        return _parse_time(holdout)
    if isinstance(holdout, str):
        raise InvalidArgument(f"--holdout {holdout} is not a number; a date goes with --split time")
    check_holdout(holdout, how)
    return holdout


def _parse_time(holdout: float | str) -> float:
    from dpmf.ratings.times import whole_time

    time = whole_time(holdout) if isinstance(holdout, str) else int(holdout) if holdout.is_integer() else None
    if not time:
        hint = ": a share of all ratings would depend on everybody's" if isinstance(holdout, float) else ""
        raise InvalidArgument(
            f"--holdout {holdout} with --split time should be the time from which on ratings are held out, such as "
            f"2003-01-01, or a whole number as in the timestamps{hint}"
        )
    return float(time)


def check_test(test_file: str | None, others: Mapping[str, str]) -> None:
    """Refuse options that say otherwise what to test on than --test.

    Args:
        test_file: what was given.
        others: these options, by the name of their argument.
    """
    for name, option in others.items():
        if test_file is not None and was_given(name):
            raise InvalidArgument(f"--test {test_file} and {option} each say what to test on: give one of them")


def check_holdout(holdout: float, how: str) -> None:
    """Refuse a hold-out that is no fraction (or, for the last ratings, no count)."""
    if how == "last":
        if holdout < 1 or not holdout.is_integer():
            raise InvalidArgument(
                f"--holdout {holdout:g} with --split last is a number of ratings per user: give 1, 2, …"
            )
    elif not 0 < holdout < 1:
        raise InvalidArgument(f"--holdout {holdout:g} is not a fraction: give a number between 0 and 1, such as 0.1")


def check_share(option: str, share: float) -> None:
    """Refuse a share of people, or of what they like, that is no fraction.

    A number of people is no share either: who is held out would depend on how many there are.
    """
    if not 0 < share < 1:
        raise InvalidArgument(f"{option} {share:g} is not a fraction: give a number between 0 and 1, such as 0.1")
