"""The catalogue of items: ids, titles and genres. Public, and complete whether or not an item was ever rated.

>>> items = Items.of([10, 20], titles=["Heat (1995)", "Toy Story (1995)"])
>>> items.find("Heat (1995)"), items.find(20), items.find("Alien (1979)")
(0, 1, None)
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpmf.errors import InvalidArgument, InvalidRatings
from dpmf.kernels.csr import CsrPattern
from dpmf.ratings.ids import Ids, parse_ids
from dpmf.ratings.kinds import array_of

_COLUMNS: Mapping[str, str | int] = {"item": "item", "title": "title", "genres": "genres"}
_AMBIGUOUS = -1
_NO_GENRES = ("", "(no genres listed)")  # the latter is how MovieLens spells it


class GenreTable(NamedTuple):
    """The genres of a catalogue, numbered.

    Attributes:
        numbers: genre → number, from 0, in the order in which the catalogue mentions them.
        of_items: a row per item: the numbers of its genres, each once.
    """

    numbers: dict[str, int]
    of_items: CsrPattern


class Items:
    """An immutable catalogue.

    Attributes:
        ids: the item ids, in the order in which item factors are stored.
        titles: one text per item; the id's own text where there is no title.
        genres: one text per item, "|" between genres, "" where unknown.
        declared: whether the list is a public one, rather than the ids met in the ratings.
    """

    def __init__(self, ids: Ids, titles: Sequence[str], genres: Sequence[str], *, declared: bool) -> None:
        titles, genres = tuple(titles), tuple(genres)
        if not len(ids) == len(titles) == len(genres):
            raise InvalidArgument(f"{len(ids)} items, {len(titles)} titles, {len(genres)} genres: counts must agree")
        for what, texts in (("title", titles), ("genres", genres)):
            odd = next((place for place, text in enumerate(texts) if not isinstance(text, str)), None)
            if odd is not None:
                raise InvalidArgument(f"item {ids[odd]!r} has the {what} {texts[odd]!r}: give a text, or '' for none")
        if (twice := ids.first_repeated()) is not None:
            raise InvalidArgument(f"item {twice!r} is in the catalogue twice: ids must be unique")
        self.ids = ids
        self.titles = titles
        self.genres = genres
        self.declared = declared

    @classmethod
    def of(
        cls,
        ids: Any,
        titles: Sequence[str] | None = None,
        genres: Sequence[str] | None = None,
        *,
        declared: bool = True,
    ) -> Items:
        """Make a catalogue from lists."""
        known = ids if isinstance(ids, Ids) else Ids(array_of(ids))
        return cls(
            known,
            [str(one) for one in known] if titles is None else titles,
            [""] * len(known) if genres is None else genres,
            declared=declared,
        )

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        format: str = "csv",  # noqa: A002  (the word users know)
        delimiter: str = ",",
        header: bool = True,
        columns: Mapping[str, str | int] = _COLUMNS,
        encoding: str = "utf-8",
    ) -> Items:
        """Read a catalogue from a delimited text file.

        Args:
            path: the file; by default CSV with a header `item,title,genres` (the last two may be absent).
            format: "csv", or "netflix" for `movie_titles` files (id,year,title with bare commas in titles).
            delimiter: what separates columns; several characters are allowed ("::").
            header: whether the first line names the columns.
            columns: where item, title and genres are: names, or positions from 0 if there is no header.
            encoding: of the text.
        """
        path = Path(path)
        if format not in ("csv", "netflix"):
            raise InvalidArgument(f"format={format!r} is not known: choose from csv, netflix")
        if not delimiter:
            raise InvalidArgument("delimiter='' separates nothing: give at least one character")
        # "utf-8-sig" differs in that a byte order mark is no part of the first name.
        codec = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        try:
            with path.open(encoding=codec, newline="") as file:
                rows = list(_netflix_rows(file) if format == "netflix" else _rows(file, delimiter))
        except FileNotFoundError:
            raise InvalidArgument(f"no file {path}: name the item catalogue with items=…") from None
        except UnicodeDecodeError as error:
            raise InvalidArgument(f"{path} is not {encoding} text ({error.reason}): give its encoding") from None
        except (OSError, LookupError) as error:  # a folder, no permission; an encoding nobody knows
            raise InvalidArgument(f"cannot read {path}: {error}") from None
        except csv.Error as error:
            raise InvalidArgument(f"{path} is not a CSV file: {error}") from None
        header = header and format == "csv"
        places = _places(path, rows.pop(0), columns) if header and rows else _positions(columns)
        if not rows:
            raise InvalidArgument(f"{path} lists no item: an item catalogue has one line per item")
        return cls.of(*_pick(path, rows, places, first_line=2 if header else 1))

    def find(self, item: object) -> int | None:
        """Return the position of an item: by its id first, then by its exact title.

        Raises:
            InvalidArgument: the title belongs to several items.
        """
        position = self.ids.position(item)
        if position is None and isinstance(item, str):
            position = self._by_title.get(item)
            if position == _AMBIGUOUS:
                raise InvalidArgument(f"{item!r} is the title of several items: use the id instead")
        return position

    @cached_property
    def _by_title(self) -> dict[str, int]:
        places: dict[str, int] = {}
        for position, title in enumerate(self.titles):
            places[title] = _AMBIGUOUS if title in places else position
        return places

    @cached_property
    def genre_table(self) -> GenreTable:
        """The genres, taken apart and numbered.

        >>> Items.of([10, 20], genres=["Crime|Drama", ""]).genre_table
        GenreTable(numbers={'Crime': 0, 'Drama': 1}, of_items=CsrPattern(2 rows))
        """
        numbers: dict[str, int] = {}
        rows = []
        for text in self.genres:
            names = dict.fromkeys(name.strip() for name in text.split("|"))
            rows.append([numbers.setdefault(name, len(numbers)) for name in names if name not in _NO_GENRES])
        indptr = np.cumsum([0, *map(len, rows)])
        return GenreTable(numbers, CsrPattern(indptr, np.array([one for row in rows for one in row], np.int32)))

    def close_titles(self, text: str, most: int = 3) -> list[str]:
        """Return a few titles that resemble a text, for error messages."""
        lowered = text.lower()
        return [title for title in self.titles if lowered in title.lower()][:most]

    def __len__(self) -> int:
        return len(self.ids)


def _rows(file: Any, delimiter: str) -> Iterator[list[str]]:
    if len(delimiter) == 1:
        yield from (row for row in csv.reader(file, delimiter=delimiter) if row)
    else:
        yield from (line.rstrip("\r\n").split(delimiter) for line in file if line.strip())


def _netflix_rows(file: Any) -> Iterator[list[str]]:
    """Yield id, title (year) and no genres from "id,year,title, which may have commas"."""
    for line in file:
        if line.strip():
            item, year, title = [*line.rstrip("\r\n").split(",", 2), "", ""][:3]
            yield [item, title if year in ("", "NULL") else f"{title} ({year})", ""]


def _places(path: Path, header: list[str], columns: Mapping[str, str | int]) -> dict[str, int]:
    names = [name.strip() for name in header]
    if columns.get("item") not in names:
        raise InvalidArgument(f"{path} has no column {columns.get('item')!r}: its columns are {', '.join(names)}")
    return {role: names.index(str(name)) for role, name in columns.items() if name in names}


def _positions(columns: Mapping[str, str | int]) -> dict[str, int]:
    """Return given positions, or the usual order for those given by name."""
    usual = list(_COLUMNS)
    return {role: place if isinstance(place, int) else usual.index(role) for role, place in columns.items()}


def _pick(
    path: Path, rows: list[list[str]], places: Mapping[str, int], first_line: int
) -> tuple[np.ndarray[Any, Any], list[str], list[str]]:
    """Return ids (integers where all of them are), titles and genres of the rows."""
    texts = []
    for number, row in enumerate(rows):
        if places["item"] >= len(row) or not row[places["item"]]:
            raise InvalidRatings(f"{path} line {number + first_line} has no item id")
        texts.append(row[places["item"]])

    def column(role: str, otherwise: list[str]) -> list[str]:
        place = places.get(role)
        if place is None:
            return otherwise
        return [
            row[place] if place < len(row) and row[place] else other for row, other in zip(rows, otherwise, strict=True)
        ]

    return parse_ids(texts), column("title", texts), column("genres", [""] * len(rows))
