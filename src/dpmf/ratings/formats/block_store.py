"""The folder that `dpmf data ingest` writes: checked once, opened at once, and streamed without sorting."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.errors import InvalidArgument
from dpmf.ratings.assembly import assemble
from dpmf.ratings.formats import Format, Sizes
from dpmf.ratings.formats.columns import Columns
from dpmf.ratings.options import FILE_OPTIONS
from dpmf.ratings.store.columns import RatingsOnDisk, is_store
from dpmf.ratings.times import Times

if TYPE_CHECKING:
    from dpmf.ratings.location import Location
    from dpmf.ratings.table import Ratings


def _read(location: Location) -> Ratings:
    """Return the stored ratings, on another scale or for another catalogue of items if one is given."""
    _refuse(location, FILE_OPTIONS)
    if location.options.items is None:
        _refuse(location, ("item_features",))
    ratings, items = RatingsOnDisk.open(location.path).load(), location.read_items()
    if location.options.scale is None and items is None:
        return ratings
    columns = Columns(
        user_ids=ratings.user_ids,
        user_codes=ratings.users,
        item_ids=ratings.catalogue.ids,
        item_codes=ratings.items,
        values=ratings.values,
        times=None if ratings.timestamps is None else Times(ratings.timestamps),
        counts=ratings.scale.counts,
    )
    found = assemble(
        columns, scale=location.options.scale or ratings.scale, items=items or ratings.catalogue, name=ratings.name
    )
    return replace(found, users_about=ratings.users_about)


def _sizes(location: Location) -> Sizes:
    store = RatingsOnDisk.open(location.path)
    return Sizes(len(store), len(store.user_ids), len(store.catalogue))


@contextlib.contextmanager
def _stream(location: Location, memory: int, scratch: Path) -> Iterator[RatingsOnDisk]:
    _refuse(location, ("scale", "items", "item_features", "users_about", *FILE_OPTIONS))
    yield RatingsOnDisk.open(location.path)


def _refuse(location: Location, names: Sequence[str]) -> None:
    """Refuse what can no longer be said about ratings that have been ingested."""
    if (name := location.options.first_given(names)) is not None:
        raise InvalidArgument(f"{name} cannot be given for ratings that are ingested: ingest them again with it")


FORMAT = Format(name="store", recognises=is_store, read=_read, sizes=_sizes, stream=_stream)
