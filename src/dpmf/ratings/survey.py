r"""A look at a file of ratings, for its holder: how it seems to be written, and the options that say so.

A run never looks: what is proposed here counts once somebody has read and declared it; see docs/proofs/reading.md.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "ratings.csv"
>>> _ = path.write_text("userId,movieId,rating\n1,7,0.5\n2,7,4.5\n")
>>> found = survey(path, ReadOptions())
>>> str(found.scale), found.seen, found.rows
('0.5:5', (0.5, 4.5), 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import DpmfError
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.formats.fields import delimiters_in, split_fields
from dpmf.ratings.formats.matlab import matrix_in, places_in
from dpmf.ratings.formats.roles import ROLES, find_columns
from dpmf.ratings.formats.text import first_line
from dpmf.ratings.location import Location, locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.table import Ratings, Scale
from dpmf.ratings.written import MEANS_NOTHING, written_as

_MANY_ZEROS = 0.1
_FAR = 5  # times above all others
_USUAL_SCALES = ((1, 5), (0.5, 5), (0, 5), (1, 10), (0, 10), (-10, 10), (0, 100))
_COUNTED = ("user", "item", "count", "timestamp")  # columns without names
_SAMPLE = 3  # rows


@dataclass(frozen=True)
class Survey:
    """What a file of ratings seems to hold.

    Attributes:
        options: how it is read.
        ratings: what is read then.
        scale: as declared if that fits, or else the usual one that fits best; None for counts.
        seen: the lowest and the highest value in it.
        fits: whether all values are on the scale that was declared; None if none was.
        rows: how many there are, before duplicates and missing ratings are left out.
        duplicates: how many are left out, or added up, because the same user has the same item again.
        zeros: the share of rows whose value is 0.
        sample: the first rows, as user, item and value.
        separator: of columns of text, None elsewhere.
        columns: what they are called, or their places, by role; None where that is not asked.
    """

    options: ReadOptions
    ratings: Ratings
    scale: Scale | None
    seen: tuple[float, float]
    fits: bool | None
    rows: int
    duplicates: int
    zeros: float
    sample: list[tuple[str, str, float]]
    separator: str | None
    columns: dict[str, str] | None


@dataclass(frozen=True)
class _Watched(Location):
    """A location that keeps the columns that were read there."""

    kept: list[Columns] = field(default_factory=list)

    def assemble(self, columns: Columns) -> Ratings:
        self.kept.append(columns)
        return super().assemble(columns)


def survey(path: Path, options: ReadOptions) -> Survey:
    """Look at a file and read it without its scale; what `options` say is taken as given."""
    format_name = locate(path, options).format.name
    is_text = format_name == "csv"
    if is_text:
        options = written_as(path, options)
    plain = replace(options, scale=None)
    tries = [plain, replace(plain, unrated=True)]
    if options.missing is None:  # counts of 0
        tries.append(replace(plain, missing=0.0))
    if is_text and options.bad_rows is None:
        tries.append(_without_bad_rows(path, plain))
    elif format_name == "json" and options.bad_rows is None:
        tries.append(replace(plain, bad_rows="skip"))
    columns, ratings, read = _first_that_is_read(path, tries)
    unnamed = is_text and read.columns is None and not read.header and read.layout is None
    if unnamed and options.scale is None and _are_counts(columns.values):
        places = {role: place for place, role in enumerate(_COUNTED[: len(_first_fields(path, read))])}
        columns, ratings, read = _first_that_is_read(path, [replace(read, columns=places), read])
    options = replace(read, scale=options.scale)
    values = columns.values
    zeros = float(np.mean(values == 0))
    if options.missing is None and not columns.counts and (means_nothing := _missing_in(values)) is not None:
        options, read = replace(options, missing=means_nothing), replace(read, missing=means_nothing)
        columns, ratings, read = _first_that_is_read(path, [read])
    rated = values if options.missing is None else values[values != np.float32(options.missing)]
    known = len(rated) if read.items is None else int(np.sum(_listed(columns, ratings, options)))
    lo, hi = float(rated.min()), float(rated.max())
    declared = options.scale
    fits = None if declared is None else bool(declared.lo <= lo and hi <= declared.hi)
    return Survey(
        options=options,
        ratings=ratings,
        scale=None if columns.counts else declared if fits else usual_scale(lo, hi),
        seen=(lo, hi),
        fits=fits,
        rows=len(values),
        duplicates=known - len(ratings),
        zeros=zeros,
        sample=[
            (str(columns.user_ids[int(user)]), str(columns.item_ids[int(item)]), float(value))
            for user, item, value in zip(
                columns.user_codes[:_SAMPLE], columns.item_codes[:_SAMPLE], values[:_SAMPLE], strict=True
            )
        ],
        separator=_separator(path, options) if is_text else None,
        columns=_names(path, format_name, options),
    )


def _first_that_is_read(path: Path, tries: Sequence[ReadOptions]) -> tuple[Columns, Ratings, ReadOptions]:
    """Return what is read with the first options that can be read with; the first error counts if there are none."""
    first: DpmfError | None = None
    for options in tries:
        found = locate(path, options)
        watched = _Watched(**{name: getattr(found, name) for name in Location.__dataclass_fields__})
        try:
            ratings = watched.read()
            return watched.kept[0], ratings, options
        except DpmfError as error:
            first = first or error
    assert first is not None
    raise first


def _are_counts(values: NDArray[np.float32]) -> bool:
    """Tell whether values without a name count something: whole numbers from 1 on, further than any usual scale."""
    return bool(values.min() >= 1 and values.max() > _USUAL_SCALES[-1][1] and not np.any(values % 1))


def _missing_in(values: NDArray[np.float32]) -> float | None:
    """Return what seems to mean "no rating": a value of its own, apart from the others; many zeros below 1, too."""
    for value in MEANS_NOTHING:
        same = values == value
        rest = values[~same]
        if not same.any() or not len(rest):
            continue
        lo, hi = float(rest.min()), float(rest.max())
        if (value == 0 and lo >= 1 and same.mean() > _MANY_ZEROS) or (value < 0 <= lo) or value > _FAR * max(hi, 1):
            return value
    return None


def _without_bad_rows(path: Path, options: ReadOptions) -> ReadOptions:
    """Return options that skip bad rows; what the first line may not tell without a header is told by them."""
    options = replace(options, bad_rows="skip")
    if options.header or options.columns:
        return options
    count = len(_first_fields(path, options))
    return replace(options, columns={role: place for place, role in enumerate(ROLES[: min(count, 4)])})


def _separator(path: Path, options: ReadOptions) -> str:
    return options.delimiter or delimiters_in(path, first_line(path, options.encoding or "utf-8"), 2)[0]


def _first_fields(path: Path, options: ReadOptions) -> list[str]:
    line = first_line(path, options.encoding or "utf-8")
    return split_fields(path, line, _separator(path, options), options.escape, options.quotes)


def _names(path: Path, format_name: str, options: ReadOptions) -> dict[str, str] | None:
    """Return what the columns that are read are called, or else their places; None where nothing asks for them."""
    if format_name == "matlab":
        return {role: str(place) for role, place in places_in(path, matrix_in(path).shape[1], options).items()}
    if format_name != "csv" or options.layout == "wide":
        return None
    fields = _first_fields(path, options)
    names = fields if options.header else None
    places = find_columns(path, names, len(fields), options.columns, unrated=options.unrated)
    return {role: str(place) if names is None else names[place] for role, place in places.items()}


def _listed(columns: Columns, ratings: Ratings, options: ReadOptions) -> Any:
    """Return which rows are ratings of items in the catalogue."""
    listed = ratings.catalogue.ids.encode(columns.item_ids.array)[columns.item_codes] >= 0
    return listed if options.missing is None else listed & (columns.values != np.float32(options.missing))


def usual_scale(lo: float, hi: float) -> Scale:
    """Return the narrowest usual scale that holds all values, or else their own range."""
    fitting = [ends for ends in _USUAL_SCALES if ends[0] <= lo and hi <= ends[1]]
    return Scale(*min(fitting, key=lambda ends: ends[1] - ends[0])) if fitting else Scale(lo, hi if hi > lo else lo + 1)
