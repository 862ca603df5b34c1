"""Ratings made up in the shape of a set that is not at hand: Yahoo's, of which the catalogue knows the size.

`--data yahoo-music` stands for them. Users, items and ratings are cut down by the same factor, if at all.

>>> from dpmf import Ratings
>>> with made_up("yahoo-music", 100_000) as folder:
...     Ratings.read(folder).n_items
6
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpmf.ratings.catalogue import find, folder_of
from dpmf.ratings.store.synthetic import write_synthetic
from dpmf.ratings.table import Scale

YAHOO = "yahoo-music"


def is_made_up(data: str) -> bool:
    """Tell whether data have to be made up: they are Yahoo's by name, and nobody has put them where they are read."""
    return data == YAHOO and not folder_of(YAHOO).exists()


@contextmanager
def made_up(name: str, part: int) -> Iterator[Path]:
    """Yield a folder of ratings in the shape of a set, divided by `part`; it is gone afterwards."""
    shape = find(name)
    with tempfile.TemporaryDirectory(prefix="dpmf-made-") as folder:
        path = Path(folder) / "ratings"
        write_synthetic(
            path, n_ratings=shape.ratings // part, n_users=shape.users // part, n_items=shape.items // part,
            scale=Scale(*shape.scale), name=f"made up like {name}",
        )  # fmt: skip
        yield path
