"""What a guarantee and a release say about descriptions of items that a run went by.

>>> described_publicly(Items.of(range(3)))
[]
"""

from __future__ import annotations

from typing import Any

from dpmf.ratings import Items
from dpmf.ratings.features import features_of

DESCRIBED = "item_features"
"""The name of the record in the configuration of a release."""
_LISTED_PUBLIC = (
    "Genres of items, and years in their titles, are public and were not made from these people's behaviour: what is "
    "measured of an item is compared with items like it."
)


def described_publicly(catalogue: Items) -> list[str]:
    """Return what a guarantee rests on, a sentence for each description."""
    listed = [_LISTED_PUBLIC] if features_of(catalogue).shape[1] else []
    return listed + [
        f"Features of items, {one.what} (SHA-256 {one.digest}), are public and were not made from these people's "
        "behaviour."
        for one in catalogue.descriptions
    ]


def described_record(catalogue: Items) -> dict[str, Any]:
    """Return what a release says about further descriptions; nothing if there are none."""
    found = [{"what": one.what, "sha256": one.digest} for one in catalogue.descriptions]
    return {DESCRIBED: found} if found else {}
