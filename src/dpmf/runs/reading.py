"""Ratings of people who are new to a release, as the release takes them.

>>> import numpy as np
>>> from dpmf.methods import SGD
>>> from dpmf.ratings.synthetic import make
>>> release = SGD(n_factors=2, n_epochs=1).fit(make(50, 40), n_threads=1).release
>>> options_for(release, ReadOptions()).scale == release.scale
True
"""

from __future__ import annotations

from dataclasses import replace

from dpmf.errors import InvalidArgument
from dpmf.model import Release
from dpmf.model.own import as_weighed
from dpmf.ratings import Ratings
from dpmf.ratings.options import FILE_OPTIONS, ReadOptions
from dpmf.ratings.store.columns import is_store

__all__ = ["as_weighed", "options_for", "read_for"]


def read_for(release: Release, data: str, options: ReadOptions) -> Ratings:
    """Read data into memory for a release."""
    return as_weighed(release, data, Ratings.read(data, **vars(options_for(release, options))))


def options_for(release: Release, options: ReadOptions) -> ReadOptions:
    """Return how to read data for a release, which brings its catalogue, and its scale unless another is named."""
    if options.items is not None:
        raise InvalidArgument("items=… cannot be given here: the release brings its own catalogue")
    if options.item_features is not None:
        raise InvalidArgument("item_features=… cannot be given here: the release has what it needs of them")
    options = replace(options, items=release.items)
    if release.is_implicit:  # its scale is not that of any ratings
        return replace(options, unrated=True)
    return options.completed({"scale": release.scale})


def check_store(data: str, options: ReadOptions) -> None:
    """Refuse data that are not a block store, which is what workers of a cluster read, and options of other data."""
    if not is_store(data):
        raise InvalidArgument(
            f"{data} is not a block store: `dpmf data ingest {data} STORE` writes one, which all nodes of a cluster "
            "must be able to read"
        )
    given = options.first_given(("scale", "items", "item_features", "users_about", *FILE_OPTIONS))
    if given is not None:
        raise InvalidArgument(f"{given} cannot be given for ratings that are ingested: ingest them again with it")
