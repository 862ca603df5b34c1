r"""Text with a JSON object a line, as reviews of Amazon and Yelp are published.

Every line is read by itself alone, and what its fields are called is found in it, so that nobody's line changes how
another is read: see docs/proofs/reading.md.

>>> import tempfile
>>> from dpmf.ratings import Ratings
>>> path = Path(tempfile.mkdtemp()) / "reviews.json"
>>> _ = path.write_text('{"reviewerID": "A1", "asin": "0205", "overall": 5.0, "summary": "a, b"}\n')
>>> ratings = Ratings.read(path, scale=(1, 5))
>>> list(ratings.user_ids), list(ratings.catalogue.ids), ratings.values.tolist()
(['A1'], ['0205'], [5.0])
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.ratings.formats import Format
from dpmf.ratings.formats.lines import (
    BadRow,
    check_line_options,
    long_judge,
    names_of,
    no_end_of_line,
    open_rewritten,
    rewritten,
)
from dpmf.ratings.formats.relation import Relation, read_scan, select_roles
from dpmf.ratings.formats.roles import ROLES, usual_place
from dpmf.ratings.formats.text import estimate_sizes, first_line
from dpmf.ratings.store.external import stream_scan

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.options import ReadOptions
    from dpmf.ratings.store.columns import Source
    from dpmf.ratings.table import Ratings

_ENDINGS = (".json", ".jsonl", ".ndjson")
_NEEDED = ("user", "item", "rating", "count")


@dataclass(frozen=True)
class _Objects:
    """How a line is taken apart.

    Attributes:
        names: of the field of each role that is read; None for the usual ones.
    """

    names: Mapping[str, str | None]

    def fields(self, line: bytes) -> list[str]:
        """Return the text of each role's field, "" for a time that is missing, or raise `BadRow`."""
        try:
            held = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError):
            raise BadRow("no JSON") from None
        if not isinstance(held, dict):
            raise BadRow("no JSON object")
        found, keys = [], list(held)
        for role, name in self.names.items():
            if name is None and (place := usual_place(role, keys)) is not None:
                name = keys[place]
            if name not in held and role in _NEEDED:
                asked = f"no field for the {role}" if name is None else f"no field {name!r}"
                raise BadRow(asked, f", or name it with columns={{{role!r}: …}}")
            found.append(_text_of(role, held.get(name)))
        no_end_of_line(found)
        return found


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _text_of(role: str, value: object) -> str:
    """Return a value as it would stand in a CSV file."""
    if value is None:
        return ""
    if isinstance(value, bool | list | dict) or (isinstance(value, float) and role in ("user", "item")):
        raise BadRow(f"{json.dumps(value)[:20]} for the {role}")
    text = str(value)
    if not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text):
        raise BadRow(f"half a character for the {role}")  # which JSON can write, and no other text
    return text


@contextlib.contextmanager
def scan(location: Location, memory: str | None = None) -> Iterator[Relation]:
    """Open a file of JSON objects as a relation of ratings."""
    path, options = location.path, location.options
    if first_line(path).startswith("["):
        raise InvalidRatings(f"{path} is a JSON array: write one object a line, without the brackets")
    names = _names(path, options)
    places = {role: place for place, role in enumerate(names)}
    with rewritten(
        path, _Objects(names), long_judge(places, options), header=False, skip=options.bad_rows == "skip"
    ) as plain:
        chosen, counts = select_roles(places, names_of(len(places)), nothing="'1'")
        with open_rewritten(plain, memory, chosen, len(places)) as connection:
            yield Relation(connection, "staged", {}, typed=False, row="rowid", first_row=1, counts=counts)


def _names(path: Path, options: ReadOptions) -> dict[str, str | None]:
    """Return the name of each role's field: user, item, a rating or a count unless neither is wanted, and time."""
    wanted = dict(options.columns or {})
    if unknown := set(wanted) - set(ROLES):
        raise InvalidArgument(f"columns has no role {sorted(unknown)[0]!r}: the roles are {', '.join(ROLES)}")
    if {"rating", "count"} <= set(wanted):
        raise InvalidArgument("columns has a rating and a count: name the one that is to be read")
    if any(isinstance(one, int) for one in wanted.values()):
        raise InvalidArgument(f"fields of {path} have names, and no positions: give columns={{'user': …}}, …")
    value = [one for one in ("rating", "count") if one in wanted] or ([] if options.unrated else ["rating"])
    timed = [] if "timestamp" in wanted and wanted["timestamp"] is None else ["timestamp"]
    return {
        role: None if (name := wanted.get(role)) is None else str(name) for role in ("user", "item", *value, *timed)
    }


def _recognises(path: Path) -> bool:
    return Path(path.name.lower().removesuffix(".gz")).suffix in _ENDINGS and not path.is_dir()


def _read(location: Location) -> Ratings:
    check_line_options(location.options)
    return read_scan(scan, location)


def _stream(location: Location, memory: int, scratch: Path) -> AbstractContextManager[Source]:
    check_line_options(location.options)
    return stream_scan(scan, location, memory, scratch)


FORMAT = Format(
    name="json",
    recognises=_recognises,
    read=_read,
    sizes=estimate_sizes,
    stream=_stream,
    file_names=("ratings.jsonl", "ratings.json", "yelp_academic_dataset_review.json"),
    text_options=("bad_rows",),
)
