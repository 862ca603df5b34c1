"""What is proposed to the holder of ratings as public facts: a list of items, a scale, and how a file is to be read.

`write_dataset` writes it as a folder, whose `dataset.json` says `"confirmed": false`. Nothing reads it before somebody
has made that true: that scale and items are public is an assumption of the guarantee, and no look at the data shows it.
"""

from __future__ import annotations

import csv
import io
import logging
import os
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

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
    ("rating*.csv", ("movies.csv", "Books.csv", "books.csv", "anime.csv")),
    ("user_*artists*.dat", ("artists.dat",)),
)
_LISTED = 0.5  # the share of rated items that a file of items has to list to be the one that belongs to them
_NOTE = (
    "Proposed by dpmf from a look at the ratings. Scale and items.csv have to be public facts: what may be rated, and "
    "how, not what was. Correct both, then set confirmed to true. That they are public is then an assumption of the "
    "guarantee. Items that were only seen in the ratings are assumed to be public where --items-public says so; if "
    "items.csv has become a list from elsewhere, remove the word items here."
)


def find_items(path: Path, name: str, ratings: Ratings) -> Path | None:
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
    for candidate in candidates:
        try:
            listed = _quietly_read(candidate).ids.encode(ratings.catalogue.ids.array) >= 0
        except DpmfError:
            continue
        if np.mean(listed) >= _LISTED:
            return candidate
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


def _quietly_read(path: Path) -> Items:
    """Return a catalogue without a message about its encoding, which whoever reads it in earnest gets."""
    reader = logging.getLogger("dpmf.ratings.item_files")
    reader.disabled = True
    try:
        return Items.read(path)
    finally:
        reader.disabled = False
