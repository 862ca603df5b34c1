"""Ratings in a zip archive, in whatever format: unpacked to a folder for their owner alone while they are read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dpmf.errors import InvalidRatings
from dpmf.files import scratch_folder
from dpmf.ratings.archive import archive_of, extract, members
from dpmf.ratings.formats import Format, Sizes, file_formats

if TYPE_CHECKING:
    import zipfile

    from dpmf.ratings.location import Location
    from dpmf.ratings.store.columns import Source
    from dpmf.ratings.table import Ratings

_BESIDE = ("items.csv", "dataset.json")
_BYTES_PER_RATING = 6  # at least


def _chosen(location: Location) -> tuple[Path, str, list[zipfile.ZipInfo]]:
    place, name = archive_of(location.path) or (location.path, "")
    patterns = [pattern for one in file_formats() for pattern in one.file_names]
    return place, name, members(place, name, patterns, _BESIDE)


@contextlib.contextmanager
def unpacked(location: Location) -> Iterator[Location]:
    """Yield the ratings in an archive as a location of their own, while they are unpacked."""
    from dpmf.ratings.location import locate

    place, name, chosen = _chosen(location)
    with scratch_folder("unzip") as scratch:
        folder = scratch / place.stem
        folder.mkdir()
        paths = extract(place, chosen, folder)
        try:
            yield locate(paths[0] if name or len(paths) == 1 else folder, location.options)
        except InvalidRatings as error:  # which names a file that only this process can see
            raise InvalidRatings(str(error).replace(str(folder), str(place))) from None


def _read(location: Location) -> Ratings:
    with unpacked(location) as inside:
        return inside.read()


def _sizes(location: Location) -> Sizes:
    return Sizes(sum(one.file_size for one in _chosen(location)[2]) // _BYTES_PER_RATING)


@contextlib.contextmanager
def _stream(location: Location, memory: int, scratch: Path) -> Iterator[Source]:
    with unpacked(location) as inside, inside.stream(memory=memory, scratch=scratch) as source:
        yield source


FORMAT = Format(
    name="zip", recognises=lambda path: archive_of(path) is not None, read=_read, sizes=_sizes, stream=_stream
)
