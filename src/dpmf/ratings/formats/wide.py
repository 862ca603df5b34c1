"""Text with a user a line and an item a column, as Jester is published.

>>> import tempfile
>>> from dpmf.ratings import Ratings
>>> path = Path(tempfile.mkdtemp()) / "jester.csv"
>>> _ = path.write_text("2,-7.82,99,9.5\\n1,99,0.5,99\\n")
>>> ratings = Ratings.read(path, layout="wide", header=False, leading=1, missing=99, scale=(-10, 10))
>>> ratings.users.tolist(), list(ratings.catalogue.ids), ratings.items.tolist(), ratings.values.tolist()
([0, 0, 1], ['1', '2', '3'], [0, 2, 1], [-7.820000171661377, 9.5, 0.5])
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.ratings.formats.fields import (
    check_delimiters,
    check_header,
    delimiters_in,
    has_header_by_name,
    is_number,
    split_fields,
)
from dpmf.ratings.formats.lines import TextLayout, open_rewritten, rewritten, wide_judge
from dpmf.ratings.formats.relation import Relation
from dpmf.ratings.formats.roles import usual_place
from dpmf.ratings.formats.text import first_line
from dpmf.ratings.items import Items

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.options import ReadOptions


class _Matrix(NamedTuple):
    """What the first line and the options say: the layout, whether there is a header, and who and what is where."""

    layout: TextLayout
    header: bool
    user: int | None
    items: dict[int, str]


@contextlib.contextmanager
def scan_wide(location: Location, memory: str | None = None) -> Iterator[Relation]:
    """Open a wide text file as a relation of ratings."""
    path, options = location.path, location.options
    matrix, skip = _matrix_of(path, options), options.bad_rows == "skip"
    judge = wide_judge(matrix.user, matrix.items, options.missing, options.scale)
    with (
        rewritten(path, matrix.layout, judge, header=matrix.header, skip=skip) as plain,
        open_rewritten(plain, memory, "c0 AS user, c1 AS item, c2 AS rating", 3) as connection,
    ):
        yield Relation(connection, "staged", {}, typed=False, row="rowid", first_row=1)


def with_columns_as_items(location: Location) -> Location:
    """Return a location whose items are the columns of a wide file, rated or not, unless a catalogue is given."""
    options = location.options
    if options.layout != "wide" or options.items is not None:
        return location
    items = Items.of(list(_matrix_of(location.path, options).items.values()), declared=False)
    return replace(location, options=replace(options, items=items))


def _matrix_of(path: Path, options: ReadOptions) -> _Matrix:
    encoding = options.encoding or "utf-8"
    first = first_line(path, encoding)
    delimiters = [options.delimiter] if options.delimiter else delimiters_in(path, first, 2)
    fields = split_fields(path, first, delimiters[0], options.escape, options.quotes)
    header = options.header
    if header is None:
        header = has_header_by_name(path)
        check_header(path, header=header, fits=header != all(is_number(field) for field in fields if field))
    check_delimiters(path, delimiters, header=header)
    if options.bad_rows == "skip" and not header:
        raise InvalidArgument(
            f"{path} has no header, so that its first line may be a bad one: leave out bad_rows='skip'"
        )
    user, leading = _user_of(path, fields, options, header=header), options.leading or 0
    if options.bad_rows == "skip" and user is None:  # a bad line may be two, which would give others another number
        raise InvalidArgument(
            f"{path} has no column of users, whose lines are counted: leave out bad_rows='skip', or name "
            "columns={'user': …}"
        )
    places = [place for place in range(leading, len(fields)) if place != user]
    if not places:
        raise InvalidRatings(f"{path} has {len(fields)} columns, none of which is left for items")
    items = {place: fields[place] if header else str(number) for number, place in enumerate(places, 1)}
    if "" in items.values() or len(set(items.values())) < len(items):
        raise InvalidRatings(f"the first line of {path} should name every item once: fix it")
    layout = TextLayout(delimiters[0], len(fields), encoding, options.escape, quotes=options.quotes is not False)
    return _Matrix(layout, header, user, items)


def _user_of(path: Path, names: list[str], options: ReadOptions, *, header: bool) -> int | None:
    """Return where the ids of users are, or None: then lines are counted."""
    wanted = dict(options.columns or {})
    if set(wanted) - {"user"}:
        raise InvalidArgument(
            f"columns names {', '.join(sorted(wanted))}: in a wide layout there is only a user to name"
        )
    place = wanted.get("user")
    if isinstance(place, str) and header:
        place = names.index(place) if place in names else -1
    elif place is None:
        return usual_place("user", names) if header else None
    if not isinstance(place, int) or not 0 <= place < len(names):
        raise InvalidRatings(f"{path} has no column {wanted['user']!r} for users: it has {len(names)} columns")
    return place
