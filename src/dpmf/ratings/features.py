"""What a catalogue says about its items, as numbers: genres, and the year at the end of a title.

Lists of items are public, so these numbers cost no privacy. Where there is nothing to be said there are no columns.

>>> from dpmf.ratings import Items
>>> titles = [f"{name} ({year})" for year, name in enumerate("ABCDEF", 1990)]
>>> films = Items.of(range(6), titles, 3 * ["x|y", "x"])
>>> features_of(films, least=3).shape  # y, which half of them have (x says nothing, as all have it), and the year
(6, 4)
>>> features_of(Items.of(range(6))).shape
(6, 0)
>>> traits_of(features_of(films, least=3)).shape
(6, 4)
"""

from __future__ import annotations

import math
import re
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from dpmf.ratings.described import LEAST_ITEMS, principal, reduced
from dpmf.ratings.items import Items

_MOST_GENRES = 100  # the most frequent ones
_LEAST_DATED = 0.5  # of the titles, or years say more about how a list was made than about items
_YEAR = re.compile(r"\((1[89]\d\d|20\d\d)\)\s*$")
_DEGREES = 3  # of a polynomial in the year
_FARTHEST = 3.0  # standard deviations: a few very old items do not bend it
_MOST_TRAITS = 32  # everybody's fit takes time with the cube of their number
MOST_FURTHER_TRAITS = 16


def features_of(catalogue: Items, least: int = LEAST_ITEMS) -> NDArray[np.float64]:
    """Return columns with mean 0 and standard deviation 1, shape (n_items, n_features).

    Args:
        catalogue: the items.
        least: how many of them have to have a genre, and how many not, for it to count.
    """
    found = [*_genres(catalogue, least), *_years(catalogue)]
    if not found:
        return np.zeros((len(catalogue), 0))
    columns = np.stack(found, axis=1)
    columns -= columns.mean(axis=0)
    spreads = columns.std(axis=0)
    return np.asarray(columns[:, spreads > 0] / spreads[spreads > 0])


def traits_of(features: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return features as factors of items that nobody has to measure, shape (n_items, C); squared lengths have mean 1.

    Of many features these are the directions in which items differ most.
    """
    n_items, n_features = features.shape
    if not n_features:
        return np.zeros((n_items, 0), np.float32)
    if n_features > _MOST_TRAITS:
        features = features @ principal(features, _MOST_TRAITS)
    return np.asarray(features / math.sqrt(float(np.square(features).sum()) / n_items), np.float32)


def further_traits_of(description: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the same of a further description: fewer directions, as there may be several descriptions."""
    return reduced(description, MOST_FURTHER_TRAITS)


def further_of(catalogue: Items) -> list[NDArray[np.float64]]:
    """Return what else is said about items, a matrix for each description; see `dpmf.ratings.described`."""
    return [one.columns.astype(np.float64) for one in catalogue.descriptions]


def _genres(catalogue: Items, least: int) -> list[NDArray[np.float64]]:
    """Return which items have each of the genres that enough of them have; in alphabetical order."""
    having: dict[str, set[int]] = defaultdict(set)
    for place, text in enumerate(catalogue.genres):
        for genre in filter(None, (one.strip() for one in text.split("|"))):
            having[genre].add(place)
    telling = {genre: items for genre, items in having.items() if least <= len(items) <= len(catalogue) - least}
    frequent = sorted(telling, key=lambda genre: (-len(telling[genre]), genre))[:_MOST_GENRES]
    return [np.isin(np.arange(len(catalogue)), sorted(telling[genre])).astype(np.float64) for genre in sorted(frequent)]


def _years(catalogue: Items) -> list[NDArray[np.float64]]:
    """Return powers of the year, 0 where it is unknown; nothing if most titles have none."""
    found = [_YEAR.search(title) for title in catalogue.titles]
    years = np.array([np.nan if one is None else float(one.group(1)) for one in found])
    dated = np.isfinite(years)
    if dated.sum() <= _LEAST_DATED * len(years) or np.ptp(years[dated]) == 0:
        return []
    standard = (years - years[dated].mean()) / years[dated].std()
    standard = np.where(dated, np.clip(standard, -_FARTHEST, _FARTHEST), 0.0)
    return [standard**degree for degree in range(1, _DEGREES + 1)]
