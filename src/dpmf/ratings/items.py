"""The catalogue of items: ids, titles and genres. Public, and complete whether or not an item was ever rated.

>>> items = Items.of([10, 20], titles=["Heat (1995)", "Toy Story (1995)"])
>>> items.find("Heat (1995)"), items.find(20), items.find("Alien (1979)")
(0, 1, None)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpmf.errors import InvalidArgument
from dpmf.kernels.csr import CsrPattern
from dpmf.ratings.ids import Ids, parse_ids
from dpmf.ratings.item_files import read_item_file
from dpmf.ratings.item_tables import pick_columns, table_columns
from dpmf.ratings.kinds import array_of

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
        """Make a catalogue from lists, or from a table.

        Args:
            ids: the items; or a pandas, polars or Arrow table, whose columns have the usual names (`item`, `movieId`,
                …, `title`, `name`, …, `genres`, …). A title that is missing is the id.
            titles, genres: one for each item, if `ids` is no table.
            declared: whether the list is a public one.
        """
        if (table := table_columns(ids)) is not None:
            if titles is not None or genres is not None:
                raise InvalidArgument("a table of items has its own titles and genres: give the table alone")
            ids, titles, genres = pick_columns(f"the {type(ids).__name__}", table)
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
        delimiter: str | None = None,
        header: bool | None = None,
        columns: Mapping[str, str | int] | None = None,
        encoding: str | None = None,
    ) -> Items:
        """Read a catalogue from a delimited text file.

        What is not given is found in the file: what items there are is public.

        Args:
            path: the file.
            format: "csv", or "netflix" for `movie_titles` files (id,year,title with bare commas in titles).
            delimiter: what separates columns; several characters are allowed ("::").
            header: whether the first line names the columns; if not given, it does if columns are given by name, or if
                it has a usual name of a column of items.
            columns: where item, title and genres are: names, or positions from 0. By default the usual names (`item`,
                `movieId`, `ISBN`, …, `title`, `name`, …), or without a header this order.
            encoding: of the text; if not given, UTF-8, or else CP-1252 or Latin-1, which a warning tells.
        """
        table = read_item_file(
            Path(path), format=format, delimiter=delimiter, header=header, columns=columns, encoding=encoding
        )
        return cls.of(parse_ids(table.ids), table.titles, table.genres)

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
