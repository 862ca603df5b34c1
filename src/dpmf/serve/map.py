"""Where the page draws each item: a neighbour embedding of what a release says of tastes. Public numbers only.

It is computed when a site is made, and sent in about.json: the release itself stays as it is.

>>> import numpy as np
>>> from dpmf.model import Ridge
>>> from dpmf.privacy import Guarantee
>>> from dpmf.ratings import Items, Scale
>>> release = Release(
...     items=Items.of([1, 2, 3]), scale=Scale(1, 5), mean=3.0, item_biases=np.zeros(3, np.float32),
...     item_factors=np.array([[1, 0], [0, 0], [1, 1]], np.float32), ridge=Ridge(1.0, 1.0),
...     configuration={"method": "sgd"}, guarantee=Guarantee.none())
>>> np.frombuffer(base64.b64decode(map_of(release)), "<u2").reshape(3, 2).tolist()
[[0, 32767], [65535, 65535], [65534, 32767]]
"""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import NDArray

from dpmf.model import Release
from dpmf.serve.embedding import embed

_MOST = 65534
_NOWHERE = 65535


def map_of(release: Release) -> str:
    """Return the places of all items as base64: two 16-bit numbers each, little-endian, both 65535 if it has none.

    Both axes have the same scale. An item has a place if more than noise is known of it; if that is so of none, all
    have.
    """
    mapped, rows = rows_of(release)
    places = embed(rows)
    centred = places - (places.max(axis=0) + places.min(axis=0)) / 2 if len(places) else places
    reach = float(np.abs(centred).max(initial=0.0)) or 1.0
    numbers = np.full((len(mapped), 2), _NOWHERE, "<u2")
    numbers[mapped] = np.floor((centred / reach + 1) / 2 * _MOST + 0.5)
    return base64.b64encode(numbers.tobytes()).decode()


def rows_of(release: Release) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
    """Return which items have a place, and a row for each: its factors, or what it contributes to a ranking."""
    ranking, factors = release.ranking, release.distinctive_factors
    in_head = np.zeros(len(release.items), np.bool_)
    if ranking is not None:
        in_head[ranking.items] = True
    if ranking is not None and in_head.any() and (not release.predicts or factors.shape[1] < 2):
        return in_head, ranking.left  # a rating model of few people has no directions to show
    known = release.learnt.with_factors
    mapped = np.asarray(factors.any(axis=1), np.bool_)
    if release.learnt.traits:
        measured = factors[:, : factors.shape[1] - release.learnt.traits].any(axis=1)
        if measured.any():
            mapped = np.asarray(measured)  # by traits alone, all items of the same genres would lie in one place
    if known is not None:
        mapped &= known | in_head
    if not mapped.any():
        mapped = np.ones_like(mapped)
    return mapped, factors[mapped]
