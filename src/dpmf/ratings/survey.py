r"""A look at a file of ratings, for its holder: how it seems to be written, and the options that say so.

A run never looks: what is proposed here counts once somebody has read and declared it; see docs/proofs/reading.md.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "jester.csv"
>>> _ = path.write_text("2,-7.82,99,9.5,99\n1,99,0.5,99,99\n")
>>> found = written_as(path, ReadOptions())
>>> found.layout, found.leading, found.missing, found.header
('wide', 1, 99.0, False)
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import DpmfError, InvalidRatings
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.formats.fields import delimiters_in, is_number, split_fields
from dpmf.ratings.formats.matlab import matrix_in, places_in
from dpmf.ratings.formats.roles import ROLES, find_columns, has_usual_names
from dpmf.ratings.formats.text import first_line, is_packed, refuse_binary
from dpmf.ratings.location import Location, locate
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.table import Ratings, Scale

_DELIMITERS = ("::", "\t", ";", ",", "|", " ")
_WITHOUT_QUOTES = ("\t", "|", " ")  # between which a quote may be part of a name
_KNOWN_COLUMNS = {  # of published files without a header, in which a name stands where a rating would
    "usersha1-artmbid-artname-plays.tsv": {"user": 0, "item": 2, "count": 3},
    "userid-timestamp-artid-artname-traid-traname.tsv": {"user": 0, "item": 3, "timestamp": 1},
}
_MOSTLY = 0.9
_LOOKED_AT = 200  # lines
_CHUNK = 1 << 20
_MEANS_NOTHING = (99.0, -1.0, 0.0, 999.0, -99.0)  # what publishers write for "not rated"
_MANY_ZEROS = 0.1
_FAR = 5  # times above all others
_USUAL_SCALES = ((1, 5), (0.5, 5), (0, 5), (1, 10), (0, 10), (-10, 10), (0, 100))
_SAMPLE = 3  # rows
_MOST_SHOWN, _MOST_LETTERS = 12, 24  # columns, and of what is in each
_ESCAPED = re.compile(r'\\"(?!["\r\n;,\t|]|$)', re.MULTILINE)


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
    columns, ratings, read = _first_that_is_read(path, tries)
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
        scale=None if columns.counts else declared if fits else _usual_scale(lo, hi),
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


def written_as(path: Path, options: ReadOptions) -> ReadOptions:
    """Return options for delimited text, completed by how a file seems to be written where that must be said."""
    refuse_binary(path)
    content = _content(path)
    if b"\0" in content:
        raise InvalidRatings(f"{path} is not text: save it as CSV, or name its format")
    encoding = options.encoding or _encoding_of(content)
    text = content.decode(encoding, "replace").removeprefix("\ufeff")
    lines = [line.rstrip("\r") for line in text[: _LOOKED_AT << 12].split("\n")[:_LOOKED_AT] if line.strip()]
    if not lines:
        raise InvalidRatings(f"{path} is empty or begins with an empty line: it should hold one rating per line")
    escape = options.escape or ("\\" if _ESCAPED.search(text) else None)
    delimiter = options.delimiter or _delimiter_of(path, lines, escape)
    quotes = options.quotes
    if quotes is None and delimiter in _WITHOUT_QUOTES and not _encloses_fields(text, delimiter, escape):
        quotes, escape = False, None
    rows = [_fields_of(path, line, delimiter, escape, quotes) for line in lines]
    header = _is_header(rows) if options.header is None else options.header
    found = replace(options, encoding=None if encoding == "utf-8" else encoding, escape=escape, quotes=quotes)
    found = replace(found, header=header)
    # In the names of columns, which are nobody's, a delimiter is found.
    named = header and options.delimiter is None and delimiter != " " and delimiters_in(path, lines[0], 2)[0]
    found = replace(found, delimiter=None if named == delimiter else delimiter)
    if found.columns is None and not header:
        found = replace(found, columns=_KNOWN_COLUMNS.get(path.name))
    if found.columns or (header and has_usual_names(rows[0])):
        return found
    below = rows[int(header) :]
    if options.layout == "wide" or (options.layout is None and len(rows[0]) > 4 and _is_numeric(below)):
        return _wide(found, below)
    if len(rows[0]) < 2:
        raise InvalidRatings(f"{path} is not a table of ratings: its first line has one column")
    if options.layout is None and not header and (len(rows[0]) > 4 or not _is_numeric([row[2:3] for row in below])):
        shown = ", ".join(f"{place}: {text[:_MOST_LETTERS]}" for place, text in enumerate(rows[0][:_MOST_SHOWN]))
        raise InvalidRatings(
            f"{path} has {len(rows[0])} columns without names ({shown}): say which they are, as in --columns "
            "user=0,item=1,rating=2, or count=2 for counts, or without either for events"
        )
    return found


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


def _missing_in(values: NDArray[np.float32]) -> float | None:
    """Return what seems to mean "no rating": a value of its own, apart from the others; many zeros below 1, too."""
    for value in _MEANS_NOTHING:
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


def _content(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes()) if is_packed(path) else path.read_bytes()
    except (OSError, EOFError) as error:
        raise InvalidRatings(f"cannot read {path}: {error}") from None


def _encoding_of(content: bytes) -> str:
    try:
        codecs.decode(content, "utf-8")
    except UnicodeDecodeError:
        return "cp1252" if re.search(rb"[\x80-\x9f]", content) else "latin-1"
    return "utf-8"


def _delimiter_of(path: Path, lines: Sequence[str], escape: str | None) -> str:
    """Return what takes most lines apart into the same number of columns, of which there are two at the least."""

    def score(delimiter: str) -> tuple[bool, float]:
        counts = Counter(len(_fields_of(path, line, delimiter, escape)) for line in lines)
        number, agreeing = counts.most_common(1)[0]
        named = has_usual_names(_fields_of(path, lines[0], delimiter, escape))
        return named, agreeing / len(lines) if number > 1 else 0.0

    best = max(_DELIMITERS, key=score)
    return best * 2 if best == "\t" and all("\t" not in line.replace("\t\t", "") for line in lines) else best


def _fields_of(path: Path, line: str, delimiter: str, escape: str | None, quotes: bool | None = None) -> list[str]:
    try:
        return split_fields(path, line, delimiter, escape, quotes)
    except InvalidRatings:
        return []


def _encloses_fields(text: str, delimiter: str, escape: str | None) -> bool:
    """Tell whether quotes enclose fields, rather than being part of names, such as "Weird Al" Yankovic."""
    quoted = (line for line in text.splitlines() if '"' in line)
    try:
        for _ in csv.reader(quoted, delimiter=delimiter, escapechar=escape, strict=True):
            pass
    except csv.Error:
        return False
    return True


def _is_numeric(rows: Sequence[list[str]]) -> bool:
    """Tell whether cells hold numbers, mostly."""
    filled = [is_number(cell) for row in rows for cell in row if cell]
    return bool(filled) and sum(filled) >= _MOSTLY * len(filled)


def _is_header(rows: Sequence[list[str]]) -> bool:
    """Tell whether a first line has names of columns, or texts in columns of which the next line has numbers."""
    if has_usual_names(rows[0]) or len(rows) < 2:
        return has_usual_names(rows[0])
    return any(one and is_number(two) and not is_number(one) for one, two in zip(rows[0], rows[1], strict=False))


def _wide(options: ReadOptions, rows: Sequence[list[str]]) -> ReadOptions:
    """Return options for a user a line: what means "not rated", and whether the first column counts the others."""
    cells = Counter(float(cell) for row in rows for cell in row[1:] if is_number(cell))
    missing = options.missing
    if missing is None and cells:
        rest = [value for value in cells if value not in _MEANS_NOTHING]
        often = [value for value in _MEANS_NOTHING if cells[value] and rest and not min(rest) <= value <= max(rest)]
        missing = max(often, key=lambda value: cells[value], default=None)
    leading = options.leading
    if leading is None:
        rated = [
            sum(bool(cell) and (not is_number(cell) or float(cell) != missing) for cell in row[1:]) for row in rows
        ]
        counted = [row[0] == str(number) for row, number in zip(rows, rated, strict=True)]
        leading = 1 if counted and all(counted) else None
    return replace(options, layout="wide", missing=missing, leading=leading)


def _usual_scale(lo: float, hi: float) -> Scale:
    """Return the narrowest usual scale that holds all values, or else their own range."""
    fitting = [ends for ends in _USUAL_SCALES if ends[0] <= lo and hi <= ends[1]]
    return Scale(*min(fitting, key=lambda ends: ends[1] - ends[0])) if fitting else Scale(lo, hi if hi > lo else lo + 1)
