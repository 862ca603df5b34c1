"""The catalogue of items: ids, titles and genres. Public, and complete whether or not an item was ever rated.

>>> items = Items.of([10, 20], titles=["Heat (1995)", "Toy Story (1995)"])
>>> items.find("Heat (1995)"), items.find(20), items.find("Alien (1979)")
(0, 1, None)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from dpmf.errors import InvalidArgument
from dpmf.files import sha256_of
from dpmf.kernels.csr import CsrPattern
from dpmf.ratings.described import Description, description, matrix_description
from dpmf.ratings.ids import Ids, parse_ids
from dpmf.ratings.item_files import read_item_file
from dpmf.ratings.item_tables import pick_columns, table_columns
from dpmf.ratings.kinds import array_of

_AMBIGUOUS = -1
_NO_GENRES = ("", "(no genres listed)")  # the latter is how MovieLens spells it


def _is_text(value: object) -> bool:
    """Tell whether something is a text that can be written: without halves of characters, which JSON may have."""
    return isinstance(value, str) and (value.isascii() or value.encode(errors="ignore").decode() == value)


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
        descriptions: what else is said about items, and declared public, as numbers. A release on disk has none.
    """

    def __init__(
        self,
        ids: Ids,
        titles: Sequence[str],
        genres: Sequence[str],
        *,
        declared: bool,
        descriptions: Sequence[Description] = (),
    ) -> None:
        titles, genres = tuple(titles), tuple(genres)
        if not len(ids) == len(titles) == len(genres):
            raise InvalidArgument(f"{len(ids)} items, {len(titles)} titles, {len(genres)} genres: counts must agree")
        for what, texts in (("title", titles), ("genres", genres)):
            odd = next((place for place, text in enumerate(texts) if not _is_text(text)), None)
            if odd is not None:
                raise InvalidArgument(f"item {ids[odd]!r} has the {what} {texts[odd]!r}: give a text, or '' for none")
        if (twice := ids.first_repeated()) is not None:
            raise InvalidArgument(f"item {twice!r} is in the catalogue twice: ids must be unique")
        self.ids = ids
        self.titles = titles
        self.genres = genres
        self.declared = declared
        self.descriptions = tuple(descriptions)

    def described(self, *further: Description) -> Items:
        """Return the list with more that is said about its items, a row of numbers for each; see `with_features`."""
        for one in further:
            if len(one.columns) != len(self):
                raise InvalidArgument(f"{one.what}: {len(one.columns)} rows for {len(self)} items")
        descriptions = (*self.descriptions, *further)
        return Items(self.ids, self.titles, self.genres, declared=self.declared, descriptions=descriptions)

    def with_features(self, features: Any, what: str = "a matrix") -> Items:
        """Return the list with features of its items, which are declared public and must not tell of people.

        Args:
            features: a file, as in `Ratings.read`; or numbers, shape (n_items, n), rows in the order of the list and
                NaN for what is unknown.
            what: what a guarantee calls the numbers.
        """
        if isinstance(features, str | Path):
            from dpmf.ratings.feature_files import with_features

            return with_features(self, features)
        matrix = np.asarray(features)
        if matrix.ndim != 2 or matrix.dtype.kind not in "fiub" or len(matrix) != len(self):
            raise InvalidArgument(f"features should be a matrix of numbers with {len(self)} rows, not {matrix.shape}")
        if np.isinf(matrix).any():
            raise InvalidArgument("features should be finite, or NaN where they are unknown")
        found = matrix_description(what, sha256(np.ascontiguousarray(matrix).tobytes()).hexdigest(), matrix)
        return self if found is None else self.described(found)

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
        further: bool = False,
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
            further: whether other columns that the first line names describe the items, too: they are declared public,
                and must not be made of people's behaviour. Those whose names say so, such as ratings, are left out.
        """
        path = Path(path)
        which: Literal["others", "no"] = "others" if further else "no"
        table = read_item_file(
            path, format=format, delimiter=delimiter, header=header, columns=columns, encoding=encoding, further=which
        )
        items = cls.of(parse_ids(table.ids), table.titles, table.genres)
        found = description(path.name, sha256_of(path), table.further) if table.further else None
        return items if found is None else items.described(found)

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
