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

import numpy as np

from dpmf.errors import InvalidArgument
from dpmf.model import Release
from dpmf.ratings import Ratings
from dpmf.ratings.options import ReadOptions


def read_for(release: Release, data: str, options: ReadOptions) -> Ratings:
    """Read data into memory for a release."""
    return as_weighed(release, data, Ratings.read(data, **vars(options_for(release, options))))


def options_for(release: Release, options: ReadOptions) -> ReadOptions:
    """Return how to read data for a release, which brings its catalogue, and its scale unless another is named."""
    if options.items is not None:
        raise InvalidArgument("items=… cannot be given here: the release brings its own catalogue")
    options = replace(options, items=release.items)
    if release.is_implicit:  # its scale is not that of any ratings
        return replace(options, unrated=True)
    return options.completed({"scale": release.scale})


def as_weighed(release: Release, data: str, ratings: Ratings) -> Ratings:
    """Return ratings read for a release with the values that it goes by, or refuse them."""
    if not release.is_implicit and ratings.scale.counts:
        raise InvalidArgument(f"{data} has counts, not ratings, and this release goes by ratings")
    if release.weighs_counts and not ratings.scale.counts:  # ratings say nothing about counts
        return replace(ratings, values=np.ones_like(ratings.values))
    return ratings
