"""Synthetic ratings in the shape of a set that is not at hand: Yahoo's, whose size the catalogue knows.

They are called `--data yahoo-music`. Users, items and ratings may be divided by a common factor.

>>> from dpmf import Ratings
>>> with synthetic_like("yahoo-music", 100_000) as folder:
...     Ratings.read(folder).n_items
6
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpmf import Scale
from dpmf.ratings.catalogue import find, folder_of
from dpmf.ratings.store.synthetic import write_synthetic

YAHOO = "yahoo-music"


def is_synthetic(data: str) -> bool:
    """Tell whether data have to be synthetic: Yahoo's by name, and not in the folder of downloaded sets."""
    return data == YAHOO and not folder_of(YAHOO).exists()


@contextmanager
def synthetic_like(name: str, part: int) -> Iterator[Path]:
    """Yield a temporary folder of ratings in the shape of a set, divided by `part`."""
    shape = find(name)
    with tempfile.TemporaryDirectory(prefix="dpmf-synthetic-") as folder:
        path = Path(folder) / "ratings"
        write_synthetic(
            path,
            n_ratings=shape.ratings // part,
            n_users=shape.users // part,
            n_items=shape.items // part,
            scale=Scale(*shape.scale),
            name=f"synthetic, like {name}",
        )
        yield path
