r"""How a text file of ratings seems to be written: separator, header, encoding, quotes and layout.

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
from dataclasses import replace
from pathlib import Path

from dpmf.errors import InvalidRatings
from dpmf.ratings.formats.fields import delimiters_in, is_number, split_fields
from dpmf.ratings.formats.roles import has_usual_names
from dpmf.ratings.formats.text import is_packed, refuse_binary
from dpmf.ratings.options import ReadOptions

MEANS_NOTHING = (99.0, -1.0, 0.0, 999.0, -99.0)
"""What publishers write for "not rated"."""
_DELIMITERS = ("::", "\t", ";", ",", "|", " ")
_WITHOUT_QUOTES = ("\t", "|", " ")  # between which a quote may be part of a name
_KNOWN_COLUMNS = {  # of published files without a header, in which a name stands where a rating would
    "usersha1-artmbid-artname-plays.tsv": {"user": 0, "item": 2, "count": 3},
    "userid-timestamp-artid-artname-traid-traname.tsv": {"user": 0, "item": 3, "timestamp": 1},
}
_MOSTLY = 0.9
_LOOKED_AT = 200  # lines
_ESCAPED = re.compile(r'\\"(?!["\r\n;,\t|]|$)', re.MULTILINE)
_MOST_SHOWN, _MOST_LETTERS = 12, 24  # columns, and of what is in each


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
        rest = [value for value in cells if value not in MEANS_NOTHING]
        often = [value for value in MEANS_NOTHING if cells[value] and rest and not min(rest) <= value <= max(rest)]
        missing = max(often, key=lambda value: cells[value], default=None)
    leading = options.leading
    if leading is None:
        rated = [
            sum(bool(cell) and (not is_number(cell) or float(cell) != missing) for cell in row[1:]) for row in rows
        ]
        counted = [row[0] == str(number) for row, number in zip(rows, rated, strict=True)]
        leading = 1 if counted and all(counted) else None
    return replace(options, layout="wide", missing=missing, leading=leading)
