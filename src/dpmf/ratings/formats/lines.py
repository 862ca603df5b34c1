"""Text that is read line by line: in other encodings, with escapes, without its bad rows, or with a person a line.

What it holds is written again, as plain CSV for DuckDB. Every line is judged by itself alone, so that nobody's line
changes how another is read: see docs/proofs/reading.md.

>>> layout = TextLayout(delimiter=";", count=3, encoding="latin-1", escape="\\\\")
>>> layout.fields(b'"ann";"Caf\\xe9 \\\\"Noir\\\\"";"5"\\r\\n')
['ann', 'Café "Noir"', '5']
>>> layout.fields(b"ann;5\\n")
Traceback (most recent call last):
    ...
dpmf.ratings.formats.lines.BadRow: 2 columns instead of 3
"""

from __future__ import annotations

import contextlib
import csv
import glob
import gzip
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.files import scratch_folder
from dpmf.ratings.formats.database import open_file
from dpmf.ratings.formats.text import is_packed
from dpmf.ratings.options import ReadOptions
from dpmf.ratings.table import Scale

logger = logging.getLogger(__name__)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NO_RATING = ", or, if it is a value that means no rating, missing=VALUE"
_IN_QUOTES = ", or, if a backslash stands before quotes in it, escape='\\', or, if quotes are text, quotes=False"
_SHOWN = 3  # of the rows that are skipped
Judge = Callable[[int, list[str]], Iterable[Sequence[str]]]  # of the number of a line below the header, and its fields


class Layout(Protocol):
    """How a line is taken apart."""

    def fields(self, line: bytes) -> list[str]:
        """Return the fields of a line, or raise `BadRow`."""


class BadRow(InvalidRatings):
    """A line that is no row of ratings.

    Attributes:
        hint: what else there is to do than to fix it or to skip it; "" for nothing.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class TextLayout:
    """How a line is taken apart.

    Attributes:
        delimiter: what separates its fields.
        count: how many fields it has.
        encoding: in which a byte, or in UTF-8 a line, means the same whatever comes before it.
        escape: what makes a quote part of a field, beside doubling it; None for nothing.
        exact: whether it may have no more fields.
        quotes: whether they enclose fields, rather than being text.
    """

    delimiter: str
    count: int
    encoding: str
    escape: str | None = None
    exact: bool = True
    quotes: bool = True

    def fields(self, line: bytes) -> list[str]:
        """Return the fields of a line, or raise `BadRow`."""
        try:
            text = line.removesuffix(b"\n").removesuffix(b"\r").decode(self.encoding)
        except UnicodeDecodeError:
            raise BadRow(f"not {self.encoding} text", ", or give its encoding=…") from None
        if len(self.delimiter) > 1 or not self.quotes:
            fields = text.split(self.delimiter)
        else:
            try:
                rows = list(csv.reader([text], delimiter=self.delimiter, escapechar=self.escape, strict=True))
            except (csv.Error, TypeError, ValueError):
                hint = "" if self.escape else _IN_QUOTES
                raise BadRow("a quote that is not closed, or inside a field", hint) from None
            fields = rows[0] if rows else []
        if len(fields) != self.count and (self.exact or len(fields) < self.count):
            raise BadRow(f"{len(fields)} columns instead of {self.count}")
        no_end_of_line(fields)
        return fields


def no_end_of_line(fields: Sequence[str]) -> None:
    """Raise `BadRow` for a field that DuckDB would not read as it is."""
    if any("\r" in field or "\n" in field or "\0" in field for field in fields):
        raise BadRow("an end of line inside a field")


def is_read_by_line(options: ReadOptions) -> bool:
    """Tell whether options ask for what DuckDB does not do, or does by looking at other lines."""
    return bool(
        options.encoding not in (None, "utf-8")
        or options.escape
        or options.bad_rows == "skip"
        or options.layout == "wide"
    )


@contextlib.contextmanager
def rewritten(path: Path, layout: Layout, judge: Judge, *, header: bool, skip: bool) -> Iterator[Path]:
    """Yield plain CSV, all fields quoted, with the rows that `judge` makes of every line below the header.

    Args:
        path: of the text.
        layout: how its lines are taken apart.
        judge: returns the rows of a line's fields, or raises `BadRow`.
        header: whether the first line is one.
        skip: whether bad rows are left out, and told about; else they are refused.
    """
    bad: list[str] = []
    with scratch_folder("lines") as folder:
        plain, n_bad = folder / "ratings.csv", 0
        n_rows = 0
        with plain.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
            for number, line in enumerate(_lines(path), 1):
                if (number == 1 and header) or not line.strip():
                    continue
                n_rows += 1
                try:
                    writer.writerows(judge(number - int(header), layout.fields(line)))
                except BadRow as error:
                    if not skip:
                        how = f"fix it, or say bad_rows='skip'{error.hint}"
                        raise InvalidRatings(f"{path} line {number} has {error}: {how}") from None
                    n_bad += 1
                    if n_bad <= _SHOWN:
                        bad.append(f"line {number} has {error}")
        if n_bad == n_rows > 0:
            raise InvalidRatings(f"no row of {path} can be read: {'; '.join(bad)}: `dpmf data describe` looks at it")
        if n_bad:
            more = ", …" if n_bad > _SHOWN else ""
            logger.warning("%s bad rows of %s are skipped: %s%s", f"{n_bad:,}", path, "; ".join(bad), more)
        yield plain


@contextlib.contextmanager
def open_rewritten(plain: Path, memory: str | None, chosen: str, count: int) -> Iterator[Any]:
    """Yield a DuckDB connection with what is chosen of the columns of rewritten text, as the table `staged`."""
    typed = ", ".join(f"'{name}': 'VARCHAR'" for name in names_of(count))
    with open_file(plain, memory) as connection:
        connection.execute(
            f"CREATE TEMP TABLE staged AS SELECT {chosen} FROM read_csv($path, delim=',', header=false, "
            f"auto_detect=false, quote='\"', escape='\"', columns={{{typed}}})",
            {"path": glob.escape(str(plain))},
        )
        yield connection


def names_of(count: int) -> list[str]:
    """Return what DuckDB calls columns that are told by their places."""
    return [f"c{place}" for place in range(count)]


def long_judge(places: Mapping[str, int], options: ReadOptions) -> Judge:
    """Return what makes one row, of user, item, rating and perhaps time, of the fields of a line."""
    order = list(places.values())
    value = places.get("rating", places.get("count"))

    def judge(number: int, fields: list[str]) -> list[list[str]]:
        if options.bad_rows == "skip":
            for role in ("user", "item"):
                if not fields[places[role]]:
                    raise BadRow(f"no {role}")
            if value is not None:
                _check_value(fields[value], options.scale, options.missing, counts="count" in places)
        return [[fields[place] for place in order]]

    return judge


def wide_judge(user: int | None, items: Mapping[int, str], missing: float | None, scale: Scale | None) -> Judge:
    """Return what makes of a line one row for each of its ratings; without a column of users, lines are counted.

    Lines that are empty or bad count, too: who stands below them keeps their number.
    """

    def judge(number: int, fields: list[str]) -> list[tuple[str, str, str]]:
        who = str(number) if user is None else fields[user]
        if not who:
            raise BadRow("no user")
        found = []
        for place, item in items.items():
            if (text := fields[place].strip()) and not _is_missing(_number(text), missing):
                try:
                    _check_value(text, scale, missing, counts=False)
                except BadRow as error:
                    if place == 0 and error.hint:
                        error.hint += ", or, if the first column is no item, leading=1"
                    raise
                found.append((who, item, text))
        return found

    return judge


def _number(text: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise BadRow("a rating that is not a number")
    with np.errstate(over="ignore"):
        return float(np.float32(float(text)))


def _is_missing(number: float, missing: float | None) -> bool:
    return missing is not None and number == np.float32(missing)


def _check_value(text: str, scale: Scale | None, missing: float | None, *, counts: bool) -> None:
    """Raise `BadRow` for what will be refused as a rating, or a count."""
    text = text.strip()
    if not text and missing is not None and np.isnan(missing):
        return
    number = _number(text)
    if _is_missing(number, missing):
        return
    if not np.isfinite(number):
        raise BadRow("a rating that is too large", _NO_RATING)
    if counts and number <= 0:
        raise BadRow("a count that is not above 0")
    if scale is not None and not scale.lo <= number <= scale.hi:
        raise BadRow(f"a rating off the scale {scale}", _NO_RATING)


def _lines(path: Path) -> Iterator[bytes]:
    opener: Any = gzip.open if is_packed(path) else open
    try:
        with opener(path, "rb") as file:
            first = file.readline()
            yield first.removeprefix(b"\xef\xbb\xbf")
            yield from file
    except EOFError as error:
        raise InvalidRatings(f"cannot read {path}: {error}") from None


def check_line_options(options: ReadOptions) -> None:
    """Refuse options of text that are not known, or say nothing together."""
    for name, allowed in (("encoding", ENCODINGS), ("bad_rows", ("refuse", "skip")), ("layout", ("long", "wide"))):
        given = getattr(options, name)
        if given is not None and given not in allowed:
            raise InvalidArgument(f"{name}={given!r} is not known: choose from {', '.join(allowed)}")
    if options.escape is not None and (len(options.escape) != 1 or options.escape in '"\r\n'):
        raise InvalidArgument(f"escape={options.escape!r} should be one character, such as a backslash")
    if options.escape is not None and options.quotes is False:
        raise InvalidArgument("escape is for quotes that enclose fields, and quotes=False says that none do")
    if options.leading is not None:
        if options.layout != "wide":
            raise InvalidArgument(
                "leading says how many columns come before the items of a wide layout: say layout='wide'"
            )
        if type(options.leading) is not int or options.leading < 0:
            raise InvalidArgument(f"leading={options.leading!r} should be a number of columns, 0 or more")


ENCODINGS = ("utf-8", "latin-1", "cp1252")
"""Encodings of ratings: those in which no line can change what another means."""
