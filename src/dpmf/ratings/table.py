"""The `Ratings` type: who rated what how, checked, merged and in order.

>>> ratings = Ratings.of(["ann", "bob", "ann"], ["Heat", "Heat", "Alien"], [5, 3, 4], scale=(1, 5))
>>> ratings
Ratings(3 ratings, 2 users, 2 items, scale 1:5)
>>> train, test = ratings.split(0.5, seed=1)
>>> len(train) + len(test)
3
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmf.errors import InvalidArgument
from dpmf.frames import Columnar
from dpmf.html import show_facts
from dpmf.kernels.csr import Csr
from dpmf.kernels.sort import kept_pointers
from dpmf.ratings.ids import Ids
from dpmf.ratings.items import Items
from dpmf.ratings.times import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence


MOST_COUNT = 2.0**24
"""What larger counts are cut to."""


@dataclass(frozen=True)
class Scale:
    """The lowest and the highest rating there can be.

    Attributes:
        lo, hi: the ends of the scale.
        declared: whether it was given as a public fact, rather than found in the ratings.
        counts: whether values are counts, of plays, clicks or purchases, and not ratings.
    """

    lo: float
    hi: float
    declared: bool = True
    counts: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.lo) and np.isfinite(self.hi) and self.lo < self.hi):
            raise InvalidArgument(f"scale {self.lo:g}:{self.hi:g} is not a scale: give lowest and highest, such as 1:5")

    @classmethod
    def of(cls, ends: Scale | str | Sequence[float]) -> Scale:
        """Take a scale, its text, or its lowest and highest rating."""
        if isinstance(ends, Scale):
            return ends
        if isinstance(ends, str):
            return cls.parse(ends)
        try:
            lo, hi = (float(end) for end in ends)
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgument(f"scale={ends!r} is not a scale: give two numbers, such as (1, 5)") from None
        return cls(lo, hi)

    @classmethod
    def parse(cls, text: str) -> Scale:
        """Read "1:5"."""
        lo, colon, hi = text.partition(":")
        try:
            return cls(float(lo), float(hi)) if colon else cls(0.0, 0.0)
        except ValueError:
            raise InvalidArgument(f"scale {text!r} is not a scale: write lowest:highest, such as 1:5") from None

    @classmethod
    def of_counts(cls, declared: Scale | None = None) -> Scale:
        """Return the scale of counts: as declared, or one that is the same for all data."""
        return cls(0.0, MOST_COUNT, counts=True) if declared is None else replace(declared, counts=True)

    @property
    def middle(self) -> float:
        """The midpoint, a public stand-in for a mean."""
        return (self.lo + self.hi) / 2

    @property
    def liked(self) -> float:
        """The rating from which on an item counts as liked: three quarters up the scale."""
        return self.lo + 0.75 * (self.hi - self.lo)

    def __str__(self) -> str:
        return "counts" if self == Scale.of_counts() else f"{self.lo:g}:{self.hi:g}"


@dataclass(frozen=True, eq=False, repr=False)
class Ratings(Columnar):
    """Ratings, sorted by user and item, one per (user, item).

    Attributes:
        indptr: shape (n_users + 1,), where each user's ratings begin.
        items: shape (n,), int32, positions in the catalogue.
        values: shape (n,), float32.
        timestamps: shape (n,), int64, `dpmf.ratings.times.UNKNOWN` where a rating has none; None if no rating has one.
        user_ids: the users, in the order of `indptr`.
        catalogue: all items, rated or not.
        scale: of the values.
        name: what to call the data set in reports, or "".
        users_about: about how many users there are, if that was declared as a public fact; it is never counted.
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    timestamps: NDArray[np.int64] | None
    user_ids: Ids
    catalogue: Items
    scale: Scale
    name: str = field(default="")
    users_about: int | None = None

    @classmethod
    def read(
        cls,
        source: str | Path,
        *,
        scale: Scale | tuple[float, float] | None = None,
        items: Items | str | Path | None = None,
        item_features: str | Path | None = None,
        columns: Mapping[str, str | int | None] | None = None,
        duplicates: str | None = None,
        missing: float | None = None,
        format: str | None = None,  # noqa: A002  (the word users know)
        delimiter: str | None = None,
        header: bool | None = None,
        memory: str | None = None,
        users_about: int | None = None,
        unrated: bool = False,
        item_columns: Mapping[str, str | int] | None = None,
        item_delimiter: str | None = None,
        item_encoding: str | None = None,
        encoding: str | None = None,
        escape: str | None = None,
        bad_rows: str | None = None,
        layout: str | None = None,
        leading: int | None = None,
        quotes: bool | None = None,
    ) -> Ratings:
        """Read ratings from a file, a folder, or a data set of the catalogue.

        Args:
            source: a catalogue name such as "movielens-1m" or "synthetic"; a file (CSV, TSV, Parquet, `.dat`, `u.data`,
                MATLAB, Netflix Prize or Yahoo Music) or a zip archive with one; a folder that holds one, perhaps
                with `items.csv` (the public catalogue) and `dataset.json` (public facts: name, scale, users_about); or
                a folder that `dpmf data ingest` wrote.
            scale: lowest and highest possible rating, if the source does not declare them.
            items: the public catalogue of items or its file, if the source does not come with one.
            item_features: a file with public features of the items, such as an embedding of titles: CSV or Parquet
                with a column of item ids, `.npy` with a row for each item of the list, or `.npz` with `item` and
                `features`. What these people did, and tags or embeddings made of it, is their data: a guarantee does
                not cover it here.
            columns: where user, item, rating and (optional) timestamp are: names, or positions from 0. By default the
                usual names, or without a header the order user, item, rating, timestamp. A count, how often a user had
                an item, may take the place of the rating. With {"timestamp": None}, no times are read.
            duplicates: what to do with several ratings of one item by one user; see `Ratings.of`.
            missing: a value that means "no rating"; may be NaN.
            format: "csv" for any delimited text, "parquet", "netflix", "yahoo", "matlab"; recognised if not given.
            delimiter: what separates the columns of a text file; found in its first line if not given.
            header: whether the first line of a text file names the columns; if not given, it does, except in `.dat` and
                `.data` files.
            memory: how much DuckDB may use before it spills to the disk, such as "2GB".
            users_about: about how many users there are, if that is public and the source does not declare it.
            unrated: whether a file may do without ratings, which is enough for implicit feedback. Its rows are events
                then, and a user has an item as often as there are rows that say so.
            item_columns, item_delimiter, item_encoding: of the file of items; see `Items.read`.
            encoding: of delimited text: "utf-8" (the default), "latin-1" or "cp1252". It is never guessed.
            escape: a character that makes a quote part of a field of delimited text, such as a backslash.
            bad_rows: "refuse" (the default) or "skip" rows of delimited text that cannot be read, or whose rating is no
                number or off the scale. A message has their number. Each row is judged by itself alone.
            layout: "long" (the default), a rating a line, or "wide", a user a line and an item a column. Without a
                column of users, lines are numbered from 1; without a header, so are the items.
            leading: how many columns of a wide layout come before the items.
            quotes: whether quotes enclose fields of delimited text, as they do if not given; elsewhere they are text.
        """
        from dpmf.ratings.location import locate
        from dpmf.ratings.options import ReadOptions

        options = ReadOptions(
            scale=None if scale is None else Scale.of(scale),
            items=items,
            item_features=item_features,
            columns=columns,
            duplicates=duplicates,
            missing=missing,
            format=format,
            delimiter=delimiter,
            header=header,
            memory=memory,
            users_about=users_about,
            unrated=unrated,
            item_columns=item_columns,
            item_delimiter=item_delimiter,
            item_encoding=item_encoding,
            encoding=encoding,
            escape=escape,
            bad_rows=bad_rows,
            layout=layout,
            leading=leading,
            quotes=quotes,
        )
        return locate(source, options).read()

    @classmethod
    def of(
        cls,
        data: Any,
        item_ids: Any = None,
        values: Any = None,
        timestamps: Any = None,
        *,
        scale: Scale | tuple[float, float] | None = None,
        items: Any = None,
        columns: Mapping[str, str | int | None] | None = None,
        duplicates: str | None = None,
        missing: float | None = None,
        counts: bool = False,
    ) -> Ratings:
        """Make ratings from a table, a sparse matrix, or columns in memory.

        Args:
            data: a pandas, polars or Arrow table; an array of rows user, item, rating and perhaps timestamp; a
                scipy.sparse matrix (ids are row and column numbers); or the user of every rating, with items and values
                as the next two arguments.
            item_ids, values, timestamps: the other columns, if `data` holds the users.
            scale: lowest and highest possible rating; the extremes of the data if not given (not for private runs).
            items: the public catalogue of items, its ids, its file, or a table of it, see `Items.of`; those met in the
                data if not given (not for private runs).
            columns: names of the columns of a table, or positions, by role: user, item, rating or count, timestamp.
            duplicates: what to do with several ratings of one item by one user: keep the "last" (the default) or the
                "first" (by timestamp if there are timestamps, else by row), their "mean", or raise an "error". Counts
                also have a "sum", which is their default.
            missing: a value that means "no rating"; may be NaN.
            counts: whether values say how often a user had an item, not how they rated it. Without values, every row
                is an event and counts once. A table whose column is called a count has counts anyway.
        """
        from dpmf.ratings.assembly import assemble
        from dpmf.ratings.formats.frames import columns_of

        return assemble(
            columns_of(data, item_ids, values, timestamps, columns, counts=counts),
            scale=scale,
            items=catalogue_of(data, items),
            duplicates=duplicates,
            missing=missing,
        )

    def split(self, test: float = 0.1, *, seed: int = 0, how: str = "random") -> tuple[Ratings, Ratings]:
        """Return training and test ratings; see `dpmf.ratings.split.choose_test` for the ways to split."""
        from dpmf.ratings.split import choose_test

        mask = choose_test(self, test, seed=seed, how=how)
        return self.select(~mask), self.select(mask)

    def select(self, mask: NDArray[np.bool_]) -> Ratings:
        """Return the ratings marked; all users and items stay, with or without ratings."""
        return replace(
            self,
            indptr=kept_pointers(self.indptr, mask),
            items=self.items[mask],
            values=self.values[mask],
            timestamps=None if self.timestamps is None else self.timestamps[mask],
        )

    def of_user(self, user: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the items and values of the user at this position."""
        part = slice(self.indptr[user], self.indptr[user + 1])
        return self.items[part], self.values[part]

    @property
    def csr(self) -> Csr:
        """The ratings as kernels take them; shares memory with this object."""
        return Csr(self.indptr, self.items, self.values)

    @property
    def users(self) -> NDArray[np.int32]:
        """The user of every rating, shape (n,)."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), np.diff(self.indptr))

    @property
    def n_users(self) -> int:
        """The number of users, those without a rating included."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """The number of items in the catalogue."""
        return len(self.catalogue)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Ratings({len(self):,} ratings, {self.n_users:,} users, {self.n_items:,} items, scale {self.scale})"

    def _repr_html_(self) -> str:
        """Return sizes, and what is declared: ratings do not belong in a notebook that others see."""
        found = "found in the ratings: declare it for a private run"
        facts = {
            "ratings": len(self),
            "users": self.n_users,
            "items": f"{self.n_items:,}, {'declared' if self.catalogue.declared else found}",
            "scale": f"{self.scale}, {'declared' if self.scale.declared else found}",
            "timestamps": "no" if self.timestamps is None else "yes",
        }
        return show_facts(f"Ratings {self.name}".strip(), facts)

    def to_columns(self) -> dict[str, Any]:
        """Return user, item, rating (or count), and timestamp if there is one: `Ratings.of` takes them again."""
        value = "count" if self.scale.counts else "rating"
        columns = {
            "user": self.user_ids.array[self.users],
            "item": self.catalogue.ids.array[self.items],
            value: self.values,
        }
        if self.timestamps is None:
            return columns
        times: NDArray[Any] = self.timestamps
        if (unknown := times == UNKNOWN).any():
            times = times.astype(object)
            times[unknown] = None
        return {**columns, "timestamp": times}


def catalogue_of(data: Any, items: Any) -> Items | None:
    """Return the catalogue as given, or that of a sparse matrix: its columns are all the items there are."""
    if isinstance(items, Items):
        return items
    if isinstance(items, str | Path):
        return Items.read(items)
    if items is not None:
        return Items.of(items)
    if hasattr(data, "tocoo"):
        return Items.of(np.arange(data.shape[1]), declared=False)
    return None
