"""What is proposed to the holder of ratings as public facts: a list of items, a scale, and how a file is to be read.

`write_dataset` writes it as a folder, whose `dataset.json` says `"confirmed": false`. Nothing reads it before somebody
has made that true: that scale and items are public is an assumption of the guarantee, and no look at the data shows it.
"""

from __future__ import annotations

import csv
import io
import logging
import os
import re
from collections.abc import Mapping
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpmf.errors import DpmfError
from dpmf.files import dump_json, new_folder, write_text
from dpmf.ratings.archive import archive_of, names_beside
from dpmf.ratings.items import Items
from dpmf.ratings.location import READING
from dpmf.ratings.options import SEEN, ReadOptions
from dpmf.ratings.survey import Survey
from dpmf.ratings.table import Ratings

_FILES = ("dataset.json", "items.csv")
_ITEM_FILES = (  # which list of items is published with which ratings
    ("*", ("items.csv",)),
    ("ratings.dat", ("movies.dat",)),
    ("u*", ("u.item",)),
    ("bx-book-ratings.csv", ("BX-Books.csv",)),
    ("bx_book_ratings.csv", ("BX_Books.csv",)),
    ("rating*.csv", ("movies.csv", "movie.csv", "Books.csv", "books.csv", "anime.csv")),
    ("user_*artists*.dat", ("artists.dat",)),
    ("user_ratedmovies*.dat", ("movies.dat",)),
    ("combined_data_*.txt", ("movie_titles.csv", "movie_titles.txt")),
    ("yelp_academic_dataset_review.json", ("yelp_academic_dataset_business.json",)),
    ("mv_*.txt", ("movie_titles.csv", "movie_titles.txt", "../movie_titles.txt")),
)
_TEST_FILES = (  # which file of ratings is published to test on beside which
    (r"(ydata-ymusic-rating-study-v\d+_\d+-)train\.txt", r"\1test.txt"),
    (r"(u[1-5ab])\.base", r"\1.test"),
    (r"(.*)\btrain\b(.*)", r"\1test\2"),
)
_LISTED = 0.5  # the share of rated items that a file of items has to list to be the one that belongs to them
_NOTE = (
    "Proposed by dpmf from a look at the ratings. Scale and items.csv have to be public facts: what may be rated, and "
    "how, not what was. Correct both, then set confirmed to true. That they are public is then an assumption of the "
    "guarantee. Items that were only seen in the ratings are assumed to be public where --items-public says so; if "
    "items.csv has become a list from elsewhere, remove the word items here."
)


class ItemFile(NamedTuple):
    """A file of items.

    Attributes:
        path: where it is.
        columns: to read, if that of the items is not the one that its name suggests.
        share: of the items that are rated, which part is in it.
    """

    path: Path
    columns: Mapping[str, str] | None
    share: float


def find_items(path: Path, name: str, ratings: Ratings) -> ItemFile | None:
    """Return the file of items that is published with a file of ratings, if it is there and lists most of its items.

    Args:
        path: of the ratings, perhaps inside an archive.
        name: of their file.
        ratings: what it holds.
    """
    wanted = [one for pattern, names in _ITEM_FILES if fnmatch(name.lower(), pattern) for one in names]
    inside = archive_of(path)
    if inside is None:
        candidates = [path.parent / name for name in wanted if (path.parent / name).is_file()]
    else:
        candidates = [inside[0] / name for name in names_beside(*inside, wanted)]
    for candidate, columns in product(candidates, (None, {"item": "id"})):
        try:
            listed = _quietly_read(candidate, columns).ids.encode(ratings.catalogue.ids.array) >= 0
        except DpmfError:
            continue
        if (share := float(np.mean(listed))) >= _LISTED:
            return ItemFile(candidate, columns, share)
    return None


def find_test(path: Path) -> Path | None:
    """Return the file of ratings to test on that is published beside a file to train on."""
    if archive_of(path) is not None:
        return None
    for pattern, name in _TEST_FILES:
        if found := re.fullmatch(pattern, path.name):
            beside = path.with_name(found.expand(name))
            return beside if beside.is_file() else None
    return None


def write_dataset(folder: Path, path: Path, found: Survey, options: ReadOptions) -> None:
    """Write `dataset.json` and `items.csv` to a folder, for the holder to correct and confirm.

    Args:
        folder: a new one, or one with these files only.
        path: of the ratings, which stay where they are.
        found: what they seem to hold.
        options: how they are to be read, and perhaps a file of items.
    """
    facts: dict[str, Any] = {"name": path.stem, "confirmed": False, "note": _NOTE}
    if found.scale is not None:
        facts["scale"] = [found.scale.lo, found.scale.hi]
    facts["file"] = os.path.relpath(path, folder)
    facts["reading"] = {name: getattr(options, name) for name in READING if getattr(options, name) is not None}
    items = found.ratings.catalogue
    if isinstance(options.items, str | Path):
        items = Items.read(options.items, **options.of_items())
    else:
        facts["items"] = SEEN
    table = io.StringIO()
    rows = zip(items.ids, items.titles, items.genres, strict=True)
    csv.writer(table, lineterminator="\n").writerows([("item", "title", "genres"), *rows])
    with new_folder(folder, may_replace=_FILES) as work:
        write_text(work / "dataset.json", dump_json(facts))
        write_text(work / "items.csv", table.getvalue())


def _quietly_read(path: Path, columns: Mapping[str, str] | None) -> Items:
    """Return a catalogue without a message about its encoding, which whoever reads it in earnest gets."""
    reader = logging.getLogger("dpmf.ratings.item_files")
    reader.disabled = True
    try:
        return Items.read(path, columns=columns)
    finally:
        reader.disabled = False
