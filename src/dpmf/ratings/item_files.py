"""Files of items as they are published: columns by their usual names, any delimiter, encoding and kind of escape.

What items there are is public, so a file of them may be looked at to see how it is written. Files of ratings may not:
see docs/proofs/reading.md.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "BX-Books.csv"
>>> _ = path.write_bytes(b'"ISBN";"Book-Title"\\n"0385";"Caf\\xe9 \\\\"Noir\\\\""\\n')
>>> read_item_file(path)
ItemTable(ids=['0385'], titles=['Café "Noir"'], genres=[''], further={})
"""

from __future__ import annotations

import codecs
import csv
import gzip
import html
import io
import json
import logging
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.ratings.archive import archive_of, read_member
from dpmf.ratings.workbook import csv_of, is_workbook, rows_of

logger = logging.getLogger(__name__)
ROLES = ("item", "title", "genres")
_USUAL_NAMES: Mapping[str, Sequence[str]] = {  # the likeliest first: an `id` may be that of a line
    "item": (
        *("item", "itemid", "movie", "movieid", "book", "bookid", "isbn", "animeid", "artistid", "albumid", "trackid"),
        *("songid", "jokeid", "productid", "asin", "parentasin", "businessid", "gameid", "id"),
    ),
    "title": (
        *(
            "title",
            "name",
            "booktitle",
            "movietitle",
            "itemtitle",
            "itemname",
            "productname",
            "artistname",
            "songtitle",
        ),
        *("trackname", "originaltitle"),
    ),
    "genres": ("genres", "genre", "tags", "categories", "category"),
}
_DELIMITERS = ("::", "\t", ";", "|", ",")
_NEVER_IN_A_FIELD = ("\t", "|")
_NETFLIX = re.compile(r"\d+,(\d{4}|NULL),")
_BEHAVIOUR = re.compile(
    "rating|rated|score|vote|review|popular|rank|member|like|favou?rite|listener|viewer|reader|subscriber|follower|"
    "(view|play|user|sale|purchase|click|order|download|watch|listen)s?(count)?$|bought|sold|^(tags?|usertags?)$|"
    "stars?$|average$|^avg|(view|play|purchas|click|order|download|watch|listen)ed|watcher|seen$|alsobuy|comment|"
    "checkin|wish|want|^(owned|owners?|related|hits?|visits?)$"
)  # in the name of a column
_ENTITY = re.compile(r"&(#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z]+);")  # "Life &amp; Times"
_WITHOUT_HEADER = (".dat", ".data", ".item")  # unless their first line has the name of a column of items
_ENCODINGS = {"utf-8": "UTF-8", "cp1252": "CP-1252", "iso8859-1": "Latin-1"}
_BETWEEN_LATIN_1_AND_CP_1252 = re.compile(
    rb"[\x80-\x9f]"
)  # control characters in the one, quotes and dashes in the other


class ItemTable(NamedTuple):
    """The columns of a file of items, as texts; a title that is missing is the id.

    Attributes:
        ids, titles, genres: one for each item.
        further: other columns by their names, if they were asked for.
    """

    ids: list[str]
    titles: list[str]
    genres: list[str]
    further: dict[str, list[str]]


def read_item_file(
    path: Path,
    *,
    format: str = "csv",  # noqa: A002  (the word users know)
    delimiter: str | None = None,
    header: bool | None = None,
    columns: Mapping[str, str | int] | None = None,
    encoding: str | None = None,
    further: Literal["no", "others", "all"] = "no",
) -> ItemTable:
    """Read a file of items; see `dpmf.ratings.Items.read` for the arguments.

    Args:
        path, format, delimiter, header, columns, encoding: as there.
        further: which columns to return beside: "others" than id, title and genres, but for those that seem to tell
            what people did, or "all" but the ids.
    """
    if format not in ("csv", "netflix"):
        raise InvalidArgument(f"format={format!r} is not known: choose from csv, netflix")
    if delimiter == "":
        raise InvalidArgument("delimiter='' separates nothing: give at least one character")
    if unknown := set(columns or {}) - set(ROLES):
        raise InvalidArgument(f"items have no column {sorted(unknown)[0]!r}: they have {', '.join(ROLES)}")
    text = _decoded(path, encoding)
    if text.startswith("{"):
        text = _csv_of_objects(path, text)
    first = next((line for line in text.split("\n") if line.strip()), "").rstrip("\r")
    if format == "netflix" or (delimiter is None and header is None and not columns and _is_netflix(text)):
        rows, places, header, names = list(_netflix_rows(text)), {"item": 0, "title": 1}, False, []
    else:
        try:
            rows = list(_rows(text, delimiter or _delimiter_of(first)))
            names = [field.strip() for field in rows[0]] if rows else []
        except (csv.Error, TypeError, ValueError) as error:  # the last two: a delimiter that csv does not take
            raise InvalidArgument(f"{path} is not a CSV file: {error}") from None
        header = _has_header(path, names, columns or {}) if header is None else header
        places = _places(path, names, columns or {}) if header else _positions(columns or {}, len(names))
        rows = rows[int(header) :]
    if not rows:
        raise InvalidArgument(f"{path} lists no item: an item catalogue has one line per item")
    table = _picked(path, rows, places, first_line=2 if header else 1)
    if further == "no" or not header:
        return table
    used = (places["item"],) if further == "all" else tuple(places.values())
    others = {name or f"column {place}": place for place, name in enumerate(names) if place not in used}
    if further == "others":
        others = {name: place for name, place in others.items() if not _tells_of_people(path, name)}
    cells = {name: [row[place] if place < len(row) else "" for row in rows] for name, place in others.items()}
    return table._replace(further=cells)


def _tells_of_people(path: Path, name: str) -> bool:
    """Tell whether a column seems to sum up what people did, and warn that it is left out."""
    if not _BEHAVIOUR.search(re.sub("[ _-]", "", name).lower()):
        return False
    logger.warning(
        "%s: column %s looks like what people did, which is their data, and is left out: give it by another name if it "
        "was not made from these people's behaviour",
        path,
        name,
    )
    return True


def _decoded(path: Path, encoding: str | None) -> str:
    """Return the text of a file, in the encoding given, or in the first of the usual ones that it may be in."""
    try:
        content = path.read_bytes() if archive_of(path) is None else read_member(path)
        if path.suffix.lower() == ".gz":
            content = gzip.decompress(content)
        if is_workbook(path):
            csv_of(rows_of(path, content), table := io.StringIO())
            return table.getvalue()
    except FileNotFoundError:
        raise InvalidArgument(f"no file {path}: name the item catalogue with items=…") from None
    except (OSError, EOFError, zlib.error) as error:  # a folder, no permission, not packed
        raise InvalidArgument(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if encoding is not None:
        try:
            name = codecs.lookup(encoding).name
            # "utf-8-sig" differs in that a byte order mark is no part of the first name.
            return content.decode("utf-8-sig" if name == "utf-8" else name)
        except LookupError:
            raise InvalidArgument(f"encoding {encoding!r} is not known: give utf-8, latin-1 or cp1252") from None
        except UnicodeDecodeError as error:
            raise InvalidArgument(f"{path} is not {encoding} text ({error.reason}): give its item_encoding=…") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    name = "cp1252" if _BETWEEN_LATIN_1_AND_CP_1252.search(content) else "iso8859-1"
    try:
        text = content.decode(name)
    except UnicodeDecodeError:  # five bytes mean nothing in CP-1252
        text = content.decode(name := "iso8859-1")
    logger.warning("%s is not UTF-8 and is read as %s: item_encoding=… says otherwise", path, _ENCODINGS[name])
    return text


def _csv_of_objects(path: Path, text: str) -> str:
    """Return JSON objects, one a line, as CSV with the names of the first, and bars between what is in a list."""
    try:
        objects = [dict(json.loads(line)) for line in text.split("\n") if line.strip()]
    except (ValueError, TypeError, RecursionError):
        raise InvalidArgument(f"{path} is not a JSON object a line: fix it, or write it as CSV") from None

    def text_of(value: object) -> str:
        return "|".join(map(text_of, value)) if isinstance(value, list) else "" if value is None else str(value)

    rows = [[text_of(one.get(name)) for name in objects[0]] for one in objects]
    csv.writer(table := io.StringIO(), lineterminator="\n").writerows([list(objects[0]), *rows])
    try:
        table.getvalue().encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{path} has half a character, such as \\ud800, in a text: fix it") from None
    return table.getvalue()


def _plain(names: Sequence[str]) -> list[str]:
    return [re.sub("[ _-]", "", name).lower() for name in names]


def usual_place(role: str, names: Sequence[str]) -> int | None:
    """Return where the column of a role is, by its usual names, or None."""
    plain = _plain(names)
    return next((plain.index(name) for name in _USUAL_NAMES[role] if name in plain), None)


def _delimiter_of(line: str) -> str:
    """Return what separates the columns: what makes the first line name a column of items, or else what is in it."""
    named = (one for one in _DELIMITERS if one in line and usual_place("item", _fields(line, one)) is not None)
    return next(named, next((one for one in _DELIMITERS if one in line), ","))


def _fields(line: str, delimiter: str) -> list[str]:
    rows = list(_rows(line, delimiter))
    return [field.strip() for field in rows[0]] if rows else []


def _has_header(path: Path, names: Sequence[str], columns: Mapping[str, str | int]) -> bool:
    """Tell whether the first line names the columns: it does if they are given by name, or it has a usual one."""
    if any(isinstance(place, str) for place in columns.values()) or usual_place("item", names) is not None:
        return True
    return not columns and Path(path.name.lower().removesuffix(".gz")).suffix not in _WITHOUT_HEADER


def _places(path: Path, names: Sequence[str], columns: Mapping[str, str | int]) -> dict[str, int]:
    """Return where the columns are that a header names: as given, or else by their usual names."""
    places = {}
    for role in ROLES:
        wanted = columns.get(role)
        if isinstance(wanted, int):
            places[role] = wanted
        elif wanted is not None and wanted not in names:
            raise InvalidArgument(
                f"{path} has no column {wanted!r}: its columns are {', '.join(names)}; name one with "
                f"item_columns={{{role!r}: …}}"
            )
        elif (place := usual_place(role, names) if wanted is None else names.index(wanted)) is not None:
            places[role] = place
    if names and "item" not in places:
        raise InvalidArgument(
            f"{path} has no column of item ids by a usual name: its columns are {', '.join(names)}; "
            "name it with item_columns={'item': …}"
        )
    return places


def _positions(columns: Mapping[str, str | int], count: int) -> dict[str, int]:
    """Return given positions, or the usual order for those given by name or not at all; genres are last, or nowhere."""
    if not columns:
        return {role: place for place, role in enumerate(ROLES[: 2 if count > len(ROLES) else 3])}
    return {role: place if isinstance(place, int) else ROLES.index(role) for role, place in columns.items()}


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the fields of every line that is not empty; quotes go with a delimiter of one character only."""
    if len(delimiter) > 1:
        yield from (line.rstrip("\r").split(delimiter) for line in text.split("\n") if line.strip())
        return
    if _escapes_by_backslash(text, delimiter):
        text = re.sub(r'\\(["\\])', lambda match: '""' if match[1] == '"' else "\\", text)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if _quotes_fields(text, delimiter) else csv.QUOTE_NONE
    yield from (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting) if row)


def _quotes_fields(text: str, delimiter: str) -> bool:
    """Tell whether quotes enclose fields, as they do wherever a field may have the delimiter in it.

    Between tabs and bars they may be part of a name, "Weird Al" Yankovic: then text stands behind a second one.
    """
    if delimiter not in _NEVER_IN_A_FIELD:
        return True
    try:
        for _ in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            pass
    except csv.Error:
        return False
    return True


def _escapes_by_backslash(text: str, delimiter: str) -> bool:
    r"""Tell whether \" is a quote inside a field: it is if text follows, where a quote that ends one has no place."""
    return re.search(rf'\\"(?![{re.escape(delimiter)}"\r\n]|\Z)', text) is not None


def _is_netflix(text: str) -> bool:
    """Tell whether every line is "id,year,title", as in the `movie_titles` files of the Netflix Prize."""
    return all(_NETFLIX.match(line) for line in text.split("\n") if line.strip())


def _netflix_rows(text: str) -> Iterator[list[str]]:
    """Yield id and title (year) from "id,year,title, which may have commas"."""
    for line in text.split("\n"):
        if line.strip():
            item, year, title = [*line.rstrip("\r").split(",", 2), "", ""][:3]
            yield [item, title if year in ("", "NULL") else f"{title} ({year})"]


def _picked(path: Path, rows: list[list[str]], places: Mapping[str, int], first_line: int) -> ItemTable:
    """Return ids, titles and genres of the rows."""
    ids: dict[str, int] = {}
    for number, row in enumerate(rows, first_line):
        if places["item"] >= len(row) or not (item := row[places["item"]]):
            raise InvalidRatings(f"{path} line {number} has no item id")
        if (before := ids.setdefault(item, number)) != number:
            raise InvalidRatings(
                f"{path} has the item {item!r} in lines {before} and {number}: if this is a list of items, remove one "
                "of them, or name another column with item_columns={'item': …}"
            )

    def column(role: str, otherwise: list[str]) -> list[str]:
        place = places.get(role)
        if place is None:
            return otherwise
        return [
            row[place] if place < len(row) and row[place] else other for row, other in zip(rows, otherwise, strict=True)
        ]

    named = column("title", list(ids))
    titles = [_ENTITY.sub(lambda match: html.unescape(match[0]), title) for title in named]
    return ItemTable(list(ids), titles, column("genres", [""] * len(rows)), {})
